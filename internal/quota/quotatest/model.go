package quotatest

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"quotabudget/internal/quota"
)

// Model is the ledger by brute force: a plain slice of entries for each bucket, summed by looping,
// with no running totals. It is what the others are compared with, so it is written to be seen to
// be right and not to be fast.
type Model struct {
	Now func() time.Time

	mu          sync.Mutex
	credentials map[string]*credential
	claims      map[string]claimed
	// looks makes holds that lapse become entries for good whenever somebody looks, and not only
	// when something else is written.
	looks bool
}

var _ quota.Ledger = (*Model)(nil)

// credential is all that is known of one. Times are Unix microseconds.
type credential struct {
	buckets map[string]*bucket
	keys    map[string]answer // by idempotency key
	settled map[string]answer // by reservation
}

type bucket struct {
	entries        []entry
	forgotten      int64 // units of the entries that were trimmed
	newest         int64 // stamp of the newest entry there ever was
	keep           int64
	suspendedUntil int64
	suspension     quota.Suspension // who, when and why
	holds          []hold
	lapsed         []lapsed
	takings        []entry
	reset          int64 // of an anchored window
	others         map[string]others
}

// others is what others used in a window, by Window.String.
type others struct{ at, units, level int64 }

type entry struct {
	at     int64
	id     string
	units  int64
	labels quota.Labels
}

type hold struct {
	id      string
	left    int64
	most    int64
	drawn   int64
	created int64
	expires int64
	lapse   quota.Lapse
	labels  quota.Labels
	manual  bool
	note    string
}

// lapsed is a hold that has become an entry.
type lapsed struct {
	id string
	at int64
}

// answer is a decision that is given again when the same question comes again, until the given
// time.
type answer struct {
	question string
	decision quota.Decision
	until    int64
}

func (m *Model) clock() int64 { return m.Now().UnixMicro() }

func (m *Model) credential(name string) *credential {
	if m.credentials == nil {
		m.credentials = map[string]*credential{}
	}
	if m.credentials[name] == nil {
		keys, settled := map[string]answer{}, map[string]answer{}
		m.credentials[name] = &credential{map[string]*bucket{}, keys, settled}
	}
	return m.credentials[name]
}

// clone is a copy that shares nothing that changes.
func (c *credential) clone() credential {
	copied := credential{map[string]*bucket{}, maps.Clone(c.keys), maps.Clone(c.settled)}
	for name, b := range c.buckets {
		copied.buckets[name] = b.clone()
	}
	return copied
}

func (b *bucket) clone() *bucket {
	same := *b
	same.entries, same.holds = slices.Clone(b.entries), slices.Clone(b.holds)
	same.lapsed, same.takings = slices.Clone(b.lapsed), slices.Clone(b.takings)
	same.others = maps.Clone(b.others)
	return &same
}

// undo has the credential be as it was before, unless what was done is to stay.
func (m *Model) undo(c *credential, before credential, stays *bool) {
	if !*stays && !m.looks {
		*c = before
	}
}

func (c *credential) bucket(name string) *bucket {
	if c.buckets[name] == nil {
		c.buckets[name] = &bucket{keep: quota.Retention.Microseconds()}
	}
	return c.buckets[name]
}

// Denied does nothing: the model decides, and keeps no count of denials.
func (m *Model) Denied(string, quota.Denial) {}

// Denials returns none.
func (m *Model) Denials(context.Context, string, time.Time) ([]quota.Denial, error) {
	return nil, nil
}

// Suspend closes the bucket until the given time, or opens it.
func (m *Model) Suspend(_ context.Context, s quota.Suspension) error {
	if err := s.Check(); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.credential(s.Credential).bucket(s.Bucket)
	b.suspendedUntil = 0
	if !s.Until.IsZero() {
		b.suspendedUntil = s.Until.UnixMicro()
	}
	b.suspension, b.suspension.Since = s, moment(m.clock())
	return nil
}

// Usage sums up.
func (m *Model) Usage(_ context.Context, credential string, limits []quota.Limit) (
	quota.Usage, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	usage := quota.Usage{At: moment(m.clock())}
	var buckets []*bucket
	for _, l := range limits {
		buckets = append(buckets, m.credential(credential).bucket(l.Bucket))
	}
	never := false
	cred := m.credential(credential)
	defer m.undo(cred, cred.clone(), &never)
	future := newFuture(m.clock(), buckets)
	n := lapse(m.clock(), buckets...)
	for nth, l := range limits {
		b := m.credential(credential).bucket(l.Bucket)
		is := func(u quota.BucketUsage) bool { return u.Bucket == l.Bucket }
		i := slices.IndexFunc(usage.Buckets, is)
		if i < 0 {
			i = len(usage.Buckets)
			u := quota.BucketUsage{Bucket: l.Bucket, Held: b.held(n), AtMost: b.atMost(n)}
			if b.suspendedUntil > n {
				u.SuspendedUntil = moment(b.suspendedUntil)
				u.SuspendedBy, u.Reason = b.suspension.By, b.suspension.Reason
				u.SuspendedSince = b.suspension.Since
			}
			u.ResetAt = moment(b.reset)
			usage.Buckets = append(usage.Buckets, u)
		}
		used := usedIn(b, l.Window, n)
		usage.Buckets[i].Limits = append(usage.Buckets[i].Limits, quota.LimitUsage{
			Limit: l, Used: used, Remaining: max(0, l.Cap(false)-used-b.held(n)),
			Others:     used - usedIn(b.alone(), l.Window, n),
			NextFreeAt: moment(future.nextFree(nth, l.Window)),
		})
	}
	return usage, nil
}

