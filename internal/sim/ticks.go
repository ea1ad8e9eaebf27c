package sim

import (
	"slices"
	"sync"
	"time"
)

// ticks lists the ticks of one upstream day after another. It keeps those of the first days for
// the next play. It is safe for concurrent use.
type ticks struct {
	course *Course
	lock   sync.Mutex
	kept   [][]tick
	many   int // number of ticks kept
}

// mostKept bounds the ticks kept.
const mostKept = 500_000

// tick is a moment, in Unix µs since the beginning of its day's part, and a lane.
type tick uint64

const laneBits = 24

func (t tick) at() int64              { return int64(t >> laneBits) }
func (t tick) lane() int              { return int(t & (1<<laneBits - 1)) }
func newTick(at int64, lane int) tick { return tick(at)<<laneBits | tick(lane) }

// of lists the ticks of a day, by time and then lane. It may use room for them, and returns it if
// it is no longer needed.
func (t *ticks) of(day int, room []tick) (all, rest []tick) {
	t.lock.Lock()
	defer t.lock.Unlock()
	if day < len(t.kept) {
		return t.kept[day], room
	}
	s := t.course.days[day]
	base := s.From.UnixMicro()
	all = room[:0]
	for i, l := range t.course.Lanes {
		for tick := range l.Ticks(s.From.Add(-time.Nanosecond), s.To.Add(-time.Nanosecond)) {
			all = append(all, newTick(tick.At.UnixMicro()-base, i))
		}
	}
	slices.Sort(all)
	if day == len(t.kept) && t.many+len(all) <= mostKept {
		t.many += len(all)
		t.kept = append(t.kept, slices.Clone(all))
		return t.kept[day], all
	}
	return all, all
}
