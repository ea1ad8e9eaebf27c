package quotatest

import (
	"fmt"
	"slices"
	"time"

	"quotabudget/internal/quota"
)

// request is a charge or reservation to decide at the moment n.
type request struct {
	quota.Charge // for a reservation, only the common fields are set
	hold         *quota.Reserve
	*model
	buckets []*bucket
	n       int64
}

// ask decides on a call by computing when each limit would admit the cost.
func (m *model) ask(call Call) (quota.Decision, error) {
	c, h, err := call.Charge, call.Reserve, call.Charge.Check()
	if h != nil {
		c, err = quota.Charge{ID: h.ID, Key: h.Key, Costs: h.Costs, Limits: h.Limits,
			Labels: h.Labels, Manual: h.Manual, Observe: h.Observe}, h.Check()
	}
	if err != nil {
		return quota.Refused(c.Costs, err)
	}
	c.Limits = quota.InMode(c.Limits, c.Observe)
	units := map[string][2]int64{}
	for _, x := range c.Costs {
		units[x.Bucket] = [2]int64{x.Units, x.Most}
	}
	r := &request{Charge: c, hold: h, model: m}
	return m.once("key "+c.Key, fmt.Sprint(h != nil, units, c.Reservation), !c.DryRun, r.decide)
}

func (r *request) decide() (d quota.Decision, err error) {
	r.buckets, r.n = r.at(r.now(), names(r.Costs)...)
	tooMany := false // estimates may exceed the slack
	for i, b := range r.buckets {
		c, h := r.Costs[i], b.reserved(r.Reservation, r.n)
		switch held, atMost := b.held(r.n); {
		case r.Draws(b.name) && !h.open(r.n):
			return d, quota.ErrNoReservation
		case r.Draws(b.name) && c.Units > h.units:
			return d, quota.ErrReservationShort
		case r.hold != nil && r.hold.TooLow(c) > 0:
			slack := quota.Slack(quota.LimitsOf(b.name, r.Limits))
			tooMany = tooMany || atMost-held+r.hold.TooLow(c) > slack
		}
	}
	if err := r.CheckCost(); err != nil {
		return quota.Refused(r.Costs, err)
	}
	d = quota.Decision{At: r.Now(), Units: quota.UnitsOf(r.Costs)}
	at, limit := r.verdict(false)
	if tooMany {
		at, limit = quota.Never, quota.TooManyEstimates
	}
	d.Allowed = limit == "" || r.Observe
	if limit == "" {
		at, limit = r.verdict(true)
	}
	if d.Limit = limit; limit != "" {
		d.RetryAt, d.Observed = moment(at), d.Allowed
	}
	if d.Allowed && r.buckets[0].reserved(r.ID, r.n).open(r.n) {
		return quota.Decision{}, quota.ErrKeyReused
	}
	if d.Allowed {
		d.At = moment(r.n)
		r.write(&d)
	}
	d.Remaining = remaining(r.buckets, r.Limits, r.n, r.Manual, false)
	if d.Allowed && !r.DryRun {
		for _, b := range r.buckets {
			r.model.buckets[b.name] = b
		}
		if r.hold == nil {
			d.Entry = r.ID
		}
	}
	return d, nil
}

func (r *request) write(d *quota.Decision) {
	x := item{at: r.n, id: r.ID, labels: r.Labels}
	switch {
	case r.hold != nil:
		x.at, d.Reservation, d.ExpiresAt = 0, r.ID, moment(r.n+r.hold.TTL.Microseconds())
		x.id, _, _ = quota.ParseReservation(r.ID)
	case d.Observed:
		x.labels = r.Labels.With(quota.Labels{quota.LabelDenied: d.Limit})
	}
	for i, b := range r.buckets {
		x.units = r.Costs[i].Units
		switch h := b.reserved(r.Reservation, r.n); {
		case r.hold != nil:
			x.of = quota.Reservation{ID: r.ID, Bucket: b.name, Units: x.units,
				Most: max(x.units, r.Costs[i].Most), CreatedAt: d.At, ExpiresAt: d.ExpiresAt,
				Lapse: r.hold.Lapse, Manual: r.Manual, Note: r.hold.Note}
			if x.of.Lapse == "" || quota.OnlyConcurrent(quota.LimitsOf(b.name, r.Limits)) {
				x.of.Lapse = quota.LapseRelease
			}
		case r.Draws(b.name):
			h.units, h.of.Drawn = h.units-x.units, h.of.Drawn+x.units
		}
		b.items, b.newest = append(b.items, x), max(b.newest, r.n-1, x.at)
	}
}

