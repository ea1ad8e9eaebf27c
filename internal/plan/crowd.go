package plan

import (
	"fmt"
	"slices"
	"time"

	"quotabudget/internal/share"
)

// maxCollisions bounds the number of different sets of lanes in the report.
const maxCollisions = 1000

// crowd finds the lanes that tick in one minute.
type crowd struct {
	lanes      []share.Lane
	indexes    map[string]int // index of a collision by its lanes
	collisions []Collision
	minute     time.Time
	ticking    []int // lanes that tick in the current minute
}

func (c *crowd) add(r Run, days []Day) {
	if minute := r.At.Truncate(time.Minute); !minute.Equal(c.minute) {
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
	for i := range days {
		d := &days[i]
		d.Crowded++
		if len(c.ticking) > d.Ticks {
			d.Busiest, d.Ticks = c.minute, len(c.ticking)
		}
	}
	slices.Sort(c.ticking)
	key := fmt.Sprint(c.ticking)
	if i, ok := c.indexes[key]; ok {
		c.collisions[i].Times++
		return
	}
	if len(c.indexes) == maxCollisions {
		return
	}
	n := Collision{Ticks: len(c.ticking), First: c.minute, Times: 1}
	for _, lane := range slices.Compact(c.ticking) {
		n.Lanes = append(n.Lanes, c.lanes[lane].Name())
	}
	c.indexes[key] = len(c.collisions)
	c.collisions = append(c.collisions, n)
}
