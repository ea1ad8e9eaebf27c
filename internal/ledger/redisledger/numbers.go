package redisledger

import (
	"encoding/binary"
	"math"
	"time"

	"quotabudget/internal/quota"
)

// numbers are what a script finds in ARGV[1] (bucket.lua), whole and exact in a double.
type numbers []int64

func (n *numbers) add(more ...int64) { *n = append(*n, more...) }

// paced, in the place of a window's length, says that the limit is a pace.
const paced = -1

// window is the three numbers of a window (bucket.lua): the calendar window that holds now.
func window(w quota.Window, now time.Time) (length, start, end int64) {
	switch {
	case w.IsCalendar():
		from, to := w.Bounds(now)
		return -w.Longest().Microseconds(), from.UnixMicro(), to.UnixMicro()
	case w.IsRestoring():
		num, den := w.Restore.Terms()
		return 0, num, den
	case w.Anchored:
		return w.Length.Microseconds(), 1, 0
	case w.Concurrent:
		return 0, 0, 0
	}
	return w.Length.Microseconds(), 0, 0
}

// paceStep is by how much our guess of the server's clock may be wrong when the cap of a pace is
// computed. A line over a day moves by a ten-thousandth meanwhile.
const paceStep = 5 * time.Second

// addLimits adds limits, with the calendar windows that hold now.
func (n *numbers) addLimits(limits []quota.Limit, manual bool, now time.Time) {
	for _, l := range limits {
		length, start, end := window(l.Window, now)
		limit := l.Units
		if l.Pace != nil { // its cap holds about now only
			length, limit = paced, now.Add(-paceStep).UnixMicro()
			end = min(end, now.Add(paceStep).UnixMicro())
		}
		n.add(length, start, end, l.CapAt(now, manual, false), limit)
	}
}

// blob writes the numbers as little-endian doubles: a script reads them ten times as fast as
// decimal arguments.
func (n numbers) blob() []byte { return n.appendTo(make([]byte, 0, 8*len(n))) }

func (n numbers) appendTo(b []byte) []byte {
	for _, v := range n {
		b = binary.LittleEndian.AppendUint64(b, math.Float64bits(float64(v)))
	}
	return b
}

// lenOthers is the bytes of what others used in one window.
const lenOthers = 48

// The fields of a state hash that Go reads: its numbers, how far the sums reach, what others used.
const (
	stateField  = "s"
	summedField = "g"
	othersField = "o"
)
