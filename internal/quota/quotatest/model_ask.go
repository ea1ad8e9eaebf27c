package quotatest

import (
	"fmt"
	"slices"
	"strings"

	"quotabudget/internal/quota"
)

// request is a charge or a reservation under decision.
type request struct {
	quota.Reserve              // for a charge, the fields that both have
	charge        quota.Charge // zero for a reservation
	future        *future
	n             int64
}

// ask decides on a call by computing for each limit when it would admit the cost.
func (m *model) ask(call Call) (d quota.Decision, err error) {
	c := call.Charge
	r := &request{charge: c, Reserve: quota.Reserve{Key: c.Key, Costs: c.Costs, Limits: c.Limits,
		Manual: c.Manual, Observe: c.Observe}}
	check, checkCost := c.Check, c.CheckCost
	if call.Reserve != nil {
		r.Reserve, check, checkCost = *call.Reserve, call.Reserve.Check, call.Reserve.CheckCost
	}
	if err := check(); err != nil {
		return quota.Refused(r.Costs, err)
	}
	asked := question(r.ID, r.Costs, c.Reservation)
	if d, err, known := m.replay("key "+r.Key, asked); known {
		return d, err
	}
	r.Limits, r.future = quota.InMode(r.Limits, r.Observe), m.future(names(r.Costs)...)
	buckets, n := m.begin(names(r.Costs)...)
	r.n = n
	for i, b := range buckets {
		h := b.find(c.Reservation, n)
		switch {
		case !c.Draws(b.name):
		case h == nil:
			return d, quota.ErrNoReservation
		case r.Costs[i].Units > h.Left:
			return d, quota.ErrReservationShort
		}
	}
	if err := checkCost(); err != nil {
		return quota.Refused(r.Costs, err)
	}
	d = quota.Decision{At: moment(r.future.now), Units: quota.UnitsOf(r.Costs)}
	at, limit := r.verdict(buckets, false)
	d.Allowed = limit == "" || r.Observe
	if limit == "" {
		at, limit = r.verdict(buckets, true)
	}
	if d.Limit = limit; limit != "" {
		d.RetryAt, d.Observed = moment(at), d.Allowed
	}
	if d.Allowed {
		d.At = moment(n)
		if err := r.write(buckets, &d); err != nil {
			return quota.Decision{}, err
		}
	}
	d.Remaining = remaining(buckets, r.Limits, n, r.Manual, false)
	switch {
	case c.DryRun:
		d.Entry = ""
	case d.Allowed:
		m.commit(buckets)
		m.keep("key "+r.Key, asked, d, r.Limits)
	}
	return d, nil
}

// write writes the entries of a charge, or the holds of a reservation.
func (r *request) write(buckets []*bucket, d *quota.Decision) error {
	labels := named(r.charge.Labels)
	if d.Observed {
		labels[quota.LabelDenied] = d.Limit
	}
	d.Entry = r.charge.ID
	if d.Reservation = r.ID; r.ID != "" {
		d.ExpiresAt = moment(r.n + r.TTL.Microseconds())
	}
	for i, b := range buckets {
		c := r.Costs[i]
		if r.ID != "" {
			if b.find(r.ID, r.n) != nil {
				return quota.ErrKeyReused
			}
			b.hold(r, c, *d)
			continue
		}
		b.write(r.n, r.charge.ID, c.Units, labels, r.Limits)
		b.trim()
		if h := b.find(r.charge.Reservation, r.n); h != nil && r.charge.Draws(b.name) {
			h.Left, h.Drawn = h.Left-c.Units, h.Drawn+c.Units
		}
	}
	return nil
}

// hold keeps the hold of a reservation.
func (b *bucket) hold(r *request, c quota.Cost, d quota.Decision) {
	h := hold{quota.Reservation{ID: r.ID, Bucket: b.name, Units: c.Units,
		Most: max(c.Units, c.Most), Left: c.Units, CreatedAt: d.At, ExpiresAt: d.ExpiresAt,
		Lapse: r.Lapse, Manual: r.Manual, Note: r.Note}, r.Labels}
	if h.Lapse == "" || quota.OnlyConcurrent(quota.LimitsOf(b.name, r.Limits)) {
		h.Lapse = quota.LapseRelease
	}
	b.drop(r.ID) // an expired one
	b.holds = append(b.holds, h)
	b.newest = max(b.newest, r.n-1) // time does not run backwards, even if no entry shows it
	b.keep = max(b.keep, quota.RetentionFor(r.Limits).Microseconds())
}

