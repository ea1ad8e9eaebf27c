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
// obviously right, not fast. Its answers are the decisions by kind and key; each inner map has the
// one request that used the key.
type model struct {
	*Clock
	buckets map[string]*bucket
	answers map[string]map[string]quota.Decision
}

// bucket is the state of one bucket. Numbers are units or Unix microseconds.
type bucket struct {
	name          string
	items         []item // holds by expiry, then entries by stamp
	newest, reset int64
	suspension    quota.Suspension
	takings       []item
	others        map[string]quota.Others // by Window.String
}

// item is a hold, or an entry of the log. A hold that lapses becomes an entry.
type item struct {
	at     int64 // stamp of the entry; 0 for a hold
	units  int64 // charged, or still held
	id     string
	labels quota.Labels
	of     quota.Reservation // of the hold, or the lapsed hold of the entry; zero once settled
}

func (m *model) now() int64 { return m.Now().UnixMicro() }

// at returns copies of the buckets as they will be at a clock time if no caller acts until then,
// and the moment of a decision at that time, which is later than every entry of the buckets.
func (m *model) at(clock int64, names ...string) (buckets []*bucket, n int64) {
	for _, name := range names {
		b := *m.buckets[name]
		b.items, b.others = slices.Clone(b.items), maps.Clone(b.others)
		buckets = append(buckets, &b)
	}
	for was := int64(-1); n != was; { // the entry of a lapse increases n, so more holds may lapse
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

// lapse sorts the items, drops those without units, and converts each hold that has expired by n
// and is charged when it lapses into an entry with the maximum units of its call.
func (b *bucket) lapse(n int64) {
	b.items = slices.DeleteFunc(b.items, func(x item) bool {
		return x.units == 0 && (x.at > 0 || x.of.ID == "")
	})
	slices.SortFunc(b.items, func(x, y item) int {
		return cmp.Or(cmp.Compare(x.at, y.at), x.of.ExpiresAt.Compare(y.of.ExpiresAt),
			cmp.Compare(x.of.ID, y.of.ID))
	})
	for i := range b.items {
		h := &b.items[i]
		if h.at == 0 && h.of.Lapse == quota.LapseCharge && !h.open(n) && h.units > 0 {
			b.newest = max(h.of.ExpiresAt.UnixMicro(), b.newest+1)
			h.at, h.units = b.newest, h.atMost()
		}
	}
}

// change writes the entries of lapsed holds, and returns the buckets to change and the moment.
func (m *model) change(names ...string) (buckets []*bucket, n int64) {
	buckets, n = m.at(m.now(), names...)
	for _, b := range buckets {
		m.buckets[b.name] = b
	}
	return buckets, n
}

const farAhead = 20 * 366 * 24 * 3_600_000_000 // µs; later than any decision

// first returns the first clock time, from now on, at which matches is true if no caller acts until
// then, or quota.Never. Between two expiries of holds, usage only falls.
func (m *model) first(names []string, matches func(buckets []*bucket, n int64) bool) int64 {
	for from, last := m.now(), m.now()+farAhead; from < last; {
		buckets, n := m.at(from, names...)
		if matches(buckets, n) {
			return from
		}
		end := last // no hold expires before it
		for _, b := range buckets {
			if i := slices.IndexFunc(b.items, func(h item) bool { return h.open(from) }); i >= 0 {
				end = min(end, b.items[i].of.ExpiresAt.UnixMicro()) // items are sorted by expiry
			}
		}
		from += int64(sort.Search(int(end-from), func(i int) bool {
			return matches(buckets, max(n, from+int64(i)))
		}))
		if from < end {
			return from
		}
	}
	return quota.Never
}

func (x *item) open(n int64) bool { return x.at == 0 && n < x.of.ExpiresAt.UnixMicro() }
func (x *item) atMost() int64     { return max(x.units, x.of.Most-x.of.Drawn) }

// reserved returns the open hold of a reservation, or the first entry of its lapsed hold, or a zero
// item.
func (b *bucket) reserved(id string, n int64) *item {
	for i := range b.items {
		if x := &b.items[i]; x.of.ID == id && (x.at > 0 || x.open(n)) {
			return x
		}
	}
	return new(item)
}

// held adds up the units held at n, and the maximum units that the held calls can use.
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

// used adds up the entries inside the window at n and, if others is set, the usage by other
// programs.
func (b *bucket) used(w quota.Window, n int64, others bool) int64 {
	if w.IsRestoring() {
		_, den := w.Restore.Terms()
		return (b.level(w, n, others) + den - 1) / den
	}
	since := b.since(w, n)
	sum := b.sum(since-1, quota.Never)
	if o := b.others[w.String()]; others && o.At >= since {
		sum += o.Units
	}
	return sum
}

func (b *bucket) sum(after, until int64) (sum int64) {
	for _, e := range b.items {
		if e.at > max(0, after) && e.at <= until {
			sum += e.units
		}
	}
	return sum
}

// level returns the level of a restoring window at n. Starting from each entry in turn, it adds up
// the later charges and subtracts the units restored since that entry; the level is the maximum.
func (b *bucket) level(w quota.Window, n int64, others bool) (most int64) {
	num, den := w.Restore.Terms()
	var sum int64
	for _, e := range slices.Backward(b.items) {
		if e.at > 0 {
			sum += e.units * den
			most = max(most, sum-num*(n-e.at))
		}
	}
	if o := b.others[w.String()]; others && o.Units > 0 {
		most = max(most, o.Level+b.sum(o.At-1, quota.Never)*den-num*(n-o.At))
	}
	return most
}

func (m *model) Usage(limits []quota.Limit) (quota.Usage, error) {
	names := slices.DeleteFunc(slices.Clone(storyBuckets), func(name string) bool {
		return len(quota.LimitsOf(name, limits)) == 0
	})
	usage := quota.Usage{At: m.Now()}
	buckets, n := m.at(m.now(), names...)
	for i, b := range buckets {
		held, atMost := b.held(n)
		u := quota.BucketUsage{Bucket: b.name, Held: held, AtMost: atMost, ResetAt: moment(b.reset)}
		if s := b.suspension; s.Until.UnixMicro() > n {
			u.SuspendedUntil, u.SuspendedSince = s.Until, s.Since
		}
		for _, l := range quota.LimitsOf(b.name, limits) {
			used := b.used(l.Window, n, true)
			next := m.first(names, func(later []*bucket, n int64) bool {
				stays, _ := later[i].held(n)
				return later[i].used(l.Window, n, true)+stays < used+held
			})
			u.Limits = append(u.Limits, quota.LimitUsage{Limit: l, Used: used,
				Others:    used - b.used(l.Window, n, false),
				Remaining: max(0, l.Cap(false)-used-held), NextFreeAt: moment(next)})
		}
		usage.Buckets = append(usage.Buckets, u)
	}
	return usage, nil
}

func (m *model) Reservations(name string) (list []quota.Reservation, err error) {
	buckets, n := m.at(m.now(), name)
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

func (m *model) log(name string, after time.Time) (entries, takings []quota.Entry) {
	buckets, _ := m.change(name)
	list := func(items []item) (list []quota.Entry) {
		for _, e := range items {
			if e.at > after.UnixMicro() {
				list = append(list, quota.Entry{At: moment(e.at), ID: e.id, Bucket: name,
					Units: e.units, Labels: e.labels})
			}
		}
		return list
	}
	return list(buckets[0].items), list(buckets[0].takings)
}
