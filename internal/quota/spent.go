package quota

import (
	"context"
	"slices"
	"time"
)

// Spent is units that were spent, by one charge or by several in one grain of time.
type Spent struct {
	At      time.Time // of the charge; of several, the beginning of their grain
	Labels  Labels
	Units   int64
	Charges int64
}

// SpentQuery picks what was spent of one bucket.
type SpentQuery struct {
	Credential, Bucket string
	Limits             []Limit   // of the bucket, or of others too
	Reset              time.Time // BucketUsage.ResetAt
	Now, Since         time.Time
}

// Read reads the sums of the ledger, which are few however many charges there were. A charge that
// is summed up counts as one at the beginning of its grain: it leaves a window up to ten minutes
// early. Those of the grain in which one of the limits' windows begins now are read one by one, so
// that what is inside each window now is exact; for a restoring window, those of the last hour.
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

// exact finds the grains whose charges are read one by one for a limit.
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
