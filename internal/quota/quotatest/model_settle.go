package quotatest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"quotabudget/internal/quota"
)

// lapse has the holds that expire up to now become entries where they are charged, and finds the
// moment at which to decide: now, but after every entry that any of the buckets ever had.
func lapse(now int64, buckets ...*bucket) (n int64) {
	for {
		n = now
		for _, b := range buckets {
			n = max(n, b.newest+1)
		}
		more := false
		for _, b := range buckets {
			more = b.lapseOne(n) || more
		}
		if !more {
			return n
		}
	}
}

// lapseOne writes the entry of the hold that is the first to have expired by n, if there is one: of
// the most that it can have taken.
func (b *bucket) lapseOne(n int64) bool {
	first := -1
	for i, h := range b.holds {
		if h.lapse != quota.LapseCharge || h.expires > n || h.left == 0 {
			continue
		}
		if first < 0 || h.expires < b.holds[first].expires ||
			h.expires == b.holds[first].expires && h.id < b.holds[first].id {
			first = i
		}
	}
	if first < 0 {
		return false
	}
	h := b.holds[first]
	id, _, _ := quota.ParseReservation(h.id)
	at := max(h.expires, b.newest+1)
	b.holds = slices.Delete(b.holds, first, first+1)
	b.write(entry{at, id, h.atMost(), h.labels}, nil, false)
	b.lapsed = append(b.lapsed, lapsed{h.id, at})
	return true
}

func (c *credential) all(costs []quota.Cost) (all []*bucket) {
	for _, cost := range costs {
		all = append(all, c.bucket(cost.Bucket))
	}
	return all
}

