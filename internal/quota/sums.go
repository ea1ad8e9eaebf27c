package quota

import (
	"cmp"
	"context"
	"fmt"
	"iter"
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
	Since      time.Time // earliest start of a grain; zero for all
}

// Sum is what was spent in one grain of time under one set of labels.
type Sum struct {
	At      time.Time // the start of the grain
	Labels  Labels    // labels of the entries, without the run; other sums may share them
	Units   int64
	Charges int64 // number of entries
}

// GrainOf returns the start of the grain that at lies in.
func GrainOf(at time.Time) time.Time { return at.UTC().Truncate(Grain) }

// AddUp returns the sums of entries, in order of grains and labels.
func AddUp(entries []Entry) []Sum {
	var t Tally
	for _, e := range entries {
		t.Add(e.At.UnixMicro(), e.Labels.WithoutRun().Encode(), e.Units, 1)
	}
	sums, _ := t.Sums(SumQuery{}) // Encode wrote the labels
	return sums
}

// Tally adds up entries by grains and by lines of labels. Times are Unix µs.
type Tally struct{ sums map[tallyKey]counts }

type tallyKey struct {
	at     int64  // start of the grain
	labels string // a line, without the run
}

type counts struct{ units, charges int64 }

// Add adds units and charges to the grain that a time lies in.
func (t *Tally) Add(at int64, labels string, units, charges int64) {
	if t.sums == nil {
		t.sums = make(map[tallyKey]counts)
	}
	key := tallyKey{at - at%Grain.Microseconds(), labels}
	c := t.sums[key]
	t.sums[key] = counts{c.units + units, c.charges + charges}
}

// DropZero removes sums of 0, which remain if every entry was removed.
func (t *Tally) DropZero() {
	maps.DeleteFunc(t.sums, func(_ tallyKey, c counts) bool { return c == counts{} })
}

// Each calls do for each sum, in the order of time and labels.
func (t *Tally) Each(do func(at int64, labels string, units, charges int64)) {
	keys := slices.SortedFunc(maps.Keys(t.sums), func(a, b tallyKey) int {
		return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.labels, b.labels))
	})
	for _, key := range keys {
		c := t.sums[key]
		do(key.at, key.labels, c.units, c.charges)
	}
}

// Sums returns the sums of a query in order. Errors: DamagedError when labels cannot be read.
func (t *Tally) Sums(q SumQuery) (sums []Sum, err error) {
	parsed := make(map[string]Labels)
	t.Each(func(at int64, line string, units, charges int64) {
		labels, known := parsed[line]
		if !known {
			var unread error
			if labels, unread = ParseLabels(line); unread != nil {
				err = &DamagedError{Credential: q.Credential, Bucket: q.Bucket,
					What: "the labels of a sum cannot be read"}
			}
			parsed[line] = labels
		}
		sums = append(sums, Sum{StampTime(at), labels, units, charges})
	})
	return sums, err
}

// Corrections returns the right value of each sum that differs from the stored one: 0 for a stored
// sum without entries.
func (t *Tally) Corrections(stored Tally) (right Tally) {
	right.sums = make(map[tallyKey]counts)
	for _, tally := range []Tally{*t, stored} {
		for key := range tally.sums {
			if t.sums[key] != stored.sums[key] {
				right.sums[key] = t.sums[key]
			}
		}
	}
	return right
}

// Differs returns a finding if the sums that a store keeps differ from those of its entries.
func (t *Tally) Differs(stored Tally) (found Findings) {
	wrong := make(map[int64]bool)
	for key := range t.Corrections(stored).sums {
		wrong[key.at] = true
	}
	if len(wrong) > 0 {
		first := slices.Min(slices.Collect(maps.Keys(wrong)))
		found.Add(fmt.Sprintf("the sums by label do not match the entries in %d periods of %s, "+
			"the first from %s", len(wrong), shortDuration(Grain), utcText(first)),
			"they are added up again", true)
	}
	return found
}

// SumReader reads the log and its sums.
type SumReader interface {
	EntryReader
	Sums(ctx context.Context, q SumQuery) ([]Sum, error)
}

// SumsAfter returns the sums of the entries stamped after q.Since, which may lie in the middle of a
// grain: it reads the entries of that grain, and the sums of all others.
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

// SumsBetween is like SumsAfter, without the entries stamped after until, unless until is zero.
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

// EntryReader reads the log.
type EntryReader interface {
	Entries(ctx context.Context, q Query) ([]Entry, error)
}

// All returns the entries that q picks, oldest first. It reads pages of 2,000, so that a long log
// takes little memory. An error comes last. q.Limit and q.First must be 0.
func All(ctx context.Context, l EntryReader, q Query) iter.Seq2[Entry, error] {
	return func(yield func(Entry, error) bool) {
		q.First = 2000
		for {
			page, err := l.Entries(ctx, q)
			if err != nil {
				yield(Entry{}, err)
				return
			}
			for _, e := range page {
				if !yield(e, nil) {
					return
				}
			}
			if len(page) < q.First {
				return
			}
			q.Since = page[len(page)-1].At
		}
	}
}

// Spent holds the units spent by one charge, or by several in one grain of time.
type Spent struct {
	At      time.Time // time of the charge, or start of the grain of several
	Labels  Labels
	Units   int64
	Charges int64
}

// SpentQuery picks charges of one bucket.
type SpentQuery struct {
	Credential, Bucket string
	Limits             []Limit   // limits of the bucket; those of other buckets are ignored
	Reset              time.Time // BucketUsage.ResetAt
	Now, Since         time.Time
}

// Read reads the sums of the ledger, which are few however many charges there were. A charge in a
// sum counts at the start of its grain, so it leaves a window up to ten minutes early. To know
// exactly what each window contains now, Read reads the charges of the grain in which the window
// begins one by one; for a restoring window, those of the last hour.
func (q SpentQuery) Read(ctx context.Context, l SumReader) ([]Spent, error) {
	from := SumQuery{Credential: q.Credential, Bucket: q.Bucket, Since: GrainOf(q.Since)}
	sums, err := l.Sums(ctx, from)
	if err != nil {
		return nil, err
	}
	exact := make(map[time.Time]bool) // grains
	for _, limit := range q.Limits {
		if limit.Bucket == q.Bucket && !limit.Window.Concurrent {
			q.exact(limit, exact)
		}
	}
	var spent []Spent
	for _, s := range sums {
		if !exact[s.At] {
			spent = append(spent, Spent(s))
		}
	}
	for grain := range exact {
		entries, err := l.Entries(ctx, Query{Credential: q.Credential, Bucket: q.Bucket,
			Since: grain.Add(-time.Microsecond), Until: grain.Add(Grain - time.Microsecond)})
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			spent = append(spent, Spent{e.At, e.Labels, e.Units, 1})
		}
	}
	slices.SortStableFunc(spent, func(a, b Spent) int { return a.At.Compare(b.At) })
	return spent, nil
}

// exact adds the grains whose charges are read one by one for a limit.
func (q SpentQuery) exact(l Limit, grains map[time.Time]bool) {
	begin := l.Since(q.Now, q.Reset).Add(time.Microsecond)
	switch {
	case l.Window.IsRestoring():
		if hour := q.Now.Add(-time.Hour); begin.Before(hour) {
			begin = hour
		}
		for at := GrainOf(begin); !at.After(q.Now); at = at.Add(Grain) {
			grains[at] = true
		}
	case !l.Window.IsCalendar() || !GrainOf(begin).Equal(begin):
		grains[GrainOf(begin)] = true
	}
}
