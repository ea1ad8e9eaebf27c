package quota

import (
	"cmp"
	"slices"
)

// step is a moment at which holds change what counts: when one expires, or has become an entry.
type step struct {
	at    int64
	held  int64 // units that are held no more
	entry int64 // units of the entry that they become, 0 for none
}

// steps lists what becomes of the holds after from, if no caller settles them. Holds that become
// entries do so at the stamp of these: the moments in between are never decided at.
func (b *Bucket) steps(from int64) (steps []step) {
	for i := range b.Holds {
		if h := &b.Holds[i]; !h.charges() && isOpen(h, from) && h.Left() > 0 {
			steps = append(steps, step{at: h.Expires, held: h.Left()})
		}
	}
	if b.first < Never {
		for _, l := range b.schedule() {
			if l.at > from {
				steps = append(steps, step{l.at, l.hold.Left(), l.units})
			}
		}
	}
	slices.SortFunc(steps, func(x, y step) int { return cmp.Compare(x.at, y.at) })
	return steps
}

// fits returns the earliest moment, from a time on, at which units more stay within most under the
// limit if no caller charges meanwhile: Never if they cannot. Draws take units that are held
// already, so held units do not count against them.
func (b *Bucket) fits(l Limit, from, units, most int64, draws bool) int64 {
	if units > most {
		return Never
	}
	room := most - units
	held, _ := b.held(from)
	if draws {
		held = 0
	}
	if b.used(l, from)+held <= room {
		return from
	}
	steps := b.steps(from)
	if draws {
		for i := range steps {
			steps[i].held = 0
		}
	}
	if l.Window.IsRestoring() {
		return b.restored(l, from, room, held, steps)
	}
	return b.left(l, from, room, held, steps)
}

// restored does for a restoring window what fits does: the level falls between the steps.
func (b *Bucket) restored(l Limit, from, room, held int64, steps []step) int64 {
	r := l.Window.Restore
	num, den := r.Terms()
	level := b.levelOf(l, from)
	for i := 0; ; i++ {
		end := Never
		if i < len(steps) {
			end = steps[i].at
		}
		if may := room - held; may >= 0 {
			at := from
			if over := level - min(may, maxLevel/den)*den; over > 0 {
				at += (over + num - 1) / num
			}
			if at < end {
				return at
			}
		}
		if end == Never {
			return Never
		}
		level = r.LevelAfter(level, end-from)
		if steps[i].entry > 0 {
			level = r.plus(level, steps[i].entry)
		}
		held, from = held-steps[i].held, end
	}
}

// left does for the other windows what fits does: entries leave them, stored ones and those of
// lapses.
func (b *Bucket) left(l Limit, from, room, held int64, steps []step) int64 {
	w, reset := l.Window, b.State.ResetAt
	after := w.after(from, reset)
	base := b.logBase(after)
	count := held // what counts besides the stored entries
	var gone []step
	leave := func(at, now, units int64) {
		count += units
		gone = append(gone, step{at: max(now, w.departs(at, reset)), held: units})
	}
	if o := b.othersOf(l); o.Units > 0 && o.At > after {
		leave(o.At, from, o.Units)
	}
	if w.Concurrent {
		base = b.newest.Total
		for i := range steps {
			steps[i].entry = 0
		}
	} else {
		for _, l := range b.lapsed(from) {
			if w.departs(l.at, reset) > from {
				leave(l.at, from, l.units)
			}
		}
	}
	for _, s := range steps {
		if s.entry > 0 {
			leave(s.at, s.at, s.entry)
			count -= s.entry
		}
	}
	steps = append(steps, gone...)
	slices.SortFunc(steps, func(x, y step) int { return cmp.Compare(x.at, y.at) })
	used := b.newest.Total - base
	for i := 0; ; i++ {
		end := Never
		if i < len(steps) {
			end = steps[i].at
		}
		need := used + count - room // so many units must have left the stored log
		if need <= 0 && from < end {
			return from
		}
		if need > 0 && need <= used && (end == Never || b.logBase(w.after(end-1, reset))-base >= need) {
			stamp, err := b.Log.Reached(base + need)
			b.fail(err)
			if at := max(from, w.departs(stamp, reset)); at < end || b.broken != nil {
				return at
			}
		}
		if end == Never {
			return Never
		}
		count += steps[i].entry - steps[i].held
		from = end
	}
}

// nextFree returns the clock's time at which the next units come free in the one bucket, by an
// entry that leaves the window or a hold that expires; 0 when there are none. A hold that becomes
// an entry comes free when that leaves.
func (a *Account) nextFree(b *Bucket, w Window) int64 {
	held, _ := b.held(a.n)
	taken := b.used(Limit{Window: w}, a.n) + held
	if taken == 0 {
		return 0
	}
	for from := a.n; ; {
		next := b.fits(Limit{Window: w}, from, 1, taken, false)
		if next == Never || b.broken != nil {
			return 0
		}
		clock, n := a.reachable(next)
		if n == next {
			return clock
		}
		from = n
	}
}
