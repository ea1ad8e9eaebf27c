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
	name                string
	entries             []quota.Entry // without totals
	forgotten           int64         // of the entries that were trimmed
	newest, keep, reset int64
	suspension          quota.Suspension
	holds               []hold
	lapsed              map[string][]int64 // stamps of the entries of lapsed reservations
	takings             []quota.Entry
	others              map[string]others // by Window.String
}

type hold struct {
	quota.Reservation
	labels quota.Labels
}

type others struct{ at, units, level int64 }

// answer is a decision that is repeated for the same request until it expires.
type answer struct {
	question string
	decision quota.Decision
	until    int64
}

func newModel(clock *Clock) *model {
	return &model{clock: clock, buckets: map[string]*bucket{}, answers: map[string]answer{}}
}

func (m *model) bucket(name string) *bucket {
	if m.buckets[name] == nil {
		m.buckets[name] = &bucket{name: name, keep: quota.Retention.Microseconds(),
			lapsed: map[string][]int64{}, others: map[string]others{}}
	}
	return m.buckets[name]
}

func (b *bucket) clone() *bucket {
	same := *b
	same.entries, same.holds = slices.Clone(b.entries), slices.Clone(b.holds)
	same.lapsed, same.others = maps.Clone(b.lapsed), maps.Clone(b.others)
	return &same
}

// lapse turns holds that expired up to now into entries where they are charged, and returns the
// moment of the decision: now, but after every entry that any of the buckets ever had.
func lapse(now int64, buckets []*bucket) (n int64) {
	for more := true; more; {
		n, more = now, false
		for _, b := range buckets {
			n = max(n, b.newest+1)
		}
		for _, b := range buckets {
			more = b.lapseOne(n) || more
		}
	}
	return n
}

// lapseOne writes the entry of the earliest hold that has expired by n, if any, with the most units
// that it can have used.
func (b *bucket) lapseOne(n int64) bool {
	due := slices.DeleteFunc(slices.Clone(b.holds), func(h hold) bool {
		return h.Lapse != quota.LapseCharge || h.open(n) || h.Left == 0
	})
	if len(due) == 0 {
		return false
	}
	h := slices.MinFunc(due, func(x, y hold) int {
		return cmp.Or(x.ExpiresAt.Compare(y.ExpiresAt), cmp.Compare(x.ID, y.ID))
	})
	b.drop(h.ID)
	at := max(h.ExpiresAt.UnixMicro(), b.newest+1)
	b.lapsed[h.ID] = append(b.lapsed[h.ID], at)
	b.write(at, entryID(h.ID), h.atMost(), h.labels, nil)
	return true
}

// entryID returns the ID of the entry that a reservation becomes.
func entryID(reservation string) string {
	id, _, _ := quota.ParseReservation(reservation)
	return id
}

func (b *bucket) write(n int64, id string, units int64, l quota.Labels, limits []quota.Limit) {
	b.entries = append(b.entries, quota.Entry{At: moment(n), ID: id, Bucket: b.name, Units: units,
		Labels: named(l)})
	b.newest, b.keep = n, max(b.keep, quota.RetentionFor(limits).Microseconds())
}

// trim forgets a few old entries, as a charge does.
func (b *bucket) trim() {
	for range 64 {
		if b.entries[0].At.UnixMicro() <= b.newest-b.keep {
			b.forgotten += b.entries[0].Units
			b.entries = b.entries[1:]
		}
	}
}

func (h hold) open(n int64) bool { return n < h.ExpiresAt.UnixMicro() }

func (h hold) atMost() int64 { return max(h.Left, h.Most-h.Drawn) }

// find returns the open hold of a reservation at n, or nil.
func (b *bucket) find(reservation string, n int64) *hold {
	for i := range b.holds {
		if h := &b.holds[i]; h.ID == reservation && h.open(n) {
			return h
		}
	}
	return nil
}

func (b *bucket) drop(reservation string) {
	b.holds = slices.DeleteFunc(b.holds, func(h hold) bool { return h.ID == reservation })
}

// entryAt returns the index of the entry with that stamp, or -1.
func (b *bucket) entryAt(stamp int64) int {
	return slices.IndexFunc(b.entries, func(e quota.Entry) bool { return e.At.UnixMicro() == stamp })
}

