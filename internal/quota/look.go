package quota

import (
	"cmp"
	"slices"
)

// Usage returns the usage of the buckets at one moment.
func (a *Account) Usage(limits []Limit) (Usage, error) {
	a.decide()
	usage := Usage{At: StampTime(a.Now)}
	for _, b := range a.Buckets {
		held, atMost := b.held(a.n)
		u := BucketUsage{Bucket: b.Name, Held: held, AtMost: atMost}
		if a.n < b.State.SuspendedUntil {
			u.SuspendedUntil = StampTime(b.State.SuspendedUntil)
			u.SuspendedSince = StampTime(b.State.SuspendedSince)
			u.SuspendedBy, u.Reason = b.State.SuspendedBy, b.State.Reason
		}
		if b.State.ResetAt != 0 {
			u.ResetAt = StampTime(b.State.ResetAt)
		}
		for _, l := range LimitsOf(b.Name, limits) {
			used := b.used(l, a.n)
			lu := LimitUsage{Limit: l, Used: used, Others: used - b.own(l.Window, a.n),
				Remaining: max(0, l.Cap(false)-used-held)}
			if next := a.nextFree(b, l.Window); next != 0 {
				lu.NextFreeAt = StampTime(next)
			}
			if from := b.countsFrom(l, a.n); from != 0 {
				lu.CountsFrom = StampTime(from)
			}
			u.Limits = append(u.Limits, lu)
		}
		usage.Buckets = append(usage.Buckets, u)
	}
	return usage, a.err()
}

// countsFrom returns the stamp of the log's first entry, if earlier ones that the limit counts at n
// may have been forgotten; else 0.
func (b *Bucket) countsFrom(l Limit, n int64) int64 {
	after := l.Since(StampTime(n), StampTime(b.State.ResetAt)).UnixMicro()
	if after >= n-Retention.Microseconds() { // kept in every log
		return 0
	}
	first, err := b.Log.Since(-Never, 1)
	b.fail(err)
	if len(first) == 0 || first[0].At <= after || first[0].Total == first[0].Units {
		return 0
	}
	return first[0].At
}

// Taken returns the units that count under a limit of the bucket, used or held, at a moment or at
// the stamp of the newest entry if that is later.
func (b *Bucket) Taken(l Limit, now int64) int64 {
	b.begin(now)
	n := max(now, b.newest.At)
	held, _ := b.held(n)
	return b.used(l, n) + held
}

// Reservations returns the open reservations of the one bucket, oldest first.
func (a *Account) Reservations() ([]Reservation, error) {
	a.decide()
	var list []Reservation
	for _, h := range a.Buckets[0].Holds {
		if isOpen(&h, a.n) {
			list = append(list, Reservation{ID: h.ID, Bucket: a.Buckets[0].Name, Units: h.Units,
				Most: max(h.Units, h.Most), Drawn: h.Drawn, Left: h.Left(),
				CreatedAt: StampTime(h.Created), ExpiresAt: StampTime(h.Expires), Lapse: h.Lapse,
				Manual: h.Manual, Note: h.Note})
		}
	}
	slices.SortFunc(list, func(a, b Reservation) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	})
	return list, a.err()
}

// Between returns the units of the entries of the one bucket in a span.
func (a *Account) Between(from, to int64) (int64, error) {
	a.decide()
	b := a.Buckets[0]
	return max(0, b.charged(from, a.n)-b.charged(to, a.n)), a.err()
}
