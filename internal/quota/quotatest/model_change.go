package quotatest

import (
	"context"
	"slices"
	"time"

	"quotabudget/internal/quota"
)

// resume returns the buckets of a reservation, with lapsed holds written, and the time to decide.
func (m *model) resume(reservation string) (buckets []*bucket, n int64) {
	_, names, _ := quota.ParseReservation(reservation)
	buckets, n = m.begin(names...)
	m.commit(buckets)
	return buckets, n
}

// Settle turns holds into entries of the units used.
func (m *model) Settle(_ context.Context, s quota.Settle) (quota.Decision, error) {
	if err := s.Check(); err != nil {
		return quota.Decision{}, err
	}
	buckets, n := m.resume(s.Reservation)
	costs := s.SettledCosts()
	asked := question("", costs, "settled")
	if d, err, known := m.replay("settled "+s.Reservation, asked); known {
		return d, err
	}
	found, short := false, false
	for i, b := range buckets {
		units, ok := b.setAside(s.Reservation, n)
		found = found || ok
		if costs[i].Units == quota.AllUnits || !ok {
			costs[i].Units = units
		}
		short = short || s.Within && costs[i].Units > units
	}
	switch {
	case !found:
		return quota.Decision{}, quota.ErrNoReservation
	case short:
		return quota.Decision{}, quota.ErrReservationShort
	}
	d := quota.Decision{Allowed: true, At: moment(n), Units: quota.UnitsOf(costs)}
	labels := make([]quota.Labels, len(buckets))
	for i, b := range buckets {
		if h := b.find(s.Reservation, n); h != nil {
			labels[i] = h.labels
		} else if at := b.lapsedAt(s.Reservation); at >= 0 {
			labels[i] = b.entries[at].Labels
		}
		open := b.find(s.Reservation, n) != nil
		d.Late = d.Late || !open && b.lapsedAt(s.Reservation) >= 0
		stays := b.settle(s.Reservation, costs[i].Units, n)
		if stays > 0 && d.Entry == "" {
			d.Entry, _, _ = quota.ParseReservation(s.Reservation)
		}
		if more := costs[i].Units - stays; more > 0 {
			b.write(n, s.ID, more, labels[i].With(s.Labels), s.Limits)
			d.Entry = s.ID
		}
	}
	d.Remaining = remaining(buckets, s.Limits, n, false, true)
	if !s.Once {
		m.keep("settled "+s.Reservation, asked, d, s.Limits)
	}
	return d, nil
}

// setAside returns the units left of a reservation, or of the entry that it became.
func (b *bucket) setAside(reservation string, n int64) (units int64, ok bool) {
	if h := b.find(reservation, n); h != nil {
		return h.Left, true
	}
	if i := b.lapsedAt(reservation); i >= 0 {
		return b.entries[i].Units, true
	}
	return 0, false
}

// lapsedAt returns the index of the entry of a lapsed reservation, or -1.
func (b *bucket) lapsedAt(reservation string) int {
	b.lapsed[reservation] = slices.DeleteFunc(slices.Clone(b.lapsed[reservation]),
		func(at int64) bool { return b.entryAt(at) < 0 })
	if len(b.lapsed[reservation]) == 0 {
		return -1
	}
	return b.entryAt(b.lapsed[reservation][0])
}

// settle ends a hold. If the hold has lapsed, settle leaves at most units of its entry, and returns
// how many stay.
func (b *bucket) settle(reservation string, units, n int64) (stays int64) {
	if b.find(reservation, n) != nil {
		b.drop(reservation)
		return 0
	}
	i := b.lapsedAt(reservation)
	if i < 0 {
		return 0
	}
	b.lapsed[reservation] = b.lapsed[reservation][1:]
	stays = min(units, b.entries[i].Units)
	b.entries[i].Units = stays
	b.dropEmpty()
	return stays
}

func (b *bucket) dropEmpty() {
	b.entries = slices.DeleteFunc(b.entries, func(e quota.Entry) bool { return e.Units == 0 })
}

// Extend prolongs a hold.
func (m *model) Extend(_ context.Context, e quota.Extend) (until time.Time, err error) {
	buckets, n := m.resume(e.Reservation)
	for _, b := range buckets {
		if err := b.canDraw(e.Reservation, 0, n); err != nil {
			return until, err
		}
	}
	for _, b := range buckets {
		h := b.find(e.Reservation, n)
		if until = moment(n + e.TTL.Microseconds()); until.Before(h.ExpiresAt) {
			until = h.ExpiresAt
		}
		h.ExpiresAt = until // the same in all buckets
	}
	return until, nil
}

// Release removes holds.
func (m *model) Release(_ context.Context, reservation string) (map[string]int64, error) {
	buckets, n := m.resume(reservation)
	given := map[string]int64{}
	for _, b := range buckets {
		if err := b.canDraw(reservation, 0, n); err != nil {
			return nil, err
		}
		given[b.name] = b.find(reservation, n).Left
	}
	for _, b := range buckets {
		b.drop(reservation)
	}
	return given, nil
}

