package quota

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"time"
)

// Grain is the length of time that one Sum covers. Grains begin at multiples of it, UTC, by the
// ledger's clock.
const Grain = 10 * time.Minute

// SumQuery picks sums of one bucket.
type SumQuery struct {
	Credential string
	Bucket     string
	Since      time.Time // whole grains: those that begin then or later; zero for all
}

// Sum is what was spent in one grain of time under one set of labels.
type Sum struct {
	At      time.Time // the start of the grain
	Labels  Labels    // of the entries, without the run; other sums may share them
	Units   int64
	Charges int64 // how many entries
}

// GrainOf is the start of the grain that at lies in.
func GrainOf(at time.Time) time.Time { return at.UTC().Truncate(Grain) }

// Grained is the start of the grain that a time lies in, both in Unix µs.
func Grained(at int64) int64 { return at - at%Grain.Microseconds() }

// AddUp is the sums of entries, by grain and then by labels.
func AddUp(entries []Entry) []Sum {
	var t Tally
	for _, e := range entries {
		t.Add(e.At.UnixMicro(), e.Labels.WithoutRun().Encode(), e.Units, 1)
	}
	sums, _ := t.Sums() // Encode wrote them
	return sums
}

// Tally adds up what is given to it by grains and by lines of labels. Times are Unix µs.
type Tally struct{ sums map[tallied]spent }

type tallied struct {
	at     int64
	labels string // a line, without the run
}

type spent struct{ units, charges int64 }

// Add adds what was spent at a time, anywhere in a grain.
func (t *Tally) Add(at int64, labels string, units, charges int64) {
	if t.sums == nil {
		t.sums = make(map[tallied]spent)
	}
	k := tallied{Grained(at), labels}
	was := t.sums[k]
	t.sums[k] = spent{was.units + units, was.charges + charges}
}

// DropZero forgets the sums of nothing, which are left where all that was added was taken out.
func (t *Tally) DropZero() {
	maps.DeleteFunc(t.sums, func(_ tallied, s spent) bool { return s == spent{} })
}

// DropBefore forgets the sums of grains before the one in which a time lies.
func (t *Tally) DropBefore(at int64) {
	maps.DeleteFunc(t.sums, func(k tallied, _ spent) bool { return k.at < Grained(at) })
}

// Drop forgets the sums of the grain in which a time lies.
func (t *Tally) Drop(at int64) {
	maps.DeleteFunc(t.sums, func(k tallied, _ spent) bool { return k.at == Grained(at) })
}

// In is the units in the grain in which a time lies.
func (t *Tally) In(at int64) (units int64) {
	for k, s := range t.sums {
		if k.at == Grained(at) {
			units += s.units
		}
	}
	return units
}

// Each calls do for what was added up, in order.
func (t *Tally) Each(do func(at int64, labels string, units, charges int64)) {
	order := slices.SortedFunc(maps.Keys(t.sums), func(a, b tallied) int {
		return cmp.Or(cmp.Compare(a.at, b.at), cmp.Compare(a.labels, b.labels))
	})
	for _, k := range order {
		do(k.at, k.labels, t.sums[k].units, t.sums[k].charges)
	}
}

// Sums is what was added up. It fails when a line of labels cannot be read.
func (t *Tally) Sums() (sums []Sum, err error) {
	parsed := make(map[string]Labels)
	t.Each(func(at int64, line string, units, charges int64) {
		if parsed[line] == nil && err == nil {
			parsed[line], err = ParseLabels(line)
		}
		sums = append(sums, Sum{time.UnixMicro(at).UTC(), parsed[line], units, charges})
	})
	return sums, err
}

// Differs says, for a check, where the sums that a ledger keeps are others than those of its
// entries.
func (t *Tally) Differs(kept Tally) (found Findings) {
	wrong := make(map[int64]bool)
	for _, sums := range []map[tallied]spent{t.sums, kept.sums} {
		for k := range sums {
			if t.sums[k] != kept.sums[k] {
				wrong[k.at] = true
			}
		}
	}
	if len(wrong) > 0 {
		first := slices.Min(slices.Collect(maps.Keys(wrong)))
		found.Add(fmt.Sprintf("the sums by label do not match the entries in %d periods of %s, "+
			"the first from %s", len(wrong), shortDuration(Grain), utcText(first)),
			"they are added up again", true)
	}
	return found
}

// SumsAfter is the sums of the entries stamped after q.Since, which may lie in the middle of a
// grain: of that grain the entries are read, of all others the sums.
func SumsAfter(ctx context.Context, l Ledger, q SumQuery) ([]Sum, error) {
	if q.Since.IsZero() {
		return l.Sums(ctx, q)
	}
	since := q.Since.Truncate(time.Microsecond)
	q.Since = GrainOf(since.Add(Grain))
	begun, err := l.Entries(ctx, Query{Credential: q.Credential, Bucket: q.Bucket, Since: since,
		Until: q.Since.Add(-time.Microsecond)})
	if err != nil {
		return nil, err
	}
	sums, err := l.Sums(ctx, q)
	return append(AddUp(begun), sums...), err
}
