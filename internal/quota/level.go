package quota

import (
	"slices"
	"time"
)

// Level is the stored level of a restoring window after the newest entry: see Rate. With it, a
// decision need not read the log. It is ignored if the log has another total.
type Level struct {
	Num, Den int64 // of the rate, in lowest terms
	At       int64 // time of the newest entry, or later if one was removed
	Total    int64 // of the newest entry
	Value    int64
}

// levelOf returns the level of the limit's restoring window at n, with the usage by other programs.
func (b *Bucket) levelOf(l Limit, n int64) int64 {
	r := l.Window.Restore
	level, o := b.level(r, n), b.othersOf(l)
	if o.Units > 0 {
		_, den := r.Terms()
		// Add the units charged since the upstream's report, without overflow.
		since := min(b.charged(o.At-1, n), (maxLevel-min(maxLevel, o.Level))/den)
		level = max(level, r.LevelAfter(min(maxLevel, o.Level+den*since), n-o.At))
	}
	return level
}

// rounded returns the units of a level, rounded up.
func (r Rate) rounded(level int64) int64 {
	_, den := r.Terms()
	return (level + den - 1) / den
}

// maxLevel is the maximum of a level. It is far below the overflow of an int64.
const maxLevel = Never

// plus returns the level after units are charged.
func (r Rate) plus(level, units int64) int64 {
	_, den := r.Terms()
	return level + min(maxLevel-level, min(units, maxLevel/den)*den)
}

// level returns the level of a restoring window at n.
func (b *Bucket) level(r Rate, n int64) int64 {
	level, at := b.levelAtNewest(r, n)
	for _, l := range b.lapsed(n) {
		level = r.plus(r.LevelAfter(level, l.at-at), l.units)
		at = l.at
	}
	return r.LevelAfter(level, n-at)
}

// levelAtNewest returns the level after the newest entry of the log, and its time, which is at most
// n. It adds up the entries since the stored level, or the whole log if the bucket has none for the
// rate.
func (b *Bucket) levelAtNewest(r Rate, n int64) (level, at int64) {
	num, den := r.Terms()
	for _, l := range b.State.Levels {
		if l.Num == num && l.Den == den && l.Total == b.newest.Total && l.At >= b.newest.At &&
			l.At <= n && b.newest.Units > 0 {
			return l.Value, l.At
		}
	}
	return b.readLevel(r), b.newest.At
}

// maxRead is the maximum number of entries that one step of a decision reads, unless the decision
// never writes.
const maxRead = 10_000

// readLevel adds up the log since the stored level.
func (b *Bucket) readLevel(r Rate) int64 {
	level, known := b.levels[r]
	if known || b.newest.Units == 0 {
		return level
	}
	const page = 1000
	num, den := r.Terms()
	last := Level{Num: num, Den: den, At: -Never}
	for _, l := range append(slices.Clone(b.State.Levels), b.read[r]) {
		if l.Num == num && l.Den == den && l.At > last.At && l.At < b.newest.At &&
			b.logBase(l.At) == l.Total {
			last = l
		}
	}
	for read := 0; b.broken == nil && last.At < b.newest.At; read += page {
		if b.read != nil && read >= maxRead {
			b.read[r] = last
			b.fail(ErrMore) // see Account.Bounded
			return last.Value
		}
		entries, err := b.Log.Since(last.At, page)
		b.fail(err)
		if len(entries) == 0 {
			b.damaged(Unsteady)
			break
		}
		for _, e := range entries {
			last.Value = r.plus(r.LevelAfter(last.Value, e.At-last.At), e.Units)
			last.At, last.Total = e.At, e.Total
		}
	}
	if b.levels == nil {
		b.levels = make(map[Rate]int64)
	}
	b.levels[r] = last.Value
	return last.Value
}

// rates returns the rates whose levels the bucket stores, and those of limits.
func (b *Bucket) rates(limits []Limit) (rates []Rate) {
	add := func(r Rate) {
		if !slices.Contains(rates, r) {
			rates = append(rates, r)
		}
	}
	for _, l := range b.State.Levels {
		add(Rate{Units: l.Num, Per: time.Duration(l.Den) * time.Microsecond})
	}
	for _, l := range limits {
		if l.Window.IsRestoring() {
			num, den := l.Window.Restore.Terms()
			add(Rate{Units: num, Per: time.Duration(den) * time.Microsecond})
		}
	}
	return rates
}

// levels returns the levels after the newest entry, as they are once the change is written. A
// bucket stores only the levels of its last eight rates, so that those of earlier limits do not
// accumulate.
func (e *edit) levels(limits []Limit) (levels []Level) {
	rates, n := e.rates(limits), e.n
	if len(e.Append) > 0 {
		n = e.Append[0].At // a correction may have a stamp before the time of a level
	}
	for _, r := range rates[max(0, len(rates)-8):] {
		num, den := r.Terms()
		if e.less < 0 { // units were added: the stored levels are unknown until the log is read
			continue
		}
		level, at := e.levelAtNewest(r, n)
		total := e.newest.Total - e.less
		if e.From != 0 {
			level = e.rewritten(r, level, at)
		}
		for _, entry := range e.Append {
			level = r.plus(r.LevelAfter(level, entry.At-at), entry.Units)
			at, total = entry.At, entry.Total
		}
		levels = append(levels, Level{Num: num, Den: den, At: at, Total: total, Value: level})
	}
	return levels
}

// rewritten returns the level at n after the last entries of the log are rewritten. n is not before
// the newest entry, and was is the level at n before that. A level is the maximum over all entries
// of the level that starts from zero at that entry. Here the maximum starts either at an entry that
// stays, where it is was less the units taken off, or at a rewritten entry.
func (e *edit) rewritten(r Rate, was, n int64) int64 {
	_, den := r.Terms()
	since, at := int64(0), int64(0)
	for _, entry := range e.Entries {
		since = r.plus(r.LevelAfter(since, entry.At-at), entry.Units)
		at = entry.At
	}
	return max(r.LevelAfter(since, n-at), was-min(e.less, maxLevel/den)*den)
}
