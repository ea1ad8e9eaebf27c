package job_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"quotabudget/internal/job"
	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// TestLongReport: a report of any length is added up to its last line. A line that is too long is
// ignored.
func TestLongReport(t *testing.T) {
	t.Parallel()
	b := open(t, "sqlite://"+filepath.Join(t.TempDir(), "ledger.db"))
	j := b.job("yes units=1 | head -n 300000 >&3; printf units=5 >&3")
	j.Settle = job.SettleReport
	b.run(j)
	b.wantSpent("default", 300_005)
	if strings.Contains(b.log.String(), "cannot be read") {
		t.Error(b.log)
	}

	b = open(t, "sqlite://"+filepath.Join(t.TempDir(), "ledger.db"))
	j = b.job(`printf 'units=1%05000d\n' 0 >&3; printf 'units=1%05000s\nunits=1\n' >&3`)
	j.Settle = job.SettleReport
	b.run(j)
	b.wantSpent("default", 4)
	if !strings.Contains(b.log.String(), "lines=2") {
		t.Error(b.log)
	}
}

// TestReportOfOneWhoStays: the run does not wait for a descendant that keeps writing a report.
func TestReportOfOneWhoStays(t *testing.T) {
	t.Parallel()
	b := open(t, "sqlite://"+filepath.Join(t.TempDir(), "ledger.db"))
	j := b.job("yes units=0 >&3 & echo $!; echo units=3 >&3")
	var pid strings.Builder
	j.Settle, j.Command.Stdout = job.SettleReport, &pid
	t.Cleanup(func() { _ = kill(pid.String()) })
	b.run(j)
	b.wantSpent("default", 3)
}

// TestSettledLate: the usage of a command is booked once, even if its hold has lapsed and this
// machine's clock is too slow to show it.
func TestSettledLate(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		lapse  quota.Lapse
		settle job.Settlement
		line   string
		booked int64
	}{
		{quota.LapseRelease, job.SettleAll, "true", 4},
		{quota.LapseRelease, job.SettleReport, "echo units=6 >&3", 6},
		{quota.LapseRelease, job.SettleReport, "echo units=0 >&3", 0},
		{quota.LapseRelease, job.SettleExit, "false", 0},
		{quota.LapseCharge, job.SettleAll, "true", 4},
		{quota.LapseCharge, job.SettleReport, "echo units=6 >&3", 6},
		{quota.LapseCharge, job.SettleReport, "echo units=1 >&3", 1},
		{quota.LapseCharge, job.SettleExit, "false", 0},
		{quota.LapseCharge, job.SettleProxy, "true", 3},
		{quota.LapseRelease, job.SettleProxy, "true", 3},
	} {
		t.Run(string(c.lapse)+" "+c.line, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, redistest.Options{Clock: true})
			now := time.Now()
			server.SetNow(t, now)
			b := open(t, server.URL())
			j := b.job(c.line)
			j.Lapse, j.Settle = c.lapse, c.settle
			j.Prepare = func(_ context.Context, p job.Prepared) ([]string, func(), error) {
				budget := *j.Budget
				budget.Ledger = p.Ledger
				send := func(units int64) {
					if c.settle == job.SettleProxy {
						_, err := budget.Charge(t.Context(), quota.Call{Units: units})
						must(t, err)
					}
				}
				send(1) // drawn on the hold
				server.SetNow(t, now.Add(j.TTL+time.Minute))
				return nil, func() { send(2) }, nil
			}
			out := b.run(j)
			b.wantSpent("default", c.booked)
			if c.settle == job.SettleProxy && c.lapse == quota.LapseCharge &&
				out.Took["default"] != c.booked {
				t.Errorf("%v took", out.Took)
			}
		})
	}
}

