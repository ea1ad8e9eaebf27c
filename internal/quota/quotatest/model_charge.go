package quotatest

import (
	"context"
	"fmt"
	"slices"

	"quotabudget/internal/quota"
)

// Charge decides by asking of each limit when it would admit the cost.
func (m *Model) Charge(_ context.Context, c quota.Charge) (quota.Decision, error) {
	if err := c.Check(); err != nil {
		return quota.Refused(c.Costs, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	cred, now := m.credential(c.Credential), m.clock()
	asked := question("charge", c.Costs, c.Reservation)
	if d, err, known := cred.replay(c.Key, asked, now); known {
		return d, err
	}
	allowed := false
	defer m.undo(cred, cred.clone(), &allowed)
	n := lapse(now, cred.all(c.Costs)...)
	drawn := ""
	if _, of, err := quota.ParseReservation(c.Reservation); err == nil {
		drawn = of[0]
	}
	for _, cost := range c.Costs {
		if cost.Bucket == drawn {
			if err := cred.bucket(drawn).canDraw(c.Reservation, cost.Units, n); err != nil {
				return quota.Decision{}, err
			}
		}
	}
	if err := c.CheckCost(); err != nil {
		return quota.Refused(c.Costs, err)
	}
	limits := quota.InMode(c.Limits, c.Observe)
	v, would := m.verdicts(cred, c.Costs, limits, rule{n: n, manual: c.Manual, drawn: drawn})
	if v.limit != "" && !c.Observe {
		d := v.decision(now, c.Costs)
		d.Remaining = m.remaining(cred, c.Costs, limits, rule{n: n, manual: c.Manual})
		return d, nil
	}
	if v.limit == "" {
		v = would
	}
	d := v.decision(now, c.Costs)
	labels := kept(c.Labels)
	if v.limit != "" {
		labels[quota.LabelDenied] = v.limit
	}
	before := cred.clone()
	allowed = !c.DryRun
	for _, cost := range c.Costs {
		b := cred.bucket(cost.Bucket)
		b.write(entry{n, c.ID, cost.Units, labels}, c.Limits, true)
		if cost.Bucket == drawn {
			h := &b.holds[b.find(c.Reservation, n)]
			h.left, h.drawn = h.left-cost.Units, h.drawn+cost.Units
		}
	}
	d.Allowed, d.Observed, d.At, d.Entry = true, v.limit != "", moment(n), c.ID
	d.Remaining = m.remaining(cred, c.Costs, limits, rule{n: n, manual: c.Manual})
	if c.DryRun { // as if it had never been made
		d.Entry = ""
		*cred = before
		return d, nil
	}
	cred.keep(c.Key, asked, d, now+quota.RetentionFor(c.Limits).Microseconds())
	return d, nil
}

// Reserve decides as for a charge and keeps a hold instead of an entry.
func (m *Model) Reserve(_ context.Context, r quota.Reserve) (quota.Decision, error) {
	costs := r.Costs
	if err := r.Check(); err != nil {
		return quota.Refused(costs, err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	cred, now := m.credential(r.Credential), m.clock()
	asked := question("reserve", costs, "")
	if d, err, known := cred.replay(r.Key, asked, now); known {
		return d, err
	}
	allowed := false
	defer m.undo(cred, cred.clone(), &allowed)
	n := lapse(now, cred.all(costs)...)
	if err := r.CheckCost(); err != nil {
		return quota.Refused(costs, err)
	}
	limits := quota.InMode(r.Limits, r.Observe)
	v, would := m.verdicts(cred, costs, limits, rule{n: n, manual: r.Manual})
	for _, c := range costs {
		b, of := cred.bucket(c.Bucket), quota.LimitsOf(c.Bucket, limits)
		if c.Bounded && c.Most > c.Units && !r.Observe &&
			b.atMost(n)-b.held(n)+c.Most-c.Units > quota.Slack(of) {
			v = verdict{quota.Never, quota.TooManyEstimates}
			break
		}
	}
	if v.limit != "" && !r.Observe {
		d := v.decision(now, costs)
		d.Remaining = m.remaining(cred, costs, limits, rule{n: n, manual: r.Manual})
		return d, nil
	}
	if v.limit == "" {
		v = would
	}
	d := v.decision(now, costs)
	expires := n + r.TTL.Microseconds()
	for _, cost := range costs {
		if cred.bucket(cost.Bucket).find(r.ID, n) >= 0 {
			return quota.Decision{}, fmt.Errorf("reservation %s: %w", r.ID, quota.ErrKeyReused)
		}
	}
	allowed = true
	for _, cost := range costs {
		b := cred.bucket(cost.Bucket)
		// time does not run backwards, even where no entry tells of it
		b.newest = max(b.newest, n-1)
		b.keep = max(b.keep, quota.RetentionFor(r.Limits).Microseconds())
		b.holds = slices.DeleteFunc(b.holds, func(h hold) bool { return h.id == r.ID }) // expired
		b.holds = append(b.holds, hold{
			id: r.ID, left: cost.Units, most: max(cost.Units, cost.Most), created: n,
			expires: expires, lapse: r.LapseOf(cost.Bucket), labels: kept(r.Labels),
			manual: r.Manual, note: r.Note,
		})
	}
	d.Allowed, d.Observed, d.At = true, v.limit != "", moment(n)
	d.Reservation, d.ExpiresAt = r.ID, moment(expires)
	d.Remaining = m.remaining(cred, costs, limits, rule{n: n, manual: r.Manual})
	cred.keep(r.Key, asked, d, now+quota.RetentionFor(r.Limits).Microseconds())
	return d, nil
}

func (b *bucket) canDraw(reservation string, units, n int64) error {
	i := b.find(reservation, n)
	switch {
	case i < 0:
		return fmt.Errorf("reservation %s: %w", reservation, quota.ErrNoReservation)
	case units > b.holds[i].left:
		return fmt.Errorf("reservation %s: %w", reservation, quota.ErrReservationShort)
	}
	return nil
}

// replay is the answer that was given to the key, if it was used before.
func (c *credential) replay(key, asked string, now int64) (quota.Decision, error, bool) {
	was, known := c.keys[key]
	switch {
	case key == "" || !known || now >= was.until:
		return quota.Decision{}, nil, false
	case was.question != asked:
		return quota.Decision{}, fmt.Errorf("key %q: %w", key, quota.ErrKeyReused), true
	}
	was.decision.Replayed = true
	return was.decision, nil, true
}

func (c *credential) keep(key, asked string, d quota.Decision, until int64) {
	if key != "" {
		c.keys[key] = answer{asked, d, until}
	}
}

// Cancel takes the entries out.
func (m *Model) Cancel(_ context.Context, c quota.Charge, d quota.Decision) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	cred := m.credential(c.Credential)
	is := func(e entry) bool { return e.id == c.ID && e.at == d.At.UnixMicro() }
	for _, cost := range c.Costs {
		if !slices.ContainsFunc(cred.bucket(cost.Bucket).entries, is) {
			return fmt.Errorf("entry %s in %s: %w", c.ID, cost.Bucket, quota.ErrNoEntry)
		}
	}
	n := newFuture(m.clock(), cred.all(c.Costs)).at(m.clock()).n
	for _, cost := range c.Costs {
		b := cred.bucket(cost.Bucket)
		if m.looks {
			n = b.newest + 1
		}
		units := b.entries[slices.IndexFunc(b.entries, is)].units
		b.entries = slices.DeleteFunc(b.entries, is)
		for i := range b.holds {
			h := &b.holds[i]
			open := h.expires > n // else it may have been deleted
			if h.id == c.Reservation && h.drawn >= units && open {
				h.left, h.drawn = h.left+units, h.drawn-units
			}
		}
	}
	delete(cred.keys, c.Key)
	return nil
}
