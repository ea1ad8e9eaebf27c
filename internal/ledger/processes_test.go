package ledger_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// TestI2_TwentyProcessesAreAllowedExactlyTheLimit checks invariant I2: of the charges of twenty
// concurrent processes, each ledger allows exactly as many as the limit.
func TestI2_TwentyProcessesAreAllowedExactlyTheLimit(t *testing.T) {
	for name, m := range mixes() {
		judge := spentExactly
		switch name {
		case endless, alone:
			continue
		case late:
			judge = settledExactly
		}
		t.Run("SQLite/"+name, func(t *testing.T) {
			testProcesses(t, 20, fileURL(t), name, m, judge)
		})
		t.Run("Redis/"+name, func(t *testing.T) {
			testProcesses(t, 20, redistest.Start(t, redistest.Options{}).URL(), name, m, judge)
		})
	}
}

// TestI2_SQLiteKeepsWritersApart: if a stopped process never ends its turn to write, other writers
// only have SQLite's lock. They are still exact, and none fails.
func TestI2_SQLiteKeepsWritersApart(t *testing.T) {
	url := fileURL(t)
	l, err := ledger.Open(t.Context(), url)
	must(t, err)
	defer l.Close()
	stopped, err := os.Open(strings.TrimPrefix(url, "sqlite://") + "-wal")
	must(t, err)
	defer stopped.Close()
	must(t, syscall.Flock(int(stopped.Fd()), syscall.LOCK_EX))
	testProcesses(t, 4, url, "one unit", mixes()["one unit"], spentExactly)
}

func fileURL(t testing.TB) string {
	return "sqlite://" + filepath.ToSlash(filepath.Join(t.TempDir(), "ledger.db"))
}

// TestKilledProcessLosesNoAllowedCharge: if a process is killed during its work, the ledger has
// every charge that was allowed.
func TestKilledProcessLosesNoAllowedCharge(t *testing.T) {
	file, answers := fileURL(t), make(map[string]bool)
	for round, patience := range []int{1, 57, 400} {
		p := startChild(t, file, endless)
		p.start.Close()
		for i := 0; p.lines.Scan(); i++ {
			id, _, _ := strings.Cut(p.lines.Text(), " ")
			answers[id] = true
			if i == patience {
				must(t, p.Process.Kill())
			}
		}
		p.Wait()
		l, err := ledger.Open(t.Context(), file)
		must(t, err)
		entries, err := l.Entries(t.Context(), quota.Query{Credential: "key1", Bucket: "default"})
		must(t, errors.Join(err, l.Close()))
		logged := make(map[string]bool)
		for _, e := range entries {
			logged[e.ID] = true
		}
		for id := range answers {
			if !logged[id] {
				t.Errorf("round %d: %s was allowed, and is gone", round, id)
			}
		}
		if unanswered := len(entries) - len(answers); unanswered > (round+1)*inFlight {
			t.Errorf("round %d: %d charges logged that were not answered", round, unanswered)
		}
	}
}

// testProcesses runs several processes, and lets judge compare the ledger with the lines that they
// print.
func testProcesses(t *testing.T, processes int, ledgerURL, name string, m mix,
	judge func(t *testing.T, l *ledger.Ledger, m mix, lines []string)) {
	var children []*process
	for range processes {
		children = append(children, startChild(t, ledgerURL, name))
	}
	for _, p := range children {
		p.start.Close()
	}
	var lines []string
	for _, p := range children {
		for p.lines.Scan() {
			lines = append(lines, p.lines.Text())
		}
		if err := p.Wait(); err != nil {
			t.Errorf("child: %v: %s", err, p.stderr)
		}
	}
	l, err := ledger.Open(t.Context(), ledgerURL)
	must(t, err)
	defer l.Close()
	judge(t, l, m, lines)
}

// settledExactly requires that the ledger has used exactly the units that the processes print.
func settledExactly(t *testing.T, l *ledger.Ledger, m mix, lines []string) {
	want := make([]int64, 2)
	for _, line := range lines {
		var input, money int64
		if _, err := fmt.Sscan(line, &input, &money); err != nil {
			t.Fatal(line, err)
		}
		want[0], want[1] = want[0]+input, want[1]+money
	}
	u, err := l.Usage(t.Context(), "key1", m.limits)
	for deadline := time.Now().Add(time.Minute); err == nil && u.Buckets[0].Held > 0 &&
		time.Now().Before(deadline); { // the last holds lapse within a millisecond
		u, err = l.Usage(t.Context(), "key1", m.limits)
	}
	must(t, err)
	for i, b := range u.Buckets {
		found, err := l.Check(t.Context(), "key1", b.Bucket, false)
		if b.Held != 0 || b.Limits[0].Used != want[i] || err != nil || len(found) > 0 {
			t.Errorf("%+v, want %d used; found %+v, %v", b, want[i], found, err)
		}
	}
}