// TestHoldGone: the usage of a command is booked once, with a warning, if its hold is gone from the
// ledger, unless the command has settled the hold itself.
func TestHoldGone(t *testing.T) {
	t.Parallel()
	type hold struct {
		*bench
		server *redistest.Server
		id     string
		labels quota.Labels
	}
	lost := func(h hold) {
		h.server.Kill()
		h.server.Restart(h)
	}
	released := func(h hold) {
		_, err := h.ledger.Release(h.Context(), quota.Release{Credential: "key1",
			Reservation: h.id})
		must(h, err)
	}
	drawn := func(h hold) {
		_, err := h.job("").Budget.Draw(h.Context(), h.id, 3, h.labels)
		must(h, err)
		released(h)
	}
	settled := func(units int64) func(hold) {
		return func(h hold) {
			_, err := h.job("").Budget.Settle(h.Context(), h.id, quota.Call{
				Costs: []quota.Cost{{Bucket: "default", Units: units}}})
			must(h, err)
		}
	}
	for _, c := range []struct {
		name     string
		settle   job.Settlement
		line     string
		ends     func(hold)
		booked   int64
		searches int64 // units of search_list
		warnings int
	}{
		{"lost", job.SettleAll, "true", lost, 4, 0, 1},
		{"lost", job.SettleReport, "echo units=6 >&3", lost, 6, 0, 1},
		{"lost", job.SettleReport, "echo units=0 >&3", lost, 0, 0, 1},
		{"lost", job.SettleReport, "echo bucket=search_list units=2 >&3", lost, 4, 2, 1},
		{"lost", job.SettleExit, "false", lost, 0, 0, 0},
		{"released", job.SettleExit, "false", released, 0, 0, 0},
		{"drawn and released", job.SettleExit, "false", drawn, 3, 0, 0},
		{"settled", job.SettleExit, "false", settled(2), 2, 0, 0},
		{"settled", job.SettleProxy, "true", settled(2), 2, 0, 0},
		{"released", job.SettleAll, "true", released, 4, 0, 1},
		{"drawn and released", job.SettleAll, "true", drawn, 4, 0, 1},
		{"drawn and released", job.SettleReport, "echo units=5 >&3", drawn, 5, 0, 1},
		{"settled", job.SettleAll, "true", settled(2), 2, 0, 0},
		{"settled", job.SettleReport, "echo units=6 >&3", settled(2), 2, 0, 0},
		{"settled", job.SettleReport, "echo units=2 >&3", settled(2), 2, 0, 0},
		{"settled", job.SettleReport, "echo bucket=search_list units=2 >&3", settled(1), 1, 2, 0},
	} {
		t.Run(c.name+" "+c.line, func(t *testing.T) {
			t.Parallel()
			server := redistest.Start(t, redistest.Options{})
			b := open(t, server.URL())
			j := b.job(c.line)
			j.Settle = c.settle
			j.Prepare = func(_ context.Context, p job.Prepared) ([]string, func(), error) {
				list, err := b.ledger.Reservations(t.Context(), "key1", "default")
				must(t, err)
				return nil, func() { c.ends(hold{b, server, list[0].ID, p.Labels}) }, nil
			}
			out := b.run(j)
			b.wantSpent("default", c.booked)
			b.wantSpent("search_list", c.searches)
			if n := strings.Count(b.log.String(), "level=WARN"); n != c.warnings ||
				n > 0 && out.Took["default"] != c.booked {
				t.Errorf("%d warnings, %v took:\n%s", n, out.Took, b.log)
			}
		})
	}
}

// TestLedgerComesBackEmpty: the usage of a command whose end the ledger missed waits in the
// journal, and is booked once although the hold is gone.
func TestLedgerComesBackEmpty(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{})
	b := open(t, server.URL())
	j := b.job("echo units=6 >&3")
	j.TTL, j.Settle = time.Second, job.SettleReport
	journal := &ledger.Journal{Path: filepath.Join(t.TempDir(), "journal.db"),
		Ledger: server.URL(), Credential: "key1"}
	t.Cleanup(func() { journal.Close() })
	j.Budget.Journal, j.Budget.Log = journal, j.Log
	j.Prepare = func(context.Context, job.Prepared) ([]string, func(), error) {
		return nil, server.Kill, nil
	}
	if out := b.run(j); out.Took != nil || !strings.Contains(b.log.String(), "journal") {
		t.Errorf("%v took:\n%s", out.Took, b.log)
	}
	server.Restart(t)
	for range 2 {
		must(t, quota.Patience{Total: time.Minute, Attempt: time.Minute}.Retry(t.Context(),
			j.Budget.Post))
	}
	b.wantSpent("default", 6)
}

// TestAsAnotherUser: a command runs only with the rights of its user, and can write its report.
func TestAsAnotherUser(t *testing.T) {
	t.Parallel()
	who, err := user.Lookup("nobody")
	must(t, err)
	uid, err := strconv.Atoi(who.Uid)
	must(t, err)
	gid, err := strconv.Atoi(who.Gid)
	must(t, err)
	if syscall.Geteuid() != 0 {
		return // only root can change its user
	}
	b := open(t, "sqlite://"+filepath.Join(t.TempDir(), "ledger.db"))
	j := b.job("id -u; id -G; echo units=2 >&3")
	j.Settle, j.Command.Dir = job.SettleReport, "/"
	j.Command.User = &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid),
		Groups: []uint32{uint32(gid), 12345}}
	var out strings.Builder
	j.Command.Stdout = &out
	b.run(j)
	b.wantSpent("default", 2)
	if want := who.Uid + "\n" + who.Gid + " 12345\n"; out.String() != want {
		t.Errorf("it runs as %q, want %q", out.String(), want)
	}
}

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

// TestTakenOver: a run that takes over the hold of one that was killed also books what the
// killed run held, unless the settlement states what that run used.
func TestTakenOver(t *testing.T) {
	onBoth(t, func(t *testing.T, b *bench) {
		b.limits[0].Units = 1000
		want := int64(0)
		for i, c := range []struct {
			settle job.Settlement
			line   string
			units  int64
		}{
			{job.SettleAll, "exit 1", 4}, {job.SettleExit, "exit 1", 4}, {job.SettleExit, "", 4},
			{job.SettleReport, "echo units=3 >&3", 7}, {job.SettleReport, "exit 1", 4},
			{job.SettleProxy, "", 0},
		} {
			j := b.job(c.line)
			j.Settle, j.Key, j.RunID = c.settle, fmt.Sprint("key", i), "run"
			call := j.Call
			call.Key, call.Labels = j.Key, quota.Labels{quota.LabelJob: j.Name, quota.LabelRun: "run"}
			_, err := j.Budget.Hold(t.Context(), quota.ReserveRequest{Call: call, TTL: j.TTL,
				Lapse: quota.LapseCharge})
			must(t, err)
			out := b.run(j)
			want += c.units
			b.wantSpent("default", want)
			if out.Took["default"] != c.units {
				t.Errorf("%v: took %v", c, out.Took)
			}
		}
	})
}