// Settle turns holds into entries of what was used.
func (m *Model) Settle(_ context.Context, s quota.Settle) (quota.Decision, error) {
	if err := s.Check(); err != nil {
		return quota.Decision{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	cred, now := m.credential(s.Credential), m.clock()
	id, names, _ := quota.ParseReservation(s.Reservation)
	costs := make([]quota.Cost, len(names))
	for i, name := range names {
		costs[i] = quota.Cost{Bucket: name, Units: s.UnitsIn(name)}
	}
	asked := question("settle", costs, "")
	n := lapse(now, cred.all(costs)...)
	if was, known := cred.settled[s.Reservation]; known && now < was.until {
		if was.question != asked {
			return quota.Decision{}, quota.ErrKeyReused
		}
		was.decision.Replayed = true
		return was.decision, nil
	}
	found := false
	for i := range costs {
		units, ok := cred.bucket(names[i]).setAside(s.Reservation, n)
		found = found || ok
		if costs[i].Units == quota.AllUnits || !ok {
			costs[i].Units = units
		}
	}
	if !found {
		return quota.Decision{}, fmt.Errorf("%s: %w", s.Reservation, quota.ErrNoReservation)
	}
	for _, cost := range costs {
		units, ok := cred.bucket(cost.Bucket).setAside(s.Reservation, n)
		if ok && s.Within && cost.Units > units {
			return quota.Decision{}, fmt.Errorf("%s: %w", s.Reservation, quota.ErrReservationShort)
		}
	}
	d := quota.Decision{Allowed: true, At: moment(n), Units: quota.UnitsOf(costs)}
	for _, cost := range costs {
		b := cred.bucket(cost.Bucket)
		lapsed, late := b.settle(s.Reservation, cost.Units, n)
		if late && lapsed > 0 && d.Entry == "" {
			d.Entry = id
		}
		if more := cost.Units - lapsed; more > 0 {
			b.write(entry{n, s.ID, more, kept(s.Labels)}, s.Limits, false)
			d.Entry = s.ID
		}
	}
	d.Remaining = m.remaining(cred, costs, s.Limits, rule{n: n, settled: true})
	if !s.Once {
		until := now + quota.RetentionFor(s.Limits).Microseconds()
		cred.settled[s.Reservation] = answer{asked, d, until}
	}
	return d, nil
}

// setAside is how many units are left of a reservation, or became an entry when it lapsed.
func (b *bucket) setAside(reservation string, n int64) (units int64, ok bool) {
	if i := b.find(reservation, n); i >= 0 {
		return b.holds[i].left, true
	}
	for _, l := range b.lapsed {
		if i := b.entryAt(l.at); l.id == reservation && i >= 0 {
			return b.entries[i].units, true
		}
	}
	return 0, false
}

// entryAt is the index of the entry with that stamp, or -1: it may have been trimmed.
func (b *bucket) entryAt(stamp int64) int {
	return slices.IndexFunc(b.entries, func(e entry) bool { return e.at == stamp })
}

// settle ends a hold. Of an entry that it lapsed into it leaves no more than units, and says how
// many that are.
func (b *bucket) settle(reservation string, units, n int64) (stays int64, late bool) {
	if i := b.find(reservation, n); i >= 0 {
		b.holds = slices.Delete(b.holds, i, i+1)
		return 0, false
	}
	i := slices.IndexFunc(b.lapsed, func(l lapsed) bool { return l.id == reservation })
	if i < 0 || b.entryAt(b.lapsed[i].at) < 0 {
		return 0, true // its units were given back when it lapsed
	}
	l := b.lapsed[i]
	b.lapsed = slices.Delete(b.lapsed, i, i+1)
	at := b.entryAt(l.at)
	stays = min(units, b.entries[at].units)
	b.entries[at].units = stays
	if stays == 0 {
		b.entries = slices.Delete(b.entries, at, at+1)
	}
	return stays, true
}

// Extend has a hold last longer.
func (m *Model) Extend(_ context.Context, e quota.Extend) (time.Time, error) {
	if err := e.Check(); err != nil {
		return time.Time{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	_, names, _ := quota.ParseReservation(e.Reservation)
	var buckets []*bucket
	for _, name := range names {
		buckets = append(buckets, m.credential(e.Credential).bucket(name))
	}
	n := lapse(m.clock(), buckets...)
	for _, b := range buckets {
		if err := b.canDraw(e.Reservation, 0, n); err != nil {
			return time.Time{}, err
		}
	}
	until := n + e.TTL.Microseconds()
	for _, b := range buckets {
		h := &b.holds[b.find(e.Reservation, n)]
		h.expires = max(h.expires, until)
		until = h.expires // the same in all of them
	}
	return moment(until), nil
}

// Release removes holds.
func (m *Model) Release(_ context.Context, credential, reservation string) (
	map[string]int64, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	_, names, err := quota.ParseReservation(reservation)
	if err != nil {
		return nil, err
	}
	cred, given := m.credential(credential), map[string]int64{}
	var buckets []*bucket
	for _, name := range names {
		buckets = append(buckets, cred.bucket(name))
	}
	n := lapse(m.clock(), buckets...)
	for i, b := range buckets {
		if err := b.canDraw(reservation, 0, n); err != nil {
			return nil, err
		}
		given[names[i]] = b.holds[b.find(reservation, n)].left
	}
	for _, b := range buckets {
		i := b.find(reservation, n)
		b.holds = slices.Delete(b.holds, i, i+1)
	}
	return given, nil
}

// Learn keeps what others used in one window according to the upstream.
func (m *Model) Learn(_ context.Context, l quota.Learn) (quota.Learned, error) {
	if err := l.Check(); err != nil {
		return quota.Learned{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b, w := m.credential(l.Credential).bucket(l.Limit.Bucket), l.Limit.Window
	now := m.clock()
	n := lapse(now, b)
	asked := l.Asked(n)
	b.reset = w.NextReset(b.reset, l.Told(), n)
	var was int64 // what has left the window since the upstream was asked still counts
	switch {
	case w.Anchored:
		was = usedIn(b, w, n)
	case w.IsRestoring():
		was = usedIn(b, w, n) + w.Restore.Restored(n-asked)
	default:
		was = usedIn(b, w, asked)
	}
	was += b.atMost(n)
	learned := quota.Learned{At: moment(n), Thought: max(0, l.Limit.Units-was)}
	if w.Anchored {
		learned.Reset = moment(b.reset)
	}
	if !l.Stale(b.reset, n) && l.Remaining >= 0 && l.Remaining < learned.Thought {
		learned.Units = learned.Thought - l.Remaining
		o := others{at: n, units: learned.Units}
		o.units += usedIn(b, w, n) - usedIn(b.alone(), w, n)
		if w.IsRestoring() {
			_, den := w.Restore.Terms()
			o.level = level(b, w, n) + learned.Units*den
		}
		if b.others == nil {
			b.others = map[string]others{}
		}
		b.others[w.String()] = o
		b.newest = max(b.newest, n-1)
	}
	return learned, nil
}

// claimed is who has a piece of work and until when; nobody when it is done.
type claimed struct {
	holder string
	until  time.Time
}

// Claim implements quota.Claims.
func (m *Model) Claim(_ context.Context, c quota.Claim) (quota.ClaimState, error) {
	if err := c.Check(); err != nil {
		return 0, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	key, now := c.Credential+" "+c.Name, m.Now()
	if old, ok := m.claims[key]; ok && now.Before(old.until) && old.holder != c.Holder {
		if old.holder == "" {
			return quota.ClaimDone, nil
		}
		return quota.ClaimHeld, nil
	}
	if m.claims == nil {
		m.claims = make(map[string]claimed)
	}
	m.claims[key] = claimed{c.Holder, now.Add(c.TTL)}
	return quota.ClaimWon, nil
}

// Finish implements quota.Claims.
func (m *Model) Finish(_ context.Context, c quota.Claim, done bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	key, now := c.Credential+" "+c.Name, m.Now()
	old, ok := m.claims[key]
	if !ok || !now.Before(old.until) || old.holder != c.Holder {
		return fmt.Errorf("%w: %s", quota.ErrNoClaim, c.Name)
	}
	delete(m.claims, key)
	if done {
		m.claims[key] = claimed{"", now.Add(c.TTL)}
	}
	return nil
}
