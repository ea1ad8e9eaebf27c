package quotatest

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"quotabudget/internal/quota"
)

// request is a charge or a reservation under decision.
type request struct {
	quota.Reserve              // for a charge, the fields that both have
	charge        quota.Charge // zero for a reservation
	model         *model
	buckets       []*bucket // at the moment n
	n             int64
}

// ask decides on a call by computing for each limit when it would admit the cost.
func (m *model) ask(call Call) (d quota.Decision, err error) {
	c := call.Charge
	r := &request{model: m, charge: c, Reserve: quota.Reserve{Key: c.Key, Costs: c.Costs,
		Limits: c.Limits, Manual: c.Manual, Observe: c.Observe}}
	check, checkCost := c.Check, c.CheckCost
	if call.Reserve != nil {
		r.Reserve, check, checkCost = *call.Reserve, call.Reserve.Check, call.Reserve.CheckCost
	}
	if err := check(); err != nil {
		return quota.Refused(r.Costs, err)
	}
	r.Limits = quota.InMode(r.Limits, r.Observe)
	return m.once("key "+r.Key, question(r.ID, r.Costs, c.Reservation), !c.DryRun, r.Limits,
		func() (quota.Decision, error) { return r.decide(checkCost) })
}

func (r *request) decide(checkCost func() error) (d quota.Decision, err error) {
	m, c := r.model, r.charge
	r.buckets, r.n = m.at(m.now(), names(r.Costs)...)
	for i, b := range r.buckets {
		h := b.reserved(c.Reservation, r.n)
		switch {
		case !c.Draws(b.name):
		case !h.open(r.n):
			return d, quota.ErrNoReservation
		case r.Costs[i].Units > h.units:
			return d, quota.ErrReservationShort
		}
	}
	if err := checkCost(); err != nil {
		return quota.Refused(r.Costs, err)
	}
	d = quota.Decision{At: m.clock.Now(), Units: quota.UnitsOf(r.Costs)}
	at, limit := r.verdict(false)
	d.Allowed = limit == "" || r.Observe
	if limit == "" {
		at, limit = r.verdict(true)
	}
	if d.Limit = limit; limit != "" {
		d.RetryAt, d.Observed = moment(at), d.Allowed
	}
	if d.Allowed {
		d.At = moment(r.n)
		if err := r.write(&d); err != nil {
			return quota.Decision{}, err
		}
	}
	d.Remaining = remaining(r.buckets, r.Limits, r.n, r.Manual, false)
	if d.Allowed && !c.DryRun {
		d.Entry = c.ID
		m.commit(r.buckets)
	}
	return d, nil
}

// write writes the entries of a charge, or the holds of a reservation.
func (r *request) write(d *quota.Decision) error {
	labels := r.charge.Labels
	if d.Observed {
		labels = labels.With(quota.Labels{quota.LabelDenied: d.Limit})
	}
	id, _, _ := quota.ParseReservation(r.ID)
	if d.Reservation = r.ID; r.ID != "" {
		d.ExpiresAt = moment(r.n + r.TTL.Microseconds())
	}
	for i, b := range r.buckets {
		c := r.Costs[i]
		drawn := b.reserved(r.charge.Reservation, r.n)
		switch {
		case b.reserved(r.ID, r.n).open(r.n):
			return quota.ErrKeyReused
		case r.ID != "":
			of := quota.Reservation{ID: r.ID, Bucket: b.name, Units: c.Units,
				Most: max(c.Units, c.Most), CreatedAt: d.At, ExpiresAt: d.ExpiresAt,
				Lapse: cmp.Or(r.Lapse, quota.LapseRelease), Manual: r.Manual, Note: r.Note}
			if quota.OnlyConcurrent(quota.LimitsOf(b.name, r.Limits)) {
				of.Lapse = quota.LapseRelease
			}
			b.items = slices.DeleteFunc(b.items, func(x item) bool { // an expired one
				return x.at == 0 && x.of.ID == r.ID
			})
			b.add(item{id: id, units: c.Units, labels: r.Labels, of: of}, r.n-1)
			continue
		case drawn.open(r.n) && r.charge.Draws(b.name):
			drawn.units, drawn.of.Drawn = drawn.units-c.Units, drawn.of.Drawn+c.Units
		}
		b.add(item{at: r.n, id: r.charge.ID, units: c.Units, labels: labels}, r.n)
	}
	return nil
}