// verdict returns when the enforced or observed limits will allow the request, and the name of the
// limit that denies it longest.
func (r *request) verdict(observed bool) (at int64, limit string) {
	at = r.first(names(r.Costs), func(later []*bucket, n int64) bool {
		return r.denies(later, n, observed, false) == ""
	})
	if at > r.now() {
		later, n := r.at(min(at, r.now()+farAhead)-1, names(r.Costs)...)
		return at, r.denies(later, n, observed, false)
	}
	return quota.Never, r.denies(r.buckets, r.n, observed, true)
}

// denies returns the name of the first limit, or the first pace, that denies the request at n.
func (r *request) denies(buckets []*bucket, n int64, observed, pace bool) string {
	for i, b := range buckets {
		if b.suspension.Until.UnixMicro() > n && !observed {
			return quota.Suspended
		}
		for _, l := range quota.LimitsOf(b.name, r.Limits) {
			if (l.Pace != nil) == pace && l.Observe == observed &&
				r.Costs[i].Units > b.room(l, n, r.Manual, r.Draws(b.name)) {
				return l.Name()
			}
		}
	}
	return ""
}

// room returns the units that fit at n. Paces ignore the usage by other programs; draws ignore held
// units.
func (b *bucket) room(l quota.Limit, n int64, manual, draws bool) int64 {
	used := b.used(l.Window, n, l.Pace == nil)
	if held, _ := b.held(n); !draws {
		used += held
	}
	return l.CapAt(moment(n), manual, draws) - used
}

// remaining returns the units that still fit at n, by bucket. A settlement ignores suspensions.
func remaining(buckets []*bucket, limits []quota.Limit, n int64, manual,
	settles bool) map[string]int64 {
	left := map[string]int64{}
	for _, b := range buckets {
		for _, l := range quota.Enforced(quota.LimitsOf(b.name, limits)) {
			room := b.room(l, n, manual, false)
			if least, ok := left[b.name]; ok {
				room = min(room, least)
			}
			if left[b.name] = max(0, room); b.suspension.Until.UnixMicro() > n && !settles {
				left[b.name] = 0
			}
		}
	}
	return left
}

// once returns the earlier decision under the key, or decides. It keeps an allowed decision if keep
// is set.
func (m *model) once(key, question string, keep bool, decide func() (quota.Decision, error)) (
	quota.Decision, error) {
	if was, known := m.answers[key]; known {
		d, same := was[question]
		if !same {
			return d, quota.ErrKeyReused
		}
		d.Replayed = true
		return d, nil
	}
	d, err := decide()
	if keep && d.Allowed && key != "key " {
		m.answers[key] = map[string]quota.Decision{question: d}
	}
	return d, err
}

func (m *model) Settle(s quota.Settle) (quota.Decision, error) {
	costs := s.SettledCosts()
	key := "settled " + s.Reservation
	buckets, n := m.change(names(costs)...) // also for a repeated settlement
	return m.once(key, fmt.Sprint(costs), !s.Once, func() (d quota.Decision, err error) {
		found := false
		for i, b := range buckets {
			x := b.reserved(s.Reservation, n)
			found = found || x.of.ID != ""
			if s.Within && x.of.ID != "" && costs[i].Units > x.units {
				return d, quota.ErrReservationShort
			}
		}
		if !found {
			return d, quota.ErrNoReservation
		}
		d = quota.Decision{Allowed: true, At: moment(n), Units: map[string]int64{}}
		for i, b := range buckets {
			x := b.reserved(s.Reservation, n)
			units, stays := costs[i].Units, int64(0)
			if units == quota.AllUnits || x.of.ID == "" {
				units = x.units
			}
			if x.at > 0 {
				stays = min(units, x.units)
			}
			if stays > 0 && d.Entry == "" {
				d.Entry = x.id
			}
			d.Late, d.Units[b.name] = d.Late || x.at > 0, units
			x.units, x.of = stays, quota.Reservation{}
			if units > stays {
				d.Entry, b.newest = s.ID, n
				b.items = append(b.items, item{n, units - stays, s.ID, x.labels.With(s.Labels), x.of})
			}
		}
		d.Remaining = remaining(buckets, s.Limits, n, false, true)
		return d, nil
	})
}

func (m *model) Extend(x quota.Extend) (until time.Time, err error) {
	buckets, n := m.change(bucketsOf(x.Reservation)...)
	for _, b := range buckets {
		h := b.reserved(x.Reservation, n)
		if !h.open(n) {
			return until, quota.ErrNoReservation
		}
		until = moment(max(n+x.TTL.Microseconds(), h.of.ExpiresAt.UnixMicro()))
		h.of.ExpiresAt = until // the same in all buckets
	}
	return until, nil
}