// held adds up the units held at n, and the most that the holds can turn out to use.
func (b *bucket) held(n int64) (held, atMost int64) {
	for _, h := range b.holds {
		if h.open(n) {
			held, atMost = held+h.Left, atMost+h.atMost()
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
	if o := b.others[w.String()]; o.units > 0 && o.at >= since {
		sum += o.units
	}
	return sum
}

// sum adds up the entries stamped after a time and up to another.
func (b *bucket) sum(after, until int64) (sum int64) {
	for _, e := range b.entries {
		if at := e.At.UnixMicro(); at > after && at <= until {
			sum += e.Units
		}
	}
	return sum
}

// level adds up the charges from each entry on, less the units restored since.
func (b *bucket) level(w quota.Window, n int64) (most int64) {
	num, den := w.Restore.Terms()
	var sum int64
	for _, e := range slices.Backward(b.entries) {
		sum += e.Units * den
		most = max(most, sum-num*(n-e.At.UnixMicro()))
	}
	if o := b.others[w.String()]; o.units > 0 {
		most = max(most, o.level+b.sum(o.at-1, quota.Never)*den-num*(n-o.at))
	}
	return most
}

// alone returns the bucket without the units of other programs.
func (b *bucket) alone() *bucket {
	own := *b
	own.others = nil
	return &own
}

// future computes buckets at later times, if no caller acts and holds lapse.
type future struct {
	now      int64 // the clock
	buckets  []*bucket
	expiries []int64           // of holds, and the end of what is looked at
	seen     map[int][]*bucket // by how many of the expiries are past
}

// farAhead, in µs, is twenty years: later than any decision.
const farAhead = 20 * 366 * 24 * 3_600_000_000

func (m *model) future(names ...string) *future {
	now := m.clock.Now().UnixMicro()
	f := &future{now: now, seen: map[int][]*bucket{}, expiries: []int64{now + farAhead}}
	for _, name := range names {
		f.buckets = append(f.buckets, m.bucket(name))
		for _, h := range m.bucket(name).holds {
			f.expiries = append(f.expiries, h.ExpiresAt.UnixMicro())
		}
	}
	slices.Sort(f.expiries)
	f.expiries = slices.Compact(f.expiries)
	return f
}

// at returns the buckets at a time of the clock, and the moment of a decision then. It computes
// lapsed entries once between two expiries.
func (f *future) at(clock int64) (buckets []*bucket, n int64) {
	past := sort.Search(len(f.expiries), func(i int) bool { return f.expiries[i] > clock })
	if f.seen[past] == nil {
		for _, b := range f.buckets {
			f.seen[past] = append(f.seen[past], b.clone())
		}
	}
	return f.seen[past], lapse(clock, f.seen[past])
}

// first returns the first time of the clock, from one on, at which a condition is true; quota.Never
// for none. While no hold expires, units only come free, so it checks the end of each such span.
func (f *future) first(from int64, matches func(buckets []*bucket, n int64) bool) int64 {
	if matches(f.at(from)) {
		return from
	}
	for _, end := range f.expiries {
		if end > from && matches(f.at(end-1)) {
			return from + int64(sort.Search(int(end-from), func(i int) bool {
				return matches(f.at(from + int64(i)))
			}))
		}
		from = max(from, end)
	}
	return quota.Never
}

// begin returns copies of the buckets now, after their holds have lapsed, and the moment of the
// decision.
func (m *model) begin(names ...string) (buckets []*bucket, n int64) {
	f := m.future(names...)
	return f.at(f.now)
}

// change writes the entries of lapsed holds, and calls do with the number of each bucket, a copy of
// it, and the moment of the decision. After an error nothing else is changed.
func (m *model) change(names []string, do func(i int, b *bucket, n int64) error) error {
	buckets, n := m.lapse(names...)
	for i, b := range buckets {
		buckets[i] = b.clone()
		if err := do(i, buckets[i], n); err != nil {
			return err
		}
	}
	m.commit(buckets)
	return nil
}

// lapse does what begin does, and writes the entries of lapsed holds.
func (m *model) lapse(names ...string) (buckets []*bucket, n int64) {
	buckets, n = m.begin(names...)
	m.commit(buckets)
	return buckets, n
}

func (m *model) commit(buckets []*bucket) {
	for _, b := range buckets {
		m.buckets[b.name] = b
	}
}

// Usage sums up.
func (m *model) Usage(limits []quota.Limit) (quota.Usage, error) {
	var names []string
	for _, l := range limits {
		names = append(names, l.Bucket)
	}
	names = slices.Compact(names) // the limits of a bucket come together
	future := m.future(names...)
	usage := quota.Usage{At: moment(future.now)}
	buckets, n := m.begin(names...)
	for i, b := range buckets {
		held, atMost := b.held(n)
		u := quota.BucketUsage{Bucket: b.name, Held: held, AtMost: atMost, ResetAt: moment(b.reset)}
		if s := b.suspension; s.Until.UnixMicro() > n {
			u.SuspendedUntil, u.SuspendedSince = s.Until, s.Since
		}
		for _, l := range quota.LimitsOf(b.name, limits) {
			used := b.used(l.Window, n)
			less := func(buckets []*bucket, n int64) bool {
				later, _ := buckets[i].held(n)
				return buckets[i].used(l.Window, n)+later < used+held
			}
			lu := quota.LimitUsage{Limit: l, Used: used, Others: used - b.alone().used(l.Window, n),
				Remaining: max(0, l.Cap(false)-used-held)}
			if used+held > 0 {
				lu.NextFreeAt = moment(future.first(future.now, less))
			}
			u.Limits = append(u.Limits, lu)
		}
		usage.Buckets = append(usage.Buckets, u)
	}
	return usage, nil
}

// Reservations lists the holds that have not expired.
func (m *model) Reservations(name string) ([]quota.Reservation, error) {
	buckets, n := m.begin(name)
	list := []quota.Reservation{}
	for _, h := range buckets[0].holds {
		if h.open(n) {
			list = append(list, h.Reservation)
		}
	}
	slices.SortFunc(list, func(a, b quota.Reservation) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return list, nil
}

// log returns the entries and takings stamped after a time.
func (m *model) log(name string, after time.Time) ([]quota.Entry, []quota.Entry) {
	buckets, _ := m.lapse(name)
	b := buckets[0].clone()
	return slices.DeleteFunc(b.entries, func(e quota.Entry) bool { return !e.At.After(after) }),
		slices.DeleteFunc(slices.Clone(b.takings),
			func(t quota.Entry) bool { return !t.At.After(after) })
}

// named returns a copy of the labels that have a value.
func named(l quota.Labels) quota.Labels {
	l = l.With(nil)
	maps.DeleteFunc(l, func(_, v string) bool { return v == "" })
	return l
}

// moment returns the time of a stamp; the zero time for 0 and quota.Never.
func moment(micros int64) time.Time {
	if micros == 0 || micros == quota.Never {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}