// verdict finds the clock's time from which the limits that deny, or those that are only observed,
// allow the request, and which of them denies longest; "" when none does.
func (r *request) verdict(observed bool) (at int64, limit string) {
	m, buckets := r.model, names(r.Costs)
	at = m.first(m.now(), buckets, func(later []*bucket, n int64) bool {
		return r.denies(later, n, observed, false) == ""
	})
	if at > m.now() {
		later, n := m.at(min(at, m.now()+farAhead)-1, buckets...)
		return at, r.denies(later, n, observed, false)
	}
	if limit = r.denies(r.buckets, r.n, observed, true); limit != "" {
		at = quota.Never
	}
	return at, limit
}

// denies returns the name of the first limit, or the first pace, that denies the request at n.
func (r *request) denies(buckets []*bucket, n int64, observed, pace bool) string {
	for i, c := range r.Costs {
		b, limits := buckets[i], quota.LimitsOf(c.Bucket, r.Limits)
		held, atMost := r.buckets[i].held(r.n)
		switch tooLow := r.TooLow(c); {
		case observed:
		case b.suspension.Until.UnixMicro() > n:
			return quota.Suspended
		case tooLow > 0 && atMost-held+tooLow > quota.Slack(limits):
			return quota.TooManyEstimates
		}
		for _, l := range limits {
			if (l.Pace != nil) == pace && l.Observe == observed &&
				c.Units > b.room(l, n, r.Manual, r.charge.Draws(b.name)) {
				return l.Name()
			}
		}
	}
	return ""
}

// room returns the units that still fit under the limit at n. A pace counts only our own spending,
// and a draw takes units that are held already.
func (b *bucket) room(l quota.Limit, n int64, manual, draws bool) int64 {
	used := b.used(l.Window, n)
	if l.Pace != nil {
		used = b.own(l.Window, n)
	}
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
			room := max(0, b.room(l, n, manual, false))
			if b.suspension.Until.UnixMicro() > n && !settles {
				room = 0
			}
			if least, ok := left[b.name]; !ok || room < least {
				left[b.name] = room
			}
		}
	}
	return left
}

// once makes a decision, or repeats the earlier one under the key. An allowed one may be kept.
func (m *model) once(key, asked string, keep bool, limits []quota.Limit,
	decide func() (quota.Decision, error)) (quota.Decision, error) {
	was, known := m.answers[key]
	switch {
	case key == "key " || !known || m.now() >= was.until:
	case was.question != asked:
		return quota.Decision{}, quota.ErrKeyReused
	default:
		was.decision.Replayed = true
		return was.decision, nil
	}
	d, err := decide()
	if keep && d.Allowed {
		until := m.now() + quota.RetentionFor(limits).Microseconds()
		m.answers[key] = answer{asked, d, until}
	}
	return d, err
}

// question returns what must be equal under one key. A reservation differs from a charge; the order
// of the costs does not matter.
func question(id string, costs []quota.Cost, reservation string) string {
	units := map[string][2]int64{}
	for _, c := range costs {
		units[c.Bucket] = [2]int64{c.Units, c.Most}
	}
	return fmt.Sprint(id != "", units, reservation)
}

func names(costs []quota.Cost) (names []string) {
	for _, c := range costs {
		names = append(names, c.Bucket)
	}
	return names
}

// Settle turns holds into entries of the units used.
func (m *model) Settle(s quota.Settle) (quota.Decision, error) {
	if err := s.Check(); err != nil {
		return quota.Decision{}, err
	}
	costs := s.SettledCosts()
	buckets, n := m.change(names(costs)...)
	return m.once("settled "+s.Reservation, question("", costs, "settled"), !s.Once, s.Limits, func() (
		quota.Decision, error) {
		d, found := quota.Decision{Allowed: true, At: moment(n), Units: map[string]int64{}}, false
		for i, b := range buckets {
			set := b.reserved(s.Reservation, n)
			was, units := *set, costs[i].Units
			if units == quota.AllUnits || was.of.ID == "" {
				units = was.units
			}
			if s.Within && units > was.units {
				return quota.Decision{}, quota.ErrReservationShort
			}
			found, d.Late, d.Units[b.name] = found || was.of.ID != "", d.Late || was.at > 0, units
			stays := set.end(units)
			if stays > 0 && d.Entry == "" {
				d.Entry = was.id
			}
			if units > stays {
				d.Entry = s.ID
				b.add(item{at: n, id: s.ID, units: units - stays, labels: was.labels.With(s.Labels)}, n)
			}
		}
		if !found {
			return quota.Decision{}, quota.ErrNoReservation
		}
		m.commit(buckets)
		d.Remaining = remaining(buckets, s.Limits, n, false, true)
		return d, nil
	})
}

