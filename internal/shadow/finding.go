package shadow

import (
	"cmp"
	"slices"
	"time"

	"quotabudget/internal/quota"
)

// Finding is what a limit would have refused during a span of time.
type Finding struct {
	Limit   quota.Limit
	From    time.Time // the first entry of the log; zero if there is none
	Charged Sum       // in the span
	Refused Sum       // of Charged
	By      []Group   // refused units by labels, most first
	Hours   []Hour    // refused units by hour in UTC, in order
	Exact   bool
	Note    string // why it is not exact, or ""
}

// Sum is a number of units and of charges.
type Sum struct{ Units, Charges int64 }

func (s *Sum) add(units int64) { s.Units, s.Charges = s.Units+units, s.Charges+1 }

// Share returns the fraction of the charged units that would have been refused.
func (f Finding) Share() float64 {
	if f.Charged.Units == 0 {
		return 0
	}
	return float64(f.Refused.Units) / float64(f.Charged.Units)
}

// Group is what would have been refused of charges with the same labels.
type Group struct {
	Labels quota.Labels // without the run and the denying limit
	Sum
}

// Hour is what would have been refused in an hour.
type Hour struct {
	At time.Time // start, UTC
	Sum
}

// Replay replays a log. Create it with Begin, Add all entries in order, and call Finding.
type Replay struct {
	since, until time.Time
	limit        *Limit
	found        Finding
	by           map[string]*Group
	hours        map[time.Time]*Hour
}

// Begin replays for the entries after since, up to until (zero for all). Earlier entries only
// fill the window. reset is as in New.
func Begin(of quota.Limit, reset, since, until time.Time) *Replay {
	r := &Replay{since: since, until: until, limit: New(of, reset),
		found: Finding{Limit: of, Exact: true},
		by:    make(map[string]*Group), hours: make(map[time.Time]*Hour)}
	switch w := of.Window; {
	case w.Concurrent:
		r.found.Note = "the log does not record what was held at once"
	case w.Anchored:
		r.found.Note = "the ledger does not keep the earlier ends that the upstream reported: " +
			"before the last one, the window is taken to slide"
	case of.Headroom > 0:
		r.found.Note = "the log does not record which charges were made with --manual: " +
			"none is taken to use the headroom"
	}
	r.found.Exact = r.found.Note == ""
	return r
}

// Settled records that calls are booked when they have ended, although the limit would have been
// asked when they began, for an estimate.
func (r *Replay) Settled() {
	if r.found.Exact {
		r.found.Exact, r.found.Note = false, "calls whose price is known after them are played "+
			"when they were booked, and by what they took: the log does not record the estimates"
	}
}

// Add replays an entry.
func (r *Replay) Add(e quota.Entry) {
	f := &r.found
	if f.From.IsZero() {
		f.From = e.At
	}
	fits := true
	switch {
	case f.Limit.Window.Concurrent:
	case e.Labels[quota.LabelSource] != "": // spent elsewhere, or booked by hand
		r.limit.Count(e.At, e.Units)
	default:
		fits = r.limit.Admits(e.At, e.Units)
	}
	if !e.At.After(r.since) || !r.until.IsZero() && e.At.After(r.until) {
		return
	}
	f.Charged.add(e.Units)
	if !fits {
		r.refuse(e)
	}
}

func (r *Replay) refuse(e quota.Entry) {
	r.found.Refused.add(e.Units)
	labels := e.Labels.WithoutRun()
	delete(labels, quota.LabelDenied)
	line, hour := labels.Encode(), e.At.UTC().Truncate(time.Hour)
	if r.by[line] == nil {
		r.by[line] = &Group{Labels: labels.With(nil)}
	}
	r.by[line].add(e.Units)
	if r.hours[hour] == nil {
		r.hours[hour] = &Hour{At: hour}
	}
	r.hours[hour].add(e.Units)
}

// Finding returns the result.
func (r *Replay) Finding() Finding {
	f := r.found
	for _, g := range r.by {
		f.By = append(f.By, *g)
	}
	slices.SortFunc(f.By, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Units, a.Units),
			cmp.Compare(a.Labels.Encode(), b.Labels.Encode()))
	})
	for _, h := range r.hours {
		f.Hours = append(f.Hours, *h)
	}
	slices.SortFunc(f.Hours, func(a, b Hour) int { return a.At.Compare(b.At) })
	return f
}

// Common returns the value of a label that all refused charges share, or "".
func (f Finding) Common(label string) string {
	if len(f.By) == 0 {
		return ""
	}
	value := f.By[0].Labels[label]
	other := func(g Group) bool { return g.Labels[label] != value }
	if slices.ContainsFunc(f.By, other) {
		return ""
	}
	return value
}

// Hour returns the hour of the day, UTC, in which all refused charges were. It returns false if
// there are several.
func (f Finding) Hour() (hour int, all bool) {
	for i, h := range f.Hours {
		if i > 0 && h.At.Hour() != hour {
			return 0, false
		}
		hour = h.At.Hour()
	}
	return hour, len(f.Hours) > 0
}
