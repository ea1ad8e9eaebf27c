package job_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"quotabudget/internal/job"
	"quotabudget/internal/quota"
)

// TestSettlements lists what each kind of settlement books after each kind of end.
func TestSettlements(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		b.limits[0].Units = 1000
		total := int64(0)
		for _, c := range []struct {
			settle job.Settlement
			line   string
			code   int
			booked int64
		}{
			{"", "exit 0", 0, 4},
			{job.SettleAll, "exit 3", 3, 4},
			{job.SettleExit, "exit 0", 0, 4},
			{job.SettleExit, "exit 3", 3, 0},
			{job.SettleExit, "kill -TERM $$", 143, 4}, // may have been at work
			{job.SettleProxy, "exit 0", 0, 0},
			{job.SettleReport, "exit 0", 0, 4}, // no report
			{job.SettleReport, "echo units=3 >&3", 0, 3},
			{job.SettleReport, "echo units=0 >&3", 0, 0},
			{job.SettleReport, "echo units=3 >&3; echo bucket=default units=4 >&3; exit 2", 2, 7},
			{job.SettleReport, "echo units=2 >/dev/fd/3; echo method=search count=3 >&3", 0, 8},
			{job.SettleReport, "echo units=3 >&3; echo units=-1 >&3; echo nonsense >&3", 0, 4},
			{job.SettleReport, "echo units=7 >&3; echo nonsense >&3", 0, 7},
			{job.SettleReport, "echo bucket=defualt units=500 >&3", 0, 4}, // unknown bucket
			{job.SettleReport, "printf units=3 >&3; (sleep 300 & echo $! > pid)", 0, 3},
		} {
			j := b.job(c.line)
			j.Settle, j.Command.Dir = c.settle, t.TempDir()
			out := b.run(j)
			total += c.booked
			if out.Code != c.code || out.Took["default"] != c.booked ||
				out.Held["default"] != 4 {
				t.Errorf("%s, %q: %+v", c.settle, c.line, out)
			}
			b.wantSpent("default", total)
			if pid, err := os.ReadFile(filepath.Join(j.Command.Dir, "pid")); err == nil {
				must(t, kill(string(pid)))
			}
		}
		b.wantSpent("search_list", 3) // beyond what was held
		if n := strings.Count(b.log.String(), "lines that cannot be read"); n != 3 {
			t.Errorf("%d reports could not be read:\n%s", n, b.log)
		}
	})
}

// TestBooked: an entry has the labels of its run, and a denial starts nothing.
func TestBooked(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		j := b.job("echo $QUOTA_RESERVATION > id")
		j.Command.Dir = t.TempDir()
		j.Call.Labels = quota.Labels{"region": "BR"}
		out := b.run(j)
		b.run(b.job("true"))
		id, err := os.ReadFile(filepath.Join(j.Command.Dir, "id"))
		must(t, err)
		if got := strings.TrimSpace(string(id)); got != out.Reservation || got == "" {
			t.Errorf("the command found %q, want %q", got, out.Reservation)
		}
		entries, err := b.ledger.Entries(t.Context(), quota.Query{Credential: "key1",
			Bucket: "default"})
		must(t, err)
		if got := entries[0].Labels.Encode(); got != "job=nightly&region=BR&run="+out.Run {
			t.Errorf("labels %s", got)
		}
		j = b.job("echo started > started")
		j.Command.Dir = t.TempDir()
		_, err = j.Run(t.Context())
		denied, ok := errors.AsType[*job.DeniedError](err)
		if !ok || !errors.Is(err, quota.ErrExhausted) ||
			denied.Decision.RetryAfter() < 23*time.Hour {
			t.Errorf("want a denial with its time: %v", err)
		}
		if _, err := os.Stat(filepath.Join(j.Command.Dir, "started")); err == nil {
			t.Error("it was started")
		}
		b.wantSpent("default", 8)
	})
}

// TestNotStarted: a command that cannot be started costs nothing.
func TestNotStarted(t *testing.T) {
	t.Parallel()
	b := open(t, "sqlite://"+filepath.Join(t.TempDir(), "ledger.db"))
	dir := t.TempDir()
	plain, script := filepath.Join(dir, "plain"), filepath.Join(dir, "script")
	must(t, os.WriteFile(plain, []byte("x"), 0o644))
	must(t, os.WriteFile(script, []byte("exit 7\n"), 0o755)) // without a #! line
	for _, c := range []struct {
		program string
		code    int
	}{{"no-such-program", 127}, {"", 127}, {dir + "/none", 127}, {plain + "/x", 127}, {plain, 126},
		{dir, 126}, {"plain", 126}} {
		j := b.job("")
		j.Command.Args, j.Command.Env = []string{c.program}, []string{"PATH=/nowhere:" + dir}
		out, err := j.Run(t.Context())
		start, ok := errors.AsType[*job.StartError](err)
		if !ok || start.Code != c.code || out.Started {
			t.Errorf("%s: %v, want %d", c.program, err, c.code)
		}
		b.wantSpent("default", 0)
	}
	j := b.job("")
	j.Command.Args = []string{script}
	if out := b.run(j); out.Code != 7 {
		t.Errorf("the script: %+v", out)
	}
}

// TestTimeout: a command that takes too long gets SIGTERM and then SIGKILL, together with its
// descendants.
func TestTimeout(t *testing.T) {
	t.Parallel()
	b := open(t, "sqlite://"+filepath.Join(t.TempDir(), "ledger.db"))
	j := b.job("trap '' TERM; while :; do sleep 0.05; done")
	j.Command.Group, j.Timeout, j.Grace = true, 300*time.Millisecond, 100*time.Millisecond
	j.Settle = job.SettleExit
	out := b.run(j)
	if !out.Timeout || out.Signal != syscall.SIGKILL || out.Code != 137 {
		t.Errorf("%+v", out)
	}
	b.wantSpent("default", 4) // it had been at work

	// a child that ignores SIGTERM is killed, although the command ends earlier
	j.Command.Args[2] = "(trap '' TERM; while :; do sleep 0.05; done) & echo $! > pid; exec sleep 300"
	j.Command.Dir, j.Command.Stderr = t.TempDir(), nil
	if out := b.run(j); !out.Timeout || out.Signal != syscall.SIGTERM {
		t.Errorf("%+v", out)
	}
	pid, err := os.ReadFile(filepath.Join(j.Command.Dir, "pid"))
	must(t, err)
	for end := time.Now().Add(5 * time.Second); ; time.Sleep(5 * time.Millisecond) {
		state, err := os.ReadFile("/proc/" + strings.TrimSpace(string(pid)) + "/stat")
		if err != nil || strings.Contains(string(state), ") Z ") {
			return
		}
		if time.Now().After(end) {
			must(t, kill(string(pid)))
			t.Fatal("the child is still running")
		}
	}
}

func kill(pid string) error {
	n := 0
	for _, c := range strings.TrimSpace(pid) {
		n = 10*n + int(c-'0')
	}
	return syscall.Kill(n, syscall.SIGKILL)
}
