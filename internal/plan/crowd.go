package plan

import (
	"fmt"
	"slices"
	"time"

	"quotabudget/internal/share"
)

// mostCollisions bounds the number of different sets of lanes in the report.
const mostCollisions = 1000

// crowd finds the lanes that tick in one minute.
type crowd struct {
	lanes   []share.Lane
	known   map[string]int // index of a collision by its lanes
	found   []Collision
	minute  int64
	ticking []int // lanes that tick in the current minute
}

const minuteLength = int64(time.Minute / time.Microsecond)

func (c *crowd) add(r Run, days []Day) {
	minute := floorMinute(r.At.UnixMicro())
	if minute != c.minute {
		c.flush(days)
		c.minute = minute
	}
	c.ticking = append(c.ticking, r.Lane)
}

func (c *crowd) flush(days []Day) {
	if len(c.ticking) > 1 {
		c.note(days)
	}
	c.ticking = c.ticking[:0]
}

func (c *crowd) note(days []Day) {
	at := moment(c.minute * minuteLength)
	for i := range days {
		d := &days[i]
		d.Crowded++
		if len(c.ticking) > d.Ticks {
			d.Busiest, d.Ticks = at, len(c.ticking)
		}
	}
	slices.Sort(c.ticking)
	key := fmt.Sprint(c.ticking)
	if i, ok := c.known[key]; ok {
		c.found[i].Times++
		return
	}
	if len(c.known) == mostCollisions {
		return
	}
	n := Collision{Ticks: len(c.ticking), First: at, Times: 1}
	for _, lane := range slices.Compact(c.ticking) {
		n.Lanes = append(n.Lanes, c.lanes[lane].Name())
	}
	c.known[key] = len(c.found)
	c.found = append(c.found, n)
}

func (c *crowd) sorted() []Collision {
	slices.SortStableFunc(c.found, func(a, b Collision) int {
		return b.Times*b.Ticks - a.Times*a.Ticks
	})
	return c.found
}

func floorMinute(at int64) int64 {
	if at < 0 {
		return (at+1)/minuteLength - 1
	}
	return at / minuteLength
}