// verdict finds the clock's time from which the limits that deny, or those that are only observed,
// allow the request, and which of them denies longest; "" when none does.
func (r *request) verdict(now []*bucket, observed bool) (at int64, limit string) {
	at, paced := r.future.now, false
	for from := at - 1; from != at; {
		from = at
		later := func(name string, matches func([]*bucket, int64) bool) {
			if then := r.future.first(from, matches); then > at {
				at, limit = then, name
			}
		}
		for i, c := range r.Costs {
			limits := quota.LimitsOf(c.Bucket, r.Limits)
			until := now[i].suspension.Until.UnixMicro()
			if !observed && until > r.n {
				later(quota.Suspended, func(_ []*bucket, n int64) bool { return n >= until })
			}
			held, atMost := now[i].held(r.n)
			low := atMost - held + r.TooLow(c)
			if !observed && r.TooLow(c) > 0 && low > quota.Slack(limits) {
				return quota.Never, quota.TooManyEstimates
			}
			for _, l := range limits {
				fits := r.fits(i, l)
				switch {
				case l.Observe != observed:
				case l.Pace != nil:
					paced = paced || !fits(now, r.n)
				default:
					later(l.Name(), fits)
				}
			}
		}
	}
	if paced && limit == "" {
		return quota.Never, quota.PaceName
	}
	return at, limit
}

// fits reports whether the cost of the ith bucket fits under the limit.
func (r *request) fits(i int, l quota.Limit) func([]*bucket, int64) bool {
	draws := r.charge.Draws(l.Bucket)
	most := l.CapAt(moment(r.n), r.Manual, draws)
	return func(buckets []*bucket, n int64) bool {
		taken := buckets[i].taken(l, n)
		if draws {
			held, _ := buckets[i].held(n)
			taken -= held
		}
		return taken+r.Costs[i].Units <= most
	}
}

// taken returns the units used and held under the limit. A pace counts only our own spending.
func (b *bucket) taken(l quota.Limit, n int64) int64 {
	held, _ := b.held(n)
	if l.Pace != nil {
		b = b.alone()
	}
	return b.used(l.Window, n) + held
}

// remaining returns the units that still fit at n, by bucket. A settlement ignores suspensions.
func remaining(buckets []*bucket, limits []quota.Limit, n int64, manual,
	settles bool) map[string]int64 {
	left := map[string]int64{}
	for _, b := range buckets {
		for _, l := range quota.Enforced(quota.LimitsOf(b.name, limits)) {
			room := max(0, l.CapAt(moment(n), manual, false)-b.taken(l, n))
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

// replay returns the earlier answer to the key, if the key was used before.
func (m *model) replay(key, asked string) (quota.Decision, error, bool) {
	was, known := m.answers[key]
	switch {
	case key == "key " || !known || m.clock.Now().UnixMicro() >= was.until:
		return quota.Decision{}, nil, false
	case was.question != asked:
		return quota.Decision{}, quota.ErrKeyReused, true
	}
	was.decision.Replayed = true
	return was.decision, nil, true
}

func (m *model) keep(key, asked string, d quota.Decision, limits []quota.Limit) {
	until := m.clock.Now().UnixMicro() + quota.RetentionFor(limits).Microseconds()
	m.answers[key] = answer{asked, d, until}
}

// question returns what must be equal under one key. A reservation differs from a charge; the order
// of the costs does not matter.
func question(id string, costs []quota.Cost, reservation string) string {
	costs = slices.Clone(costs)
	slices.SortFunc(costs, func(a, b quota.Cost) int { return strings.Compare(a.Bucket, b.Bucket) })
	for i := range costs {
		costs[i].Bounded = false
	}
	return fmt.Sprint(id != "", costs, reservation)
}

func names(costs []quota.Cost) (names []string) {
	for _, c := range costs {
		names = append(names, c.Bucket)
	}
	return names
}
