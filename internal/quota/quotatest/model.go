package quotatest

import (
	"cmp"
	"maps"
	"slices"
	"sort"
	"time"

	"quotabudget/internal/quota"
)

// model is one credential of a ledger by brute force: a plain slice of entries for each bucket,
// summed by looping, with no running totals. Ledgers are compared with it, so it is written to be
// obviously right, not fast.
type model struct {
	clock   *Clock
	buckets map[string]*bucket
	answers map[string]answer // by kind and key
}

// bucket is the state of one bucket. Numbers are units, and Unix microseconds.
type bucket struct {
	name          string
	items         []item // holds as they expire, and then entries by stamp
	newest, reset int64
	suspension    quota.Suspension
	takings       []item
	others        map[string]others // by Window.String
}

// item is a hold, or an entry of the log. A hold that lapses becomes an entry.
type item struct {
	at     int64 // stamp of the entry, 0 of a hold
	units  int64 // charged, or still held
	id     string
	labels quota.Labels
	of     quota.Reservation // the hold, or what the entry was before; empty once it is settled
}

type others struct{ at, units, level int64 }

// answer is a decision that is repeated for the same request until it expires.
type answer struct {
	question string
	decision quota.Decision
	until    int64
}

func (m *model) now() int64 { return m.clock.Now().UnixMicro() }

func (m *model) bucket(name string) *bucket {
	if m.buckets[name] == nil {
		m.buckets[name] = &bucket{name: name, others: map[string]others{}}
	}
	return m.buckets[name]
}

// at returns copies of the buckets at a time of the clock, if no caller acts until then, and the
// moment of a decision at that time: after every entry that any of the buckets ever had.
func (m *model) at(clock int64, names ...string) (buckets []*bucket, n int64) {
	for _, name := range names {
		b := *m.bucket(name)
		b.items, b.others = slices.Clone(b.items), maps.Clone(b.others)
		buckets = append(buckets, &b)
	}
	for was := int64(-1); n != was; { // an entry of a lapse moves n, and more holds lapse by then
		was, n = n, clock
		for _, b := range buckets {
			n = max(n, b.newest+1)
		}
		for _, b := range buckets {
			b.lapse(n)
		}
	}
	return buckets, n
}

// lapse turns the holds that have expired by n into entries, where they are charged, with the most
// units that they can have used.
func (b *bucket) lapse(n int64) {
	for i := range b.items {
		h := &b.items[i]
		if h.at == 0 && h.of.Lapse == quota.LapseCharge && !h.open(n) && h.units > 0 {
			b.newest = max(h.of.ExpiresAt.UnixMicro(), b.newest+1)
			h.at, h.units = b.newest, h.atMost()
		}
	}
	b.sort()
}

// sort puts the items in their order, without those that count nothing.
func (b *bucket) sort() {
	b.items = slices.DeleteFunc(b.items, func(x item) bool {
		return x.units == 0 && (x.at > 0 || x.of.ID == "")
	})
	slices.SortFunc(b.items, func(x, y item) int {
		return cmp.Or(cmp.Compare(x.at, y.at), x.of.ExpiresAt.Compare(y.of.ExpiresAt),
			cmp.Compare(x.of.ID, y.of.ID))
	})
}

// commit makes copies, once they are changed, the state of the buckets.
func (m *model) commit(buckets []*bucket) {
	for _, b := range buckets {
		b.sort()
		m.buckets[b.name] = b
	}
}

// change returns copies of the buckets to change, and the moment of the decision. It writes the
// entries of lapsed holds first, which stay even if the copies are not committed.
func (m *model) change(names ...string) (buckets []*bucket, n int64) {
	buckets, _ = m.at(m.now(), names...)
	m.commit(buckets)
	return m.at(m.now(), names...)
}

// farAhead, in µs, is twenty years: later than any decision.
const farAhead = 20 * 366 * 24 * 3_600_000_000

// first returns the first time of the clock, from one on, at which a condition is true if no caller
// acts meanwhile; quota.Never for none. Between two expiries of holds, units only come free.
func (m *model) first(from int64, names []string,
	matches func(buckets []*bucket, n int64) bool) int64 {
	ends := []int64{m.now() + farAhead}
	for _, name := range names {
		for _, h := range m.bucket(name).items {
			if h.at == 0 {
				ends = append(ends, h.of.ExpiresAt.UnixMicro())
			}
		}
	}
	slices.Sort(ends)
	for _, end := range slices.Compact(ends) {
		if end <= from {
			continue
		}
		buckets, n := m.at(from, names...) // no hold lapses up to the end
		later := func(i int) bool { return matches(buckets, max(n, from+int64(i))) }
		if span := int(end - from); later(span - 1) {
			return from + int64(sort.Search(span, later))
		}
		from = end
	}
	return quota.Never
}

// add adds an entry, or a hold. After n, time does not run backwards.
func (b *bucket) add(x item, n int64) {
	b.items, b.newest = append(b.items, x), max(b.newest, n)
}

func (x *item) open(n int64) bool { return x.at == 0 && n < x.of.ExpiresAt.UnixMicro() }

func (x *item) atMost() int64 { return max(x.units, x.of.Most-x.of.Drawn) }

// find returns the first item of which a condition is true, or an empty one.
func (b *bucket) find(matches func(x *item) bool) *item {
	for i := range b.items {
		if matches(&b.items[i]) {
			return &b.items[i]
		}
	}
	return new(item)
}

