package quota

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
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

// GrainOf returns the start of the grain that at lies in.
func GrainOf(at time.Time) time.Time { return at.UTC().Truncate(Grain) }

// Grained returns the start of the grain that a time lies in, both in Unix µs.
func Grained(at int64) int64 { return at - at%Grain.Microseconds() }

// AddUp returns the sums of entries, by grain and then by labels.
func AddUp(entries []Entry) []Sum {
	var t Tally
	for _, e := range entries {
		t.Add(e.At.UnixMicro(), e.Labels.WithoutRun().Encode(), e.Units, 1)
	}
	sums, _ := t.Sums() // Encode wrote them
	return sums
}

// Tally adds up entries by grains and by lines of labels. Times are Unix µs.
type Tally struct{ grains []grain } // by time

// grain is what was spent in one grain.
type grain struct {
	at     int64
	spent  []spent
	merged int // so many of the first are in order, and each line is in them once
}

type spent struct {
	labels         string // a line, without the run
	units, charges int64
}

// Add adds what was spent at a time, anywhere in a grain.
func (t *Tally) Add(at int64, labels string, units, charges int64) {
	at = Grained(at)
	i := len(t.grains) - 1 // mostly the same grain as before
	if i < 0 || t.grains[i].at != at {
		i = t.from(at)
	}
	if i == len(t.grains) || t.grains[i].at != at {
		t.grains = slices.Insert(t.grains, i, grain{at: at, spent: make([]spent, 0, 16)})
	}
	g := &t.grains[i]
	g.spent = append(g.spent, spent{labels, units, charges})
	if len(g.spent) > 2*g.merged+1024 {
		g.merge()
	}
}

// from returns the index of the first grain that begins at a time or later.
func (t *Tally) from(at int64) int {
	i, _ := slices.BinarySearchFunc(t.grains, at, func(g grain, at int64) int {
		return cmp.Compare(g.at, at)
	})
	return i
}

// in returns the grain in which a time lies, if there is any.
func (t *Tally) in(at int64) []grain {
	return t.grains[t.from(Grained(at)):t.from(Grained(at)+1)]
}

// merge puts the lines in order, and adds up those that are the same.
func (g *grain) merge() {
	if g.merged == len(g.spent) {
		return
	}
	slices.SortFunc(g.spent, func(a, b spent) int { return strings.Compare(a.labels, b.labels) })
	kept := g.spent[:1]
	for _, s := range g.spent[1:] {
		if last := &kept[len(kept)-1]; last.labels == s.labels {
			last.units, last.charges = last.units+s.units, last.charges+s.charges
		} else {
			kept = append(kept, s)
		}
	}
	g.spent, g.merged = kept, len(kept)
}

// DropZero removes sums of 0, which remain where every entry was removed.
func (t *Tally) DropZero() {
	for i := range t.grains {
		g := &t.grains[i]
		g.merge()
		g.spent = slices.DeleteFunc(g.spent, func(s spent) bool { return s.units|s.charges == 0 })
		g.merged = len(g.spent)
	}
	t.grains = slices.DeleteFunc(t.grains, func(g grain) bool { return g.merged == 0 })
}

// Each calls do for each sum, in order.
func (t *Tally) Each(do func(at int64, labels string, units, charges int64)) {
	for i := range t.grains {
		g := &t.grains[i]
		g.merge()
		for _, s := range g.spent {
			do(g.at, s.labels, s.units, s.charges)
		}
	}
}

// Sums returns the sums in order. It fails when a line of labels cannot be read.
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

// Differs returns a finding if the sums that a store keeps are not those of its entries.
func (t *Tally) Differs(kept Tally) (found Findings) {
	t.DropZero()
	kept.DropZero()
	wrong := make(map[int64]bool)
	for _, of := range [][2]*Tally{{t, &kept}, {&kept, t}} {
		for _, g := range of[0].grains {
			other := of[1].in(g.at)
			if len(other) == 0 || !slices.Equal(g.spent, other[0].spent) {
				wrong[g.at] = true
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

// SumReader reads the log, and its sums.
type SumReader interface {
	EntryReader
	Sums(ctx context.Context, q SumQuery) ([]Sum, error)
}

// SumsAfter returns the sums of the entries stamped after q.Since, which may lie in the middle of a
// grain: of that grain the entries are read, of all others the sums.
func SumsAfter(ctx context.Context, l SumReader, q SumQuery) ([]Sum, error) {
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

// SumsBetween returns the sums of SumsAfter without the entries stamped after until; a zero time is
// the end of the log.
func SumsBetween(ctx context.Context, l SumReader, q SumQuery, until time.Time) ([]Sum, error) {
	sums, err := SumsAfter(ctx, l, q)
	if err != nil || until.IsZero() {
		return sums, err
	}
	last := GrainOf(until)
	sums = slices.DeleteFunc(sums, func(s Sum) bool { return !s.At.Before(last) })
	since := last.Add(-time.Microsecond)
	if q.Since.After(since) {
		since = q.Since
	}
	ended, err := l.Entries(ctx, Query{Credential: q.Credential, Bucket: q.Bucket, Since: since,
		Until: until})
	return append(sums, AddUp(ended)...), err
}
