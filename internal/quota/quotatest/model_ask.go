package quotatest

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"quotabudget/internal/quota"
)

// request is a charge or, if it has a TTL, a reservation.
type request struct {
	quota.Reserve
	charge quota.Charge
	check  func() error // of the costs
	future *future
	n      int64
}

// Charge decides by computing for each limit when it would admit the cost.
func (m *model) Charge(_ context.Context, c quota.Charge) (quota.Decision, error) {
	if err := c.Check(); err != nil {
		return quota.Refused(c.Costs, err)
	}
	return m.ask(&request{charge: c, check: c.CheckCost, Reserve: quota.Reserve{Key: c.Key,
		Costs: c.Costs, Limits: c.Limits, Manual: c.Manual, Observe: c.Observe}})
}

// Reserve decides as for a charge and keeps a hold instead of an entry.
func (m *model) Reserve(_ context.Context, r quota.Reserve) (quota.Decision, error) {
	if err := r.Check(); err != nil {
		return quota.Refused(r.Costs, err)
	}
	return m.ask(&request{Reserve: r, check: r.CheckCost})
}

func (m *model) ask(r *request) (d quota.Decision, err error) {
	asked := question(r.ID, r.Costs, r.charge.Reservation)
	if d, err, known := m.replay("key "+r.Key, asked); known {
		return d, err
	}
	r.Limits = quota.InMode(r.Limits, r.Observe)
	buckets, n := m.begin(names(r.Costs)...)
	r.future, r.n = m.future(names(r.Costs)...), n
	for i, c := range r.Costs {
		if r.charge.Draws(c.Bucket) {
			if err := buckets[i].canDraw(r.charge.Reservation, c.Units, n); err != nil {
				return d, err
			}
		}
	}
	if err := r.check(); err != nil {
		return quota.Refused(r.Costs, err)
	}
	d = quota.Decision{At: moment(r.future.now), Units: quota.UnitsOf(r.Costs)}
	at, limit := r.verdict(buckets, false)
	denied := limit != "" && !r.Observe
	if limit == "" {
		at, limit = r.verdict(buckets, true)
	}
	if d.Limit = limit; limit != "" {
		d.RetryAt = moment(at)
	}
	if !denied {
		d.Allowed, d.Observed, d.At = true, limit != "", moment(n)
		if r.TTL > 0 {
			err = r.hold(buckets, &d)
		} else {
			r.write(buckets, &d)
		}
	}
	d.Remaining = remaining(buckets, r.Limits, n, r.Manual, false)
	switch {
	case err != nil:
		return quota.Decision{}, err
	case r.charge.DryRun:
		d.Entry = ""
	case !denied:
		m.commit(buckets).keep("key "+r.Key, asked, d, r.Limits)
	}
	return d, nil
}

// write appends the entries of a charge.
func (r *request) write(buckets []*bucket, d *quota.Decision) {
	labels := named(r.charge.Labels)
	if d.Observed {
		labels[quota.LabelDenied] = d.Limit
	}
	d.Entry = r.charge.ID
	for i, b := range buckets {
		units := r.Costs[i].Units
		b.write(r.n, r.charge.ID, units, labels, r.Limits)
		b.trim()
		if h := b.find(r.charge.Reservation, r.n); h != nil && r.charge.Draws(b.name) {
			h.Left, h.Drawn = h.Left-units, h.Drawn+units
		}
	}
}

// hold keeps the holds of a reservation.
func (r *request) hold(buckets []*bucket, d *quota.Decision) error {
	d.Reservation, d.ExpiresAt = r.ID, moment(r.n+r.TTL.Microseconds())
	for i, b := range buckets {
		if b.find(r.ID, r.n) != nil {
			return fmt.Errorf("reservation %s: %w", r.ID, quota.ErrKeyReused)
		}
		c := r.Costs[i]
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
	return nil
}

// verdict finds the clock's time from which the limits that deny, or those that are only observed,
// allow the request, and which of them denies longest; "" when none does.
func (r *request) verdict(now []*bucket, observed bool) (at int64, limit string) {
	at, paced := r.future.now, false
	for from := at - 1; from != at; {
		from = at
		later := func(name string, is func([]*bucket, int64) bool) {
			if then := r.future.first(from, is); then > at {
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

// canDraw reports why so many units of the reservation cannot be drawn.
func (b *bucket) canDraw(reservation string, units, n int64) error {
	h := b.find(reservation, n)
	switch {
	case h == nil:
		return fmt.Errorf("reservation %s: %w", reservation, quota.ErrNoReservation)
	case units > h.Left:
		return fmt.Errorf("reservation %s: %w", reservation, quota.ErrReservationShort)
	}
	return nil
}

// replay returns the earlier answer to the key, if the key was used before.
func (m *model) replay(key, asked string) (quota.Decision, error, bool) {
	was, known := m.answers[key]
	switch {
	case key == "key " || !known || m.now() >= was.until:
		return quota.Decision{}, nil, false
	case was.question != asked:
		return quota.Decision{}, fmt.Errorf("%q: %w", key, quota.ErrKeyReused), true
	}
	was.decision.Replayed = true
	return was.decision, nil, true
}

func (m *model) keep(key, asked string, d quota.Decision, limits []quota.Limit) {
	m.answers[key] = answer{asked, d, m.now() + quota.RetentionFor(limits).Microseconds()}
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
