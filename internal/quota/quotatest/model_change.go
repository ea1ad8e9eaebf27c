package quotatest

import (
	"cmp"
	"slices"
	"time"

	"quotabudget/internal/quota"
)

// Settle turns holds into entries of the units used.
func (m *model) Settle(s quota.Settle) (quota.Decision, error) {
	if err := s.Check(); err != nil {
		return quota.Decision{}, err
	}
	costs := s.SettledCosts()
	asked := question("", costs, "settled")
	m.lapse(names(costs)...)
	if d, err, known := m.replay("settled "+s.Reservation, asked); known {
		return d, err
	}
	d, found := quota.Decision{Allowed: true, Units: map[string]int64{}}, false
	var settled []*bucket
	err := m.change(names(costs), func(i int, b *bucket, n int64) error {
		set, ok := b.setAside(s.Reservation, n)
		units := costs[i].Units
		if units == quota.AllUnits || !ok {
			units = set.Left
		}
		if s.Within && units > set.Left {
			return quota.ErrReservationShort
		}
		found, d.Late = found || ok, d.Late || ok && !set.open(n)
		stays := b.settle(s.Reservation, units, n)
		if stays > 0 && d.Entry == "" {
			d.Entry = entryID(s.Reservation)
		}
		if units > stays {
			b.write(n, s.ID, units-stays, set.labels.With(s.Labels), s.Limits)
			d.Entry = s.ID
		}
		d.At, d.Units[b.name], settled = moment(n), units, append(settled, b)
		return nil
	})
	if err != nil || !found {
		return quota.Decision{}, cmp.Or(err, quota.ErrNoReservation)
	}
	d.Remaining = remaining(settled, s.Limits, d.At.UnixMicro(), false, true)
	if !s.Once {
		m.keep("settled "+s.Reservation, asked, d, s.Limits)
	}
	return d, nil
}

// setAside returns what is left of a reservation, or of the entry that it became.
func (b *bucket) setAside(reservation string, n int64) (set hold, ok bool) {
	if h := b.find(reservation, n); h != nil {
		return *h, true
	}
	if i := b.lapsedAt(reservation); i >= 0 {
		set.Left, set.labels = b.entries[i].Units, b.entries[i].Labels
		return set, true
	}
	return set, false
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
	i := b.lapsedAt(reservation)
	switch {
	case b.find(reservation, n) != nil:
		b.drop(reservation)
		return 0
	case i < 0: // an expired hold stays: the bucket alone may still be at an earlier moment
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
func (m *model) Extend(e quota.Extend) (until time.Time, err error) {
	err = m.change(bucketsOf(e.Reservation), func(_ int, b *bucket, n int64) error {
		h := b.find(e.Reservation, n)
		if h == nil {
			return quota.ErrNoReservation
		}
		if until = moment(n + e.TTL.Microseconds()); until.Before(h.ExpiresAt) {
			until = h.ExpiresAt
		}
		h.ExpiresAt = until // the same in all buckets
		return nil
	})
	return until, err
}

// Release removes holds and, if it may be late, the entries that they have lapsed into.
func (m *model) Release(r quota.Release) (map[string]int64, error) {
	given, found := map[string]int64{}, false
	err := m.change(bucketsOf(r.Reservation), func(_ int, b *bucket, n int64) error {
		set, ok := b.setAside(r.Reservation, n)
		found = found || ok && (r.Late || set.open(n))
		given[b.name] = set.Left
		if found {
			b.settle(r.Reservation, 0, n)
		}
		return nil
	})
	if !found {
		err = quota.ErrNoReservation
	}
	return given, err
}

// Cancel removes the entries. Unlike other changes, it writes no entries of lapsed holds.
func (m *model) Cancel(charged made) (any, error) {
	c, at := charged.charge, charged.decision.At.UnixMicro()
	for _, name := range names(c.Costs) {
		b := m.bucket(name)
		if i := b.entryAt(at); i < 0 || b.entries[i].ID != c.ID {
			return nil, quota.ErrNoEntry
		}
	}
	_, n := m.begin(names(c.Costs)...)
	for _, name := range names(c.Costs) {
		b := m.bucket(name)
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
func (m *model) Adjust(a quota.Adjust) (d quota.Decision, err error) {
	if d, err, known := m.replay("key "+a.Key, a.Fingerprint()); known {
		return d, err
	}
	err = m.change([]string{a.Bucket}, func(_ int, b *bucket, n int64) error {
		after, until := a.Span(n)
		if err := a.Refuses(b.sum(after, until)); err != nil {
			return err
		}
		at := until
		for a.Units > 0 && b.entryAt(at) >= 0 {
			at--
		}
		d = a.Done(a.ID, moment(at))
		switch {
		case at <= after:
			return quota.ErrNoEntry
		case a.Units < 0:
			d.At = moment(n)
		}
		switch {
		case a.DryRun:
		case a.Units < 0:
			b.takeOff(-a.Units, until)
			b.takings = append(b.takings, quota.Entry{At: d.At, ID: a.ID, Bucket: b.name,
				Units: -a.Units, Labels: named(a.Labels)})
		default:
			newest := b.newest
			b.write(at, a.ID, a.Units, a.Labels, a.Limits)
			b.newest = max(at, newest)
			slices.SortFunc(b.entries, func(a, b quota.Entry) int { return a.At.Compare(b.At) })
		}
		return nil
	})
	if err == nil && !a.DryRun {
		m.keep("key "+a.Key, a.Fingerprint(), d, a.Limits)
	}
	return d, err
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
func (m *model) Suspend(s quota.Suspension) (any, error) {
	s.Since = m.clock.Now()
	m.bucket(s.Bucket).suspension = s
	return nil, nil
}

// Learn records the units that other programs used in one window, as the upstream reported.
func (m *model) Learn(l quota.Learn) (learned quota.Learned, err error) {
	if err := l.Check(); err != nil {
		return learned, err
	}
	err = m.change([]string{l.Limit.Bucket}, func(_ int, b *bucket, n int64) error {
		w := l.Limit.Window
		b.reset = w.NextReset(b.reset, l.ResetMicros(), n)
		was := b.used(w, n) // including units that have left the window since the call
		switch {
		case w.IsRestoring():
			was += w.Restore.Restored(n - l.Asked(n))
		case !w.Anchored:
			was = b.used(w, l.Asked(n))
		}
		_, atMost := b.held(n)
		learned = quota.Learned{At: moment(n), Thought: max(0, l.Limit.Units-was-atMost)}
		if w.Anchored {
			learned.Reset = moment(b.reset)
		}
		if l.Stale(b.reset, n) || l.Remaining < 0 || l.Remaining >= learned.Thought {
			return nil
		}
		learned.Units = learned.Thought - l.Remaining
		o := others{n, learned.Units + b.used(w, n) - b.alone().used(w, n), 0}
		if w.IsRestoring() {
			_, den := w.Restore.Terms()
			o.level = b.level(w, n) + learned.Units*den
		}
		b.others[w.String()] = o
		b.newest = max(b.newest, n-1)
		return nil
	})
	return learned, err
}