// GiveBack removes holds and the entries that they have lapsed into.
func (m *model) GiveBack(_ context.Context, reservation string) (map[string]int64, error) {
	buckets, n := m.resume(reservation)
	given, found := map[string]int64{}, false
	for _, b := range buckets {
		units, ok := b.setAside(reservation, n)
		given[b.name], found = units, found || ok
	}
	if !found {
		return nil, quota.ErrNoReservation
	}
	for _, b := range buckets {
		b.settle(reservation, 0, n)
	}
	return given, nil
}

// Cancel removes the entries.
func (m *model) Cancel(_ context.Context, of made) (any, error) {
	c, at := of.charge, of.decision.At.UnixMicro()
	for _, name := range names(c.Costs) {
		b := m.bucket(name)
		if i := b.entryAt(at); i < 0 || b.entries[i].ID != c.ID {
			return nil, quota.ErrNoEntry
		}
	}
	_, n := m.begin(names(c.Costs)...)
	for _, cost := range c.Costs {
		b := m.bucket(cost.Bucket)
		i := b.entryAt(at)
		units := b.entries[i].Units // a correction may have left fewer
		b.entries = slices.Delete(b.entries, i, i+1)
		if h := b.find(c.Reservation, n); h != nil && h.Drawn >= units && c.Draws(b.name) {
			h.Left, h.Drawn = h.Left+units, h.Drawn-units
		}
	}
	delete(m.answers, "key "+c.Key)
	return nil, nil
}

// Adjust corrects the entries one by one.
func (m *model) Adjust(_ context.Context, a quota.Adjust) (quota.Decision, error) {
	if d, err, known := m.replay("key "+a.Key, a.Fingerprint()); known {
		return d, err
	}
	buckets, n := m.begin(a.Bucket)
	b := m.commit(buckets).bucket(a.Bucket)
	after, until := a.Span(n)
	if err := a.Refuses(b.sum(after, until)); err != nil {
		return quota.Decision{}, err
	}
	at := until
	for a.Units > 0 && b.entryAt(at) >= 0 {
		at--
	}
	d := a.Done(a.ID, moment(at))
	switch {
	case at <= after:
		return quota.Decision{}, quota.ErrNoEntry
	case a.Units < 0:
		d.At = moment(n)
	}
	switch {
	case a.DryRun:
		return d, nil
	case a.Units < 0:
		b.takeOff(-a.Units, until)
		b.takings = append(b.takings, quota.Taking{At: d.At, ID: a.ID, Bucket: b.name,
			Units: -a.Units, Labels: named(a.Labels)})
	default:
		newest := b.newest
		b.write(at, a.ID, a.Units, a.Labels, a.Limits)
		b.newest = max(at, newest)
		slices.SortFunc(b.entries, func(a, b quota.Entry) int { return a.At.Compare(b.At) })
	}
	m.keep("key "+a.Key, a.Fingerprint(), d, a.Limits)
	return d, nil
}

// takeOff lowers the newest entries up to a time one unit at a time.
func (b *bucket) takeOff(units, until int64) {
	for i := len(b.entries) - 1; units > 0; i-- {
		e := &b.entries[i]
		for e.At.UnixMicro() <= until && units > 0 && e.Units > 0 {
			e.Units, units = e.Units-1, units-1
		}
	}
	b.dropEmpty()
}

// Suspend closes the bucket until the given time, or opens it.
func (m *model) Suspend(_ context.Context, s quota.Suspension) (any, error) {
	s.Since = m.clock.Now()
	m.bucket(s.Bucket).suspension = s
	return nil, nil
}

// Learn records the units that other programs used in one window, as the upstream reported.
func (m *model) Learn(_ context.Context, l quota.Learn) (quota.Learned, error) {
	if err := l.Check(); err != nil {
		return quota.Learned{}, err
	}
	buckets, n := m.begin(l.Limit.Bucket)
	b, w := m.commit(buckets).bucket(l.Limit.Bucket), l.Limit.Window
	b.reset = w.NextReset(b.reset, l.ResetMicros(), n)
	was := b.used(w, n) // including units that have left the window since the call
	switch {
	case w.IsRestoring():
		was += w.Restore.Restored(n - l.Asked(n))
	case !w.Anchored:
		was = b.used(w, l.Asked(n))
	}
	_, atMost := b.held(n)
	learned := quota.Learned{At: moment(n), Thought: max(0, l.Limit.Units-was-atMost)}
	if w.Anchored {
		learned.Reset = moment(b.reset)
	}
	if l.Stale(b.reset, n) || l.Remaining < 0 || l.Remaining >= learned.Thought {
		return learned, nil
	}
	learned.Units = learned.Thought - l.Remaining
	o := others{n, learned.Units + b.used(w, n) - b.alone().used(w, n), 0}
	if w.IsRestoring() {
		_, den := w.Restore.Terms()
		o.level = b.level(w, n) + learned.Units*den
	}
	b.others[w.String()] = o
	b.newest = max(b.newest, n-1)
	return learned, nil
}