// end ends a reservation. Of the entry that it became, end leaves at most units, and returns how
// many stay.
func (x *item) end(units int64) (stays int64) {
	if x.at > 0 {
		stays = min(units, x.units)
	}
	x.units, x.of = stays, quota.Reservation{}
	return stays
}

// Extend prolongs a hold.
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
	m.commit(buckets)
	return until, nil
}

// Release removes holds and, if it may be late, the entries that they have lapsed into.
func (m *model) Release(r quota.Release) (map[string]int64, error) {
	given, found := map[string]int64{}, false
	buckets, n := m.change(bucketsOf(r.Reservation)...)
	for _, b := range buckets {
		set := b.reserved(r.Reservation, n)
		found = found || set.open(n) || r.Late && set.at > 0
		given[b.name] = set.units
		set.end(0)
	}
	if !found {
		return given, quota.ErrNoReservation
	}
	m.commit(buckets)
	return given, nil
}

// Cancel removes the entries. Unlike other changes, it writes no entries of lapsed holds.
func (m *model) Cancel(charged made) (any, error) {
	c, at := charged.charge, charged.decision.At.UnixMicro()
	for _, name := range names(c.Costs) {
		if m.bucket(name).entryAt(at).id != c.ID {
			return nil, quota.ErrNoEntry
		}
	}
	_, n := m.at(m.now(), names(c.Costs)...)
	for _, name := range names(c.Costs) {
		b := m.bucket(name)
		e, h := b.entryAt(at), b.reserved(c.Reservation, n)
		if h.open(n) && c.Draws(name) && h.of.Drawn >= e.units { // a correction may have left fewer
			h.units, h.of.Drawn = h.units+e.units, h.of.Drawn-e.units
		}
		e.units = 0
		b.sort()
	}
	delete(m.answers, "key "+c.Key)
	return nil, nil
}

// Adjust corrects the entries one by one.
func (m *model) Adjust(a quota.Adjust) (quota.Decision, error) {
	return m.once("key "+a.Key, a.Fingerprint(), !a.DryRun, a.Limits, func() (quota.Decision, error) {
		buckets, n := m.change(a.Bucket)
		b := buckets[0]
		after, until := a.Span(n)
		if err := a.Refuses(b.sum(after, until)); err != nil {
			return quota.Decision{}, err
		}
		at := until
		for a.Units > 0 && b.entryAt(at).at > 0 {
			at--
		}
		if at <= after {
			return quota.Decision{}, quota.ErrNoEntry
		}
		if a.Units < 0 {
			at = n
			b.takeOff(-a.Units, until)
			b.takings = append(slices.Clone(b.takings),
				item{at: n, id: a.ID, units: -a.Units, labels: a.Labels})
		} else {
			b.add(item{at: at, id: a.ID, units: a.Units, labels: a.Labels}, at)
		}
		if !a.DryRun {
			m.commit(buckets)
		}
		return a.Done(a.ID, moment(at)), nil
	})
}

// takeOff lowers the newest entries up to a time one unit at a time.
func (b *bucket) takeOff(units, until int64) {
	for i := len(b.items) - 1; units > 0; i-- {
		e := &b.items[i]
		for e.at <= until && units > 0 && e.units > 0 {
			e.units, units = e.units-1, units-1
		}
	}
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
	w := l.Limit.Window
	buckets, n := m.change(l.Limit.Bucket)
	b := buckets[0]
	b.reset = w.NextReset(b.reset, l.ResetMicros(), n)
	used := b.used(w, n) // including units that have left the window since the call
	switch {
	case w.IsRestoring():
		used += w.Restore.Restored(n - l.Asked(n))
	case !w.Anchored:
		used = b.used(w, l.Asked(n))
	}
	_, atMost := b.held(n)
	learned = quota.Learned{At: moment(n), Thought: max(0, l.Limit.Units-used-atMost)}
	if w.Anchored {
		learned.Reset = moment(b.reset)
	}
	if !l.Stale(b.reset, n) && l.Remaining >= 0 && l.Remaining < learned.Thought {
		learned.Units = learned.Thought - l.Remaining
		o := others{n, learned.Units + b.used(w, n) - b.own(w, n), 0}
		if w.IsRestoring() {
			_, den := w.Restore.Terms()
			o.level = b.level(w, n) + learned.Units*den
		}
		b.others[w.String()], b.newest = o, max(b.newest, n-1)
	}
	m.commit(buckets)
	return learned, nil
}
