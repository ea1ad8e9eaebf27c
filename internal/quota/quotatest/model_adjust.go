package quotatest

import (
	"context"
	"maps"
	"slices"

	"quotabudget/internal/quota"
)

// mostRewritten is how many entries a correction writes again at most.
const mostRewritten = 10_000

// Adjust corrects the entries one by one.
func (m *Model) Adjust(_ context.Context, a quota.Adjust) (quota.Decision, error) {
	if err := a.Check(); err != nil {
		return quota.Decision{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	cred, now := m.credential(a.Credential), m.clock()
	if d, err, known := cred.replay(a.Key, a.Fingerprint(), now); known {
		return d, err
	}
	b := cred.bucket(a.Bucket)
	n := lapse(now, b)
	after, until := a.Span(n)
	var holds int64
	for _, e := range b.entries {
		if e.at > after && e.at <= until {
			holds += e.units
		}
	}
	if err := a.Refuses(holds); err != nil {
		return quota.Decision{}, err
	}
	before, at := cred.clone(), n
	var changed int
	if a.Units > 0 {
		if until < n {
			at = b.free(until)
		}
		if at <= after && at < n {
			return quota.Decision{}, quota.ErrNoEntry
		}
		changed = b.insert(entry{at, a.ID, a.Units, kept(a.Labels)})
		b.keep = max(b.keep, quota.RetentionFor(a.Limits).Microseconds())
	} else {
		changed = b.takeOff(-a.Units, after, until)
		b.takings = append(b.takings, entry{n, a.ID, -a.Units, kept(a.Labels)})
	}
	d := a.Done(a.ID, moment(at))
	if changed > mostRewritten || a.DryRun {
		*cred = before
	}
	if changed > mostRewritten {
		return quota.Decision{}, quota.ErrNoEntry
	}
	if !a.DryRun {
		cred.keep(a.Key, a.Fingerprint(), d, now+quota.RetentionFor(a.Limits).Microseconds())
	}
	return d, nil
}

// free is the newest stamp up to a time that no entry has.
func (b *bucket) free(at int64) int64 {
	for b.entryAt(at) >= 0 {
		at--
	}
	return at
}

// insert puts an entry in its place, and says how many come after it.
func (b *bucket) insert(e entry) (later int) {
	i := slices.IndexFunc(b.entries, func(other entry) bool { return other.at > e.at })
	if i < 0 {
		i = len(b.entries)
	}
	later = len(b.entries) - i
	b.entries = slices.Insert(b.entries, i, e)
	b.newest = max(b.newest, e.at)
	return later
}

// takeOff lowers the newest entries of a span one unit at a time, and says how many entries it
// changes: those, and all that come later.
func (b *bucket) takeOff(units, after, until int64) (changed int) {
	for i := len(b.entries) - 1; i >= 0 && units > 0; i-- {
		e := &b.entries[i]
		if e.at <= after {
			break
		}
		changed++
		for e.at <= until && units > 0 && e.units > 0 {
			e.units, units = e.units-1, units-1
		}
	}
	b.entries = slices.DeleteFunc(b.entries, func(e entry) bool { return e.units == 0 })
	b.lapsed = slices.DeleteFunc(b.lapsed, func(l lapsed) bool { // and of those that were trimmed
		return b.entryAt(l.at) < 0
	})
	return changed
}

// Takings lists what was taken off.
func (m *Model) Takings(_ context.Context, q quota.Query) (list []quota.Taking, _ error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	b := m.credential(q.Credential).bucket(q.Bucket)
	lapse(m.clock(), b)
	for _, t := range b.takings {
		if q.Since.IsZero() || t.at > q.Since.UnixMicro() {
			list = append(list, quota.Taking{At: moment(t.at), ID: t.id, Bucket: q.Bucket,
				Units: t.units, Labels: maps.Clone(t.labels)})
		}
	}
	return list, nil
}
