package ingest_test

import (
	"errors"
	"net/http"
	"strings"
	"syscall"
	"testing"

	"quotabudget/internal/ingest"
)

// fileSize lets no file of this process grow beyond so many bytes, as a full disk would not. It
// lasts until enough is called, or until the test ends; tests that run beside it are bound by it
// too.
func fileSize(t *testing.T, most uint64) (enough func()) {
	t.Helper()
	var before syscall.Rlimit
	must(t, syscall.Getrlimit(syscall.RLIMIT_FSIZE, &before))
	set := func(cur uint64) {
		limit := syscall.Rlimit{Cur: cur, Max: before.Max}
		if err := syscall.Setrlimit(syscall.RLIMIT_FSIZE, &limit); err != nil {
			t.Error(err)
		}
	}
	set(most)
	enough = func() { set(before.Cur) }
	t.Cleanup(enough)
	return enough
}

// TestFullDisk: nothing is bought for a catalogue that cannot take a page. A disk that fills up
// while a chart is being read costs the page that was on its way, and no other.
func TestFullDisk(t *testing.T) {
	s := plenty(t)
	const little = 300 << 10 // the ledger's files are smaller
	enough := fileSize(t, little)
	sum, err := s.sweep(t, "US,GB", 2).Execute(t.Context())
	if !errors.Is(err, ingest.ErrCatalogue) || !strings.HasPrefix(err.Error(), "catalogue: ") {
		t.Errorf("got %v", err)
	}
	s.compare(t, sum, "failed US:failed:0/0:0 GB:skipped:0/0:0", "")
	enough()

	s.on(func(r *http.Request) {
		if r.URL.Query().Has("pageToken") {
			fileSize(t, little)
		}
	})
	sweep := s.sweep(t, "US,GB", 4)
	sweep.OnlyThisRun = true // as a daemon sweeps: one page after the other
	sum, err = sweep.Execute(t.Context())
	if !errors.Is(err, ingest.ErrCatalogue) {
		t.Errorf("got %v", err)
	}
	s.compare(t, sum, "failed US:failed:1/50:2 GB:skipped:0/0:0", "US1 US2")
	s.balanced(t)
}
