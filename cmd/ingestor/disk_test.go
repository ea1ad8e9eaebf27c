//go:build linux

package main

import (
	"io"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"quotabudget/internal/ledger/redistest"
)

// fileSize limits the size of the process's files, like a full disk.
func (p *process) fileSize(t *testing.T, most uint64) {
	t.Helper()
	const unlimited = ^uint64(0)
	limit := syscall.Rlimit{Cur: most, Max: unlimited}
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(p.Process.Pid),
		syscall.RLIMIT_FSIZE, uintptr(unsafe.Pointer(&limit)), 0, 0, 0); errno != 0 {
		t.Fatal(errno)
	}
}

// TestDaemonOnAFullDisk: the daemon buys nothing that it cannot store, reports that once and on
// /readyz, and continues when there is room.
func TestDaemonOnAFullDisk(t *testing.T) {
	t.Parallel()
	h, env := holding(t, 0)
	env = append(env, "QUOTA_LEDGER="+redistest.Start(t, redistest.Options{}).URL())
	p := begin(t, env, "ingestor", "run", "--config", configFile(t, daemonConfig))
	p.await(t, "tick done")
	ready := func(want int) (body string) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			resp, err := http.Get(p.url() + "readyz")
			must(t, err)
			text, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			switch {
			case err == nil && resp.StatusCode == want:
				return string(text)
			case time.Now().After(end):
				t.Fatalf("%d %s, %v: %s", resp.StatusCode, text, err, p.stderr.String())
			}
		}
	}
	ready(http.StatusOK)
	p.fileSize(t, 300<<10) // less than the catalogue has
	p.await(t, "the catalogue takes no pages")
	bought := h.Counts().Requests
	if body := ready(http.StatusServiceUnavailable); !strings.Contains(body, "catalogue: ") {
		t.Errorf("not ready because of %q", body)
	}
	time.Sleep(2 * time.Second) // more ticks are due
	if n := h.Counts().Requests; n > bought {
		t.Errorf("%d pages bought while nothing could be stored", n-bought)
	}
	p.fileSize(t, ^uint64(0))
	ready(http.StatusOK)
	p.await(t, "the catalogue takes pages again")
	ticks := func() int { return strings.Count(p.stderr.String(), "tick done") }
	before, end := ticks(), time.Now().Add(time.Minute)
	for ; ticks() == before; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no tick any more: %s", p.stderr.String())
		}
	}
	p.signal(t, syscall.SIGTERM)
	if code := p.code(); code != 0 || strings.Count(p.stderr.String(), "level=ERROR") != 1 {
		t.Errorf("%v: %s", p.ProcessState, p.stderr.String())
	}
}