// spentExactly requires that the log has each allowed charge, and that they add up to exactly the
// limit.
func spentExactly(t *testing.T, l *ledger.Ledger, m mix, lines []string) {
	answers := make(map[string]string) // units of each allowed charge, by ID
	for _, line := range lines {
		id, units, _ := strings.Cut(line, " ")
		if answers[id] != "" {
			t.Errorf("%s was allowed twice", id)
		}
		answers[id] = units
	}
	usage, err := l.Usage(t.Context(), "key1", m.limits)
	must(t, err)
	for _, b := range usage.Buckets {
		for _, limit := range b.Limits {
			if limitUnits := limit.Limit.Cap(false); limit.Used != limitUnits || limit.Remaining != 0 {
				t.Errorf("%s: %d units used, %d remaining, want %d and 0", limit.Limit.Name(),
					limit.Used, limit.Remaining, limitUnits)
			}
		}
		if m.corrects {
			sum := int64(0)
			for _, units := range answers {
				var n int64
				if _, err := fmt.Sscanf(units, b.Bucket+"=%d", &n); err != nil {
					t.Error(err)
				}
				sum += n
			}
			if sum != b.Limits[0].Used {
				t.Errorf("%d units were answered, %d are used", sum, b.Limits[0].Used)
			}
			return
		}
		if sum := logged(t, l, b.Bucket, answers); sum != b.Limits[0].Used {
			t.Errorf("%s: the log holds %d units, %d are used", b.Bucket, sum, b.Limits[0].Used)
		}
	}
	for id, units := range answers {
		if units != "" {
			t.Errorf("%s was allowed %s, which is not in the log", id, units)
		}
	}
}

// logged adds up the log of a bucket, checks each running total, and removes the entries that it
// finds from answers.
func logged(t *testing.T, l *ledger.Ledger, bucket string, answers map[string]string) (sum int64) {
	t.Helper()
	entries, err := l.Entries(t.Context(), quota.Query{Credential: "key1", Bucket: bucket})
	must(t, err)
	for i, e := range entries {
		sum += e.Units
		if e.Total != sum || i > 0 && !e.At.After(entries[i-1].At) {
			t.Fatalf("%s: entry %d has the total %d at %v, after %d", bucket, i, e.Total, e.At,
				sum-e.Units)
		}
		want := fmt.Sprintf("%s=%d", bucket, e.Units)
		before := answers[e.ID]
		answers[e.ID] = strings.TrimSpace(strings.Replace(" "+before+" ", " "+want+" ", " ", 1))
		if answers[e.ID] == before {
			t.Errorf("%s: %s is in the log with %d units, and the answer was %q", bucket, e.ID,
				e.Units, before)
		}
	}
	return sum
}

// busyTime is how long the processes of BenchmarkProcesses make charges.
const busyTime = 2 * time.Second

// BenchmarkProcesses compares the number of charges that several processes make on one file with
// that of a single process, and the charges of the slowest process with an equal share.
func BenchmarkProcesses(b *testing.B) {
	for _, processes := range []int{1, 4, 16} {
		b.Run(fmt.Sprintf("processes=%d", processes), func(b *testing.B) {
			var one, sum, least int
			for range b.N {
				one += race(b, 1)[0]
				counts := race(b, processes)
				for _, n := range counts {
					sum += n
				}
				least += slices.Min(counts)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(sum)/float64(b.N)/busyTime.Seconds(), "charges/s")
			b.ReportMetric(float64(sum)/float64(one), "x-one")
			b.ReportMetric(float64(least*processes)/float64(sum), "least-of-share")
		})
	}
}

// race runs busy processes on a new file, and returns the number of charges of each.
func race(b *testing.B, processes int) []int {
	url, counts := fileURL(b), make([]int, processes)
	var all []*process
	for range processes {
		all = append(all, startChild(b, url, alone))
	}
	var counting sync.WaitGroup
	for i, p := range all {
		p.start.Close()
		counting.Go(func() {
			for p.lines.Scan() {
				counts[i]++
			}
			p.Wait()
		})
	}
	time.Sleep(busyTime)
	for _, p := range all {
		p.Process.Kill()
	}
	counting.Wait()
	return counts
}
