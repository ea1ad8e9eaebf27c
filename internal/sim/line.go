package sim

import (
	"time"

	"quotabudget/internal/quota"
)

// line is quota.Pace.Line for successive windows, without calendar computations at each call.
type line struct {
	pace    quota.Pace
	units   int64
	start   int64
	whole   float64
	hours   []hour
	current int
}

// hour is a stretch of the day with one weight.
type hour struct {
	start  int64   // µs
	before float64 // area below the curve since the day's start
	weight float64
}

func (c *line) draw(w quota.Window, start, end time.Time) {
	c.start, c.current, c.hours, c.whole = start.UnixMicro(), 0, nil, end.Sub(start).Seconds()
	if len(c.pace.Curve) == 0 {
		return
	}
	c.whole = 0
	for from := start; from.Before(end); {
		local := from.In(w.Zone)
		_, offset := local.Zone()
		next := from.Add(time.Hour - time.Duration((from.Unix()+int64(offset))%3600)*time.Second)
		if next.After(end) {
			next = end
		}
		weight := float64(c.pace.Curve[local.Hour()])
		c.hours = append(c.hours, hour{from.UnixMicro(), c.whole, weight})
		c.whole += weight * next.Sub(from).Seconds()
		from = next
	}
}

func (c *line) at(n int64) int64 {
	part := seconds(n - c.start)
	if len(c.hours) > 0 {
		for c.current+1 < len(c.hours) && c.hours[c.current+1].start <= n {
			c.current++
		}
		h := c.hours[c.current]
		part = h.before
		if n > h.start {
			part += h.weight * seconds(n-h.start)
		}
	}
	return min(c.units, c.pace.Slack+int64(float64(c.units)*part/c.whole))
}

func seconds(micros int64) float64 { return (time.Duration(micros) * time.Microsecond).Seconds() }
