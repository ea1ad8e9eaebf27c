package sqliteledger

import (
	"database/sql"
	"math"

	"quotabudget/internal/quota"
)

// terms are a rate in lowest terms.
type terms struct{ num, den int64 }

// A level is kept once more than farEntries came after the one that was kept, at the entry that
// recentEntries followed: so it stays right when one of these is taken back.
const (
	farEntries    = 128
	recentEntries = 64
)

// mark is a place in the log: right after an entry.
type mark struct {
	at    int64 // of the entry
	total int64 // of the entry
	level int64
}

// level is that of a restoring window at the time n: see quota.Rate.
func (b *bucket) level(r quota.Rate, n int64) int64 {
	var of terms
	of.num, of.den = r.Terms()
	level, known := b.levels[of]
	if b.id == 0 || b.total == 0 || known {
		return level
	}
	level, entries := b.levelSince(of, b.mark(of), mark{at: n, total: b.total})
	if entries > farEntries {
		b.far = append(b.far, of)
	}
	if b.levels == nil {
		b.levels = make(map[terms]int64)
	}
	b.levels[of] = level
	return level
}

// mark is where to begin: at the level that was kept, if the log has not changed before it.
func (b *bucket) mark(of terms) (m mark) {
	if !b.s.find("level_find", []any{b.id, of.num, of.den}, &m.at, &m.total, &m.level) {
		m = mark{at: math.MinInt64, total: b.base(math.MinInt64)}
	}
	return m
}

// levelSince is the level at the end of a part of the log, and how many entries were looked at.
// Those so old that by now all that was charged since has been restored are not.
func (b *bucket) levelSince(of terms, from, to mark) (level, entries int64) {
	most := math.MaxInt64 / 8 / of.den
	charged := of.den * min(most, to.total-from.total)
	after := max(from.at, to.at-charged/of.num-1)
	var since sql.NullInt64
	b.s.find("level_after", []any{b.id, of.num, of.den, to.at, after, to.total, most},
		&since, &entries)
	level = max(0, since.Int64)
	if from.level > 0 && to.at-from.at <= (from.level+charged)/of.num {
		level = max(level, from.level-of.num*(to.at-from.at)+charged)
	}
	return min(level, math.MaxInt64/8), entries
}

// keepLevels keeps those that were far to find.
func (b *bucket) keepLevels() {
	for _, of := range b.far {
		to := mark{}
		if !b.s.find("entry_from_newest", []any{b.id, recentEntries}, &to.at, &to.total) {
			break
		}
		to.level, _ = b.levelSince(of, b.mark(of), to)
		b.s.change("level_keep", b.id, of.num, of.den, to.at, to.total, to.level)
		b.s.change("level_trim", b.id, b.newest-b.retention)
	}
	b.far = nil
}