// reserved returns the hold of a reservation if it is open at n, else the first entry it became.
func (b *bucket) reserved(id string, n int64) *item {
	return b.find(func(x *item) bool { return x.of.ID == id && (x.at > 0 || x.open(n)) })
}

func (b *bucket) entryAt(stamp int64) *item {
	return b.find(func(x *item) bool { return x.at == stamp })
}

// held adds up the units held at n, and the most that the holds can turn out to use.
func (b *bucket) held(n int64) (held, atMost int64) {
	for _, h := range b.items {
		if h.open(n) {
			held, atMost = held+h.units, atMost+h.atMost()
		}
	}
	return held, atMost
}

// since returns the first stamp that is inside the window at n.
func (b *bucket) since(w quota.Window, n int64) int64 {
	first := n - w.Length.Microseconds() + 1
	switch {
	case w.Concurrent:
		return quota.Never
	case w.IsCalendar():
		start, _ := w.Bounds(moment(n))
		return start.UnixMicro()
	case w.Anchored && b.reset > n:
		return max(first, b.reset-w.Length.Microseconds())
	case w.Anchored:
		return max(first, b.reset)
	}
	return first
}

// used adds up the entries inside the window at n, and the units other programs used in it.
func (b *bucket) used(w quota.Window, n int64) int64 {
	if w.IsRestoring() {
		_, den := w.Restore.Terms()
		return (b.level(w, n) + den - 1) / den
	}
	since := b.since(w, n)
	sum := b.sum(since-1, quota.Never)
	if o := b.others[w.String()]; o.at >= since {
		sum += o.units
	}
	return sum
}

// own returns the units used without those of other programs.
func (b bucket) own(w quota.Window, n int64) int64 {
	b.others = nil
	return b.used(w, n)
}

// sum adds up the entries stamped after a time and up to another.
func (b *bucket) sum(after, until int64) (sum int64) {
	for _, e := range b.items {
		if e.at > max(0, after) && e.at <= until {
			sum += e.units
		}
	}
	return sum
}

// level adds up the charges from each entry on, less the units restored since, and returns the
// highest sum.
func (b *bucket) level(w quota.Window, n int64) (most int64) {
	num, den := w.Restore.Terms()
	var sum int64
	for _, e := range slices.Backward(b.items) {
		if e.at > 0 {
			sum += e.units * den
			most = max(most, sum-num*(n-e.at))
		}
	}
	if o := b.others[w.String()]; o.units > 0 {
		most = max(most, o.level+b.sum(o.at-1, quota.Never)*den-num*(n-o.at))
	}
	return most
}

// Usage sums up.
func (m *model) Usage(limits []quota.Limit) (quota.Usage, error) {
	var names []string
	for _, l := range limits {
		names = append(names, l.Bucket)
	}
	names = slices.Compact(names) // the limits of a bucket come together
	usage := quota.Usage{At: m.clock.Now()}
	buckets, n := m.at(m.now(), names...)
	for i, b := range buckets {
		held, atMost := b.held(n)
		u := quota.BucketUsage{Bucket: b.name, Held: held, AtMost: atMost, ResetAt: moment(b.reset)}
		if s := b.suspension; s.Until.UnixMicro() > n {
			u.SuspendedUntil, u.SuspendedSince = s.Until, s.Since
		}
		for _, l := range quota.LimitsOf(b.name, limits) {
			used := b.used(l.Window, n)
			lu := quota.LimitUsage{Limit: l, Used: used, Others: used - b.own(l.Window, n),
				Remaining: max(0, l.Cap(false)-used-held)}
			if used+held > 0 {
				lu.NextFreeAt = moment(m.first(m.now(), names, func(later []*bucket, n int64) bool {
					stays, _ := later[i].held(n)
					return later[i].used(l.Window, n)+stays < used+held
				}))
			}
			u.Limits = append(u.Limits, lu)
		}
		usage.Buckets = append(usage.Buckets, u)
	}
	return usage, nil
}

// Reservations lists the holds that have not expired.
func (m *model) Reservations(name string) ([]quota.Reservation, error) {
	buckets, n := m.at(m.now(), name)
	list := []quota.Reservation{}
	for _, h := range buckets[0].items {
		if h.of.Left = h.units; h.open(n) {
			list = append(list, h.of)
		}
	}
	slices.SortFunc(list, func(a, b quota.Reservation) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return list, nil
}

// log writes the entries of lapsed holds, and returns the entries and takings stamped after a time.
func (m *model) log(name string, after time.Time) (entries, takings []quota.Entry) {
	buckets, _ := m.change(name)
	list := func(items []item) (list []quota.Entry) {
		for _, e := range items {
			if e.at > after.UnixMicro() {
				e.labels = e.labels.With(nil) // a copy
				maps.DeleteFunc(e.labels, func(_, v string) bool { return v == "" })
				list = append(list, quota.Entry{At: moment(e.at), ID: e.id, Bucket: name,
					Units: e.units, Labels: e.labels})
			}
		}
		return list
	}
	return list(buckets[0].items), list(buckets[0].takings)
}

// moment returns the time of a stamp; the zero time for 0 and quota.Never.
func moment(micros int64) time.Time {
	if micros == 0 || micros == quota.Never {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}
