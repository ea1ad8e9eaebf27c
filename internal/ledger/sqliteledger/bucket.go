package sqliteledger

import (
	"database/sql"
	"encoding/json"
	"fmt"
	"slices"

	"quotabudget/internal/quota"
)

// bucket is one bucket's row, as read in this transaction. It is the quota.Log of its entries.
type bucket struct {
	s          *session
	credential string
	name       string
	id         int64 // 0: no row yet
	total      int64
	newest     int64 // stamp
	oldest     sql.NullInt64
	suspended  int64          // until
	retention  int64          // µs
	held       int64          // units left in its reservations, expired ones included
	atMost     int64          // what these can turn out to take
	reset      int64          // the last end of an anchored window that was told
	others     []quota.Others // that the upstream reported, by window
	ends       sql.NullInt64  // when the first of its reservations does that hold something
	expired    expired
	gaps       []gap
	levels     map[terms]int64
	far        []terms // rates whose levels are to be kept anew

	unwritten bool // total, newest and retention are yet to be written
	stale     bool // the row has changed in ways that are not known here
}

// gap is a time without entries, from after an entry, or from where somebody looked, to before the
// next one. base is the running total in it.
type gap struct{ from, next, base int64 }

// gapsKept is how many of these a bucket remembers.
const gapsKept = 8

// unsteady is said of entries whose totals contradict one another.
const unsteady = "the totals of its entries do not rise by their units"

// read reads the row of a bucket; one that was never used has none, and reading makes none.
func (s *session) read(credential, name string) *bucket {
	b := &bucket{s: s, credential: credential, name: name}
	var last, total sql.NullInt64
	var others string
	s.find("bucket_find", []any{credential, name}, &b.id, &b.total, &b.newest, &b.suspended,
		&b.retention, &b.held, &b.atMost, &b.reset, &others, &last, &total, &b.oldest, &b.ends)
	var ok bool
	if b.others, ok = parseOthers(others); !ok {
		b.damaged("what others used cannot be read")
	}
	keep := max(b.retention, quota.Retention.Microseconds())
	switch {
	case b.total < 0 || b.total > quota.MaxTotal || b.newest > quota.MaxTotal ||
		b.retention < 0 || b.retention > quota.Never || b.reset < 0 || b.reset > quota.MaxTotal:
		b.damaged("its state cannot be read, with a total of %d", b.total)
	case total.Valid && total.Int64 != b.total:
		b.damaged("the total is %d in its newest entry, and %d in its state", total.Int64, b.total)
	case total.Valid && last.Int64 > b.newest:
		b.damaged("its newest entry is later than the newest time in its state")
	case !total.Valid && b.total > 0 && b.newest > s.now()-keep:
		b.damaged("there are no entries, but the total in its state is %d", b.total)
	}
	return b
}

// parseOthers reads what others used; false if it cannot be read.
func parseOthers(text string) (all []quota.Others, ok bool) {
	if text == "" {
		return nil, true
	}
	err := json.Unmarshal([]byte(text), &all)
	invalid := func(o quota.Others) bool { return !o.Valid() }
	return all, err == nil && !slices.ContainsFunc(all, invalid)
}

// damaged tells the session that the rows of the bucket cannot be what this program wrote.
func (b *bucket) damaged(format string, args ...any) {
	what := fmt.Sprintf(format, args...)
	b.s.fail("", &quota.DamagedError{Credential: b.credential, Bucket: b.name, What: what})
}

// row makes sure that the bucket has one.
func (b *bucket) row() {
	if b.id == 0 {
		b.s.wrote = true
		b.s.find("bucket_add", []any{b.credential, b.name}, &b.id)
	}
}

// base is the running total just before the first entry after t.
func (b *bucket) base(t int64) int64 {
	if b.id == 0 || t >= b.newest {
		return b.total
	}
	for _, g := range b.gaps {
		if g.from <= t && t < g.next {
			return g.base
		}
	}
	return b.findBase(t)
}

func (b *bucket) findBase(t int64) int64 {
	var at, total, units int64
	var after, more sql.NullInt64
	if !b.s.find("entry_base", []any{b.id, t}, &at, &total, &units, &after, &more) {
		return b.total
	}
	if !after.Valid {
		after.Int64 = b.total
	}
	if units < 1 || units > total || more.Int64 < 0 || after.Int64 > b.total ||
		total > after.Int64-more.Int64 {
		b.damaged(unsteady)
	}
	if len(b.gaps) == gapsKept {
		b.gaps = b.gaps[1:]
	}
	b.gaps = append(b.gaps, gap{t, at, total - units})
	return total - units
}

// UsedAfter implements quota.Log.
func (b *bucket) UsedAfter(t int64) int64 { return b.total - b.base(t) }

// StampAt implements quota.Log.
func (b *bucket) StampAt(t, n int64) (at int64) {
	if !b.s.find("entry_reaching", []any{b.id, b.base(t) + n}, &at) {
		b.damaged(unsteady)
	}
	return at
}

// record writes an entry at n, newer than all others.
func (b *bucket) record(n, units int64, id, labels string) {
	b.row()
	if b.total+units > quota.MaxTotal {
		b.damaged("its running total of %d cannot grow by %d", b.total, units)
	}
	b.total, b.newest, b.levels = b.total+units, n, nil
	if !b.oldest.Valid {
		b.oldest = sql.NullInt64{Int64: n, Valid: true}
	}
	b.s.change("entry_add", b.id, n, id, units, b.total, labels)
	b.update()
	if b.expired.units > 0 {
		b.s.change("reservation_trim", b.id, b.newest, trimReservations)
		b.stale = true
	}
	b.keepLevels()
}

// trim forgets the oldest entries, a bounded number of them, once a thirty-second part of their
// time has piled up.
func (b *bucket) trim(n int64) {
	if b.oldest.Valid && b.oldest.Int64 <= n-b.retention-b.retention/32 {
		b.s.change("entry_trim", b.id, n-b.retention, trimEntries)
		b.stale = true
	}
}

// keep makes the retention long enough for the limits; it never gets shorter.
func (b *bucket) keep(limits []quota.Limit) {
	b.retention = max(b.retention, quota.RetentionFor(limits).Microseconds())
}
