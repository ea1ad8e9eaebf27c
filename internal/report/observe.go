package report

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"quotabudget/internal/ledger/memstore"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// Finding holds the charges in a span of time that a limit would have refused.
type Finding struct {
	Limit   quota.Limit
	From    time.Time // the first entry of the log; zero if there is none
	Charged Refusals  // all charges in the span
	Refused Refusals
	By      []RefusedBy   // refused units by labels, most first
	Hours   []RefusedHour // refused units by hour in UTC, in order
	Exact   bool
	Note    string // why the finding is not exact, or ""
}

// Refusals is a number of units and of charges.
type Refusals struct {
	Units   int64 `json:"units"`
	Charges int64 `json:"calls"`
}

func (r *Refusals) add(units int64) { r.Units, r.Charges = r.Units+units, r.Charges+1 }

// Share returns the fraction of the charged units that would have been refused.
func (f Finding) Share() float64 {
	if f.Charged.Units == 0 {
		return 0
	}
	return float64(f.Refused.Units) / float64(f.Charged.Units)
}

// RefusedBy counts the charges with the same labels that would have been refused.
type RefusedBy struct {
	Labels quota.Labels `json:"labels"` // without the run and the denying limit
	Refusals
}

// RefusedHour counts the charges that would have been refused in an hour.
type RefusedHour struct {
	At words.Time `json:"at"` // start
	Refusals
}

// Replay charges the entries of a log again, under a limit that denies. A charge that it refuses
// does not count for later ones. Create it with NewReplay, Add all entries in order, and call
// Finding.
type Replay struct {
	since, until time.Time
	reset        time.Time
	bucket       *memstore.Bucket
	finding      Finding
	by           map[string]RefusedBy
}

// NewReplay returns the replay of the entries after since, up to until (zero for all). Earlier
// entries only fill the window. reset is the last end of an anchored window, as the upstream
// reported it (zero for none).
func NewReplay(l quota.Limit, reset, since, until time.Time) *Replay {
	r := &Replay{since: since, until: until, reset: reset,
		bucket:  memstore.NewBucket("", l.Bucket),
		finding: Finding{Limit: l, Hours: []RefusedHour{}}, by: make(map[string]RefusedBy)}
	switch w := l.Window; {
	case w.Concurrent:
		r.finding.Note = "the log does not record what was held at once"
	case w.Anchored:
		r.finding.Note = "the ledger does not keep the earlier ends that the upstream reported: " +
			"before the last one, the window is taken to slide"
	case l.Headroom > 0:
		r.finding.Note = "the log does not record which charges were made with --manual: " +
			"none is taken to use the headroom"
	}
	r.finding.Exact = r.finding.Note == ""
	return r
}

// Settled records that calls are booked when they end, although the limit would have decided on an
// estimate when they began.
func (r *Replay) Settled() {
	if r.finding.Exact {
		r.finding.Exact, r.finding.Note = false, "calls whose price is known after them are "+
			"played when they were booked, and by what they took: the log does not record the "+
			"estimates"
	}
}

// Add replays an entry.
func (r *Replay) Add(e quota.Entry) error {
	f := &r.finding
	if f.From.IsZero() {
		f.From = e.At
	}
	fits, err := r.charge(e)
	if err != nil || !e.At.After(r.since) || !r.until.IsZero() && e.At.After(r.until) {
		return err
	}
	f.Charged.add(e.Units)
	if fits {
		return nil
	}
	f.Refused.add(e.Units)
	// Add the refused units to the sums by labels and by hour.
	labels := e.Labels.WithoutRun()
	delete(labels, quota.LabelDenied)
	sum := r.by[labels.Encode()]
	sum.Labels = labels.With(nil)
	sum.add(e.Units)
	r.by[labels.Encode()] = sum
	hour := words.Time(e.At.UTC().Truncate(time.Hour))
	if n := len(f.Hours); n == 0 || f.Hours[n-1].At != hour {
		f.Hours = append(f.Hours, RefusedHour{At: hour})
	}
	f.Hours[len(f.Hours)-1].add(e.Units)
	return nil
}

// charge reports whether an entry fits. Units that were spent elsewhere or booked by a person
// count, but cannot be refused.
func (r *Replay) charge(e quota.Entry) (fits bool, err error) {
	l := r.finding.Limit
	if l.Window.Concurrent {
		return true, nil
	}
	if l.Window.Anchored && !r.reset.IsZero() && !e.At.Before(r.reset.Add(-l.Window.Length)) {
		r.bucket.State.ResetAt = r.reset.UnixMicro()
	}
	l.Observe = e.Labels[quota.LabelSource] != ""
	c := quota.Charge{NewValues: true, Costs: []quota.Cost{{Bucket: l.Bucket, Units: e.Units}},
		Limits: []quota.Limit{l}}
	d, err := memstore.Charge(e.At.UnixMicro(), []*memstore.Bucket{r.bucket}, c)
	if d.Never {
		return false, nil
	}
	return d.Allowed, err
}

// Finding returns the result.
func (r *Replay) Finding() Finding {
	f := r.finding
	f.By = sorted(r.by, func(a, b RefusedBy) int {
		return cmp.Or(cmp.Compare(b.Units, a.Units),
			cmp.Compare(a.Labels.Encode(), b.Labels.Encode()))
	})
	return f
}

// sorted returns the values of a map in the given order. The result is never nil, which would be
// null in JSON.
func sorted[K comparable, V any](all map[K]V, order func(a, b V) int) []V {
	return append([]V{}, slices.SortedFunc(maps.Values(all), order)...)
}

// Common returns the value of a label that all refused charges share, or "".
func (f Finding) Common(label string) string {
	if len(f.By) == 0 {
		return ""
	}
	value := f.By[0].Labels[label]
	other := func(g RefusedBy) bool { return g.Labels[label] != value }
	if slices.ContainsFunc(f.By, other) {
		return ""
	}
	return value
}

// Hour returns the UTC hour of the day that contains all refused charges. It returns false if there
// are several.
func (f Finding) Hour() (hour int, all bool) {
	for i, h := range f.Hours {
		other := time.Time(h.At).Hour()
		if i > 0 && other != hour {
			return 0, false
		}
		hour = other
	}
	return hour, len(f.Hours) > 0
}
