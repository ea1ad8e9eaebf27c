package ledger_test

import (
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// Twenty processes that charge at once are together allowed exactly the limit, on each ledger:
// invariant I2, without units left over.
func TestI2_TwentyProcessesAreAllowedExactlyTheLimit(t *testing.T) {
	for name, m := range mixes() {
		if name == endless {
			continue
		}
		t.Run("SQLite/"+name, func(t *testing.T) {
			twenty(t, fileURL(t), name, m)
		})
		t.Run("Redis/"+name, func(t *testing.T) {
			twenty(t, redistest.Start(t, redistest.Options{}).URL(), name, m)
		})
	}
}

func fileURL(t *testing.T) string {
	return "sqlite://" + filepath.ToSlash(filepath.Join(t.TempDir(), "ledger.db"))
}

// A process that is killed in the middle of its work loses no charge that was allowed.
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

func twenty(t *testing.T, ledgerURL, name string, m mix) {
	const processes = 20
	var children []*process
	for range processes {
		children = append(children, startChild(t, ledgerURL, name))
	}
	for _, p := range children {
		p.start.Close()
	}
	answers := make(map[string]string) // what was allowed, by ID
	for _, p := range children {
		for p.lines.Scan() {
			id, units, _ := strings.Cut(p.lines.Text(), " ")
			if answers[id] != "" {
				t.Errorf("%s was allowed twice", id)
			}
			answers[id] = units
		}
		if err := p.Wait(); err != nil {
			t.Errorf("child: %v: %s", err, p.stderr)
		}
	}
	l, err := ledger.Open(t.Context(), ledgerURL)
	must(t, err)
	defer l.Close()
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

// logged adds up the log of a bucket, checks each running total, and takes what it finds out of
// answers.
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