// Reservations lists the holds that have not expired.
func (m *Model) Reservations(_ context.Context, credential, name string) (
	[]quota.Reservation, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.credential(credential).bucket(name)
	n := lapse(m.clock(), b)
	var list []quota.Reservation
	for _, h := range b.holds {
		if h.expires > n {
			list = append(list, quota.Reservation{
				ID: h.id, Bucket: name, Units: h.left + h.drawn, Most: h.most,
				Drawn: h.drawn, Left: h.left,
				CreatedAt: moment(h.created), ExpiresAt: moment(h.expires),
				Lapse: h.lapse, Manual: h.manual, Note: h.note,
			})
		}
	}
	slices.SortFunc(list, func(a, b quota.Reservation) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return list, nil
}

// Entries lists the log, adding up the totals as it goes.
func (m *Model) Entries(_ context.Context, q quota.Query) ([]quota.Entry, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.credential(q.Credential).bucket(q.Bucket)
	lapse(m.clock(), b)
	var list []quota.Entry
	total := b.forgotten
	for _, e := range b.entries {
		total += e.units
		if (q.Since.IsZero() || e.at > q.Since.UnixMicro()) &&
			(q.Until.IsZero() || e.at <= q.Until.UnixMicro()) {
			list = append(list, quota.Entry{At: moment(e.at), ID: e.id, Bucket: q.Bucket,
				Units: e.units, Total: total, Labels: maps.Clone(e.labels)})
		}
	}
	if q.Limit > 0 {
		list = list[max(0, len(list)-q.Limit):]
	}
	if q.First > 0 {
		list = list[:min(len(list), q.First)]
	}
	return list, nil
}

// Sums adds up the log.
func (m *Model) Sums(ctx context.Context, q quota.SumQuery) ([]quota.Sum, error) {
	all, err := m.Entries(ctx, quota.Query{Credential: q.Credential, Bucket: q.Bucket})
	before := func(s quota.Sum) bool { return s.At.Before(q.Since) }
	return slices.DeleteFunc(quota.AddUp(all), before), err
}

// Between adds up the entries between two moments.
func (m *Model) Between(_ context.Context, credential, bucket string, from, to time.Time) (
	units int64, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.credential(credential).bucket(bucket)
	lapse(m.clock(), b)
	for _, e := range b.entries {
		if e.at > from.UnixMicro() && e.at <= to.UnixMicro() {
			units += e.units
		}
	}
	return units, nil
}

// Mark is all that there is of the buckets.
func (m *Model) Mark(_ context.Context, credential string, buckets []string) (
	mark string, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, name := range buckets {
		mark += fmt.Sprintf("%+v\n", *m.credential(credential).bucket(name))
	}
	return mark, nil
}

// BucketsOf lists the buckets that were used.
func (m *Model) BucketsOf(_ context.Context, credential string) (all []quota.BucketTotal,
	err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	buckets := m.credential(credential).buckets
	for _, name := range slices.Sorted(maps.Keys(buckets)) {
		b := buckets[name]
		of := quota.BucketTotal{Bucket: name, Units: b.forgotten,
			Noted: b.suspendedUntil != 0 || len(b.others) > 0}
		for _, e := range b.entries {
			of.Units += e.units
		}
		for _, h := range b.holds {
			of.Units += h.left
		}
		all = append(all, of)
	}
	return all, nil
}

// Time is the model's clock.
func (m *Model) Time(context.Context) (time.Time, error) { return m.Now(), nil }

// Close does nothing.
func (m *Model) Close() error { return nil }

// write appends an entry and forgets a few old ones, but only a charge does so.
func (b *bucket) write(e entry, limits []quota.Limit, trim bool) {
	b.entries = append(b.entries, e)
	b.newest = e.at
	b.keep = max(b.keep, quota.RetentionFor(limits).Microseconds())
	for range 64 {
		if trim && b.entries[0].at <= e.at-b.keep {
			b.forgotten += b.entries[0].units
			b.entries = b.entries[1:]
		}
	}
}

// hasTrimmed reports whether entries are gone that the bucket would have if it kept them for so
// long.
func (m *Model) hasTrimmed(credential, bucket string, keep time.Duration) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.credential(credential).bucket(bucket)
	return b.forgotten > 0 && keep.Microseconds() > b.keep
}

// find is the index of the hold that has not expired at n, or -1.
func (b *bucket) find(reservation string, n int64) int {
	is := func(h hold) bool { return h.id == reservation && h.expires > n }
	return slices.IndexFunc(b.holds, is)
}

// kept is a copy of the labels that have a value.
func kept(l quota.Labels) quota.Labels {
	l = l.With(nil)
	maps.DeleteFunc(l, func(_, v string) bool { return v == "" })
	return l
}

// moment is the time of a stamp; none for 0 and for quota.Never.
func moment(micros int64) time.Time {
	if micros == 0 || micros == quota.Never {
		return time.Time{}
	}
	return time.UnixMicro(micros).UTC()
}

// question is what must be the same for the same idempotency key.
func question(operation string, costs []quota.Cost, reservation string) string {
	costs = slices.Clone(costs)
	slices.SortFunc(costs, func(a, b quota.Cost) int { return cmp.Compare(a.Bucket, b.Bucket) })
	return fmt.Sprint(operation, costs, reservation)
}