func (m *model) Release(r quota.Release) (map[string]int64, error) {
	buckets, n := m.change(bucketsOf(r.Reservation)...)
	if !slices.ContainsFunc(buckets, func(b *bucket) bool {
		x := b.reserved(r.Reservation, n)
		return x.open(n) || r.Late && x.at > 0
	}) {
		return nil, quota.ErrNoReservation
	}
	given := map[string]int64{}
	for _, b := range buckets {
		x := b.reserved(r.Reservation, n)
		given[b.name] = x.units
		x.units, x.of = 0, quota.Reservation{}
	}
	return given, nil
}

// Cancel, unlike other changes, writes no entries of lapsed holds.
func (m *model) Cancel(charged made) (any, error) {
	c, at, entries := charged.charge, charged.decision.At.UnixMicro(), []*item{}
	_, n := m.at(m.now(), names(c.Costs)...)
	for _, name := range names(c.Costs) {
		items := m.buckets[name].items
		isIt := func(x item) bool { return x.at == at && x.id == c.ID && x.units > 0 }
		i := slices.IndexFunc(items, isIt)
		if i < 0 {
			return nil, quota.ErrNoEntry
		}
		entries = append(entries, &items[i])
	}
	for i, e := range entries {
		h := m.buckets[c.Costs[i].Bucket].reserved(c.Reservation, n)
		if h.open(n) && h.of.Drawn >= e.units {
			h.units, h.of.Drawn = h.units+e.units, h.of.Drawn-e.units
		}
		e.units = 0
	}
	delete(m.answers, "key "+c.Key)
	return nil, nil
}

func (m *model) Adjust(a quota.Adjust) (quota.Decision, error) {
	return m.once("key "+a.Key, a.Fingerprint(), !a.DryRun, func() (quota.Decision, error) {
		buckets, n := m.change(a.Bucket)
		b := buckets[0]
		after, until := a.Span(n)
		if err := a.Refuses(b.sum(after, until)); err != nil {
			return quota.Decision{}, err
		}
		x := item{at: until, id: a.ID, units: a.Units, labels: a.Labels}
		for a.Units > 0 && b.sum(x.at-1, x.at) > 0 { // the stamp is in use
			x.at--
		}
		if x.at <= after {
			return quota.Decision{}, quota.ErrNoEntry
		}
		if a.Units < 0 {
			x.at, x.units = n, -a.Units
		}
		switch {
		case a.DryRun:
		case a.Units > 0:
			b.items, b.newest = append(b.items, x), max(b.newest, x.at)
		default:
			b.takings = append(b.takings, x)
			for i, left := len(b.items)-1, x.units; left > 0; i-- { // the newest entries first
				for e := &b.items[i]; e.at <= until && left > 0 && e.units > 0; left-- {
					e.units--
				}
			}
		}
		return a.Done(a.ID, moment(x.at)), nil
	})
}

func (m *model) Suspend(s quota.Suspension) (any, error) {
	s.Since = m.Now()
	m.buckets[s.Bucket].suspension = s
	return nil, nil
}

func (m *model) Learn(l quota.Learn) (learned quota.Learned, err error) {
	if err := l.Check(); err != nil {
		return learned, err
	}
	w := l.Limit.Window
	buckets, n := m.change(l.Limit.Bucket)
	b := buckets[0]
	b.reset = w.NextReset(b.reset, l.ResetMicros(), n)
	learned.At = moment(n)
	used := b.used(w, n, true) // including units that have left the window since the call
	switch {
	case w.Anchored:
		learned.Reset = moment(b.reset)
	case w.IsRestoring():
		used += w.Restore.Restored(n - l.Asked(n))
	default:
		used = b.used(w, l.Asked(n), true)
	}
	_, atMost := b.held(n)
	learned.Thought = max(0, l.Limit.Units-used-atMost)
	if !l.Stale(b.reset, n) && l.Remaining >= 0 && l.Remaining < learned.Thought {
		learned.Units = learned.Thought - l.Remaining
		o := quota.Others{At: n, Units: learned.Units + b.used(w, n, true) - b.used(w, n, false)}
		if w.IsRestoring() {
			_, den := w.Restore.Terms()
			o.Level = b.level(w, n, true) + learned.Units*den
		}
		b.others[w.String()], b.newest = o, max(b.newest, n-1)
	}
	return learned, nil
}
