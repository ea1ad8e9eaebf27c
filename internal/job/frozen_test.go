package job_test

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"quotabudget/internal/job"
	"quotabudget/internal/quota"
)

// frozenJob is the variable by which TestFrozen starts this test binary as the process that runs
// the job: the URL of its ledger.
const frozenJob = "QUOTA_TEST_FROZEN_JOB"

// TestFrozen: a run that was stopped for longer than its lease, so that another run has its lock,
// ends its command first when it continues.
func TestFrozen(t *testing.T) {
	if url := os.Getenv(frozenJob); url != "" {
		runFrozen(t, url)
		return
	}
	t.Parallel()
	url := "sqlite://" + filepath.Join(t.TempDir(), "ledger.db")
	b := open(t, url)
	holder := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestFrozen$")
	holder.Env = append(os.Environ(), frozenJob+"="+url)
	out, err := holder.StdoutPipe()
	must(t, err)
	must(t, holder.Start())
	lines := bufio.NewReader(out)
	pid, err := lines.ReadString('\n')
	must(t, err)
	t.Cleanup(func() { _ = kill(pid) })
	must(t, holder.Process.Signal(syscall.SIGSTOP))
	claim := quota.Claim{Credential: "key1", Name: "lock:one", Holder: quota.NewID(time.Now()),
		TTL: time.Minute}
	for state := quota.ClaimHeld; state != quota.ClaimWon; {
		state, err = b.ledger.Claim(t.Context(), claim)
		must(t, err)
	}
	must(t, holder.Process.Signal(syscall.SIGCONT))
	rest, err := io.ReadAll(lines)
	must(t, err)
	must(t, holder.Wait())
	if !strings.Contains(string(rest), "lost, ended by a signal") {
		t.Errorf("it went on: %s", rest)
	}
	if state, err := b.ledger.Claim(t.Context(), claim); err != nil ||
		state != quota.ClaimWon {
		t.Errorf("the other run has lost its lock: %v, %v", state, err)
	}
	b.wantSpent("default", 4)
}

func runFrozen(t *testing.T, url string) {
	b := open(t, url)
	j := b.job("echo $$; exec sleep 300")
	j.Command.Stdout, j.Lock, j.Lease = os.Stdout, "one", time.Second
	outcome, err := j.Run(t.Context())
	if lost, ok := errors.AsType[*job.LostError](err); ok && outcome.Signal == syscall.SIGTERM {
		fmt.Println("lost, ended by a signal:", lost)
	}
}
