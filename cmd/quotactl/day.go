package main

import (
	"context"
	"fmt"
	"slices"
	"time"

	"quotabudget/internal/quota"
)

// dayRoom is the room in the upstream's day for a charge that a limit of 24 hours alone denies.
type dayRoom struct {
	bucket string
	limit  string // the limit that denies
	left   map[string]int64
}

// dayRoom returns the room of a denied charge, and false if the upstream's day denies it, too.
func (g *gate) dayRoom(ctx context.Context, manual bool, d quota.Decision) (r dayRoom, ok bool) {
	if d.Allowed || d.Never {
		return r, false
	}
	for bucket, units := range d.Units {
		limits := quota.Enforced(g.LimitsOn(bucket))
		denies := func(l quota.Limit) bool {
			return l.Name() == d.Limit && l.Window.Length == 24*time.Hour && !l.Window.IsCalendar()
		}
		isDay := func(l quota.Limit) bool { return l.Window.Calendar == "day" }
		day := slices.IndexFunc(limits, isDay)
		if day < 0 || !slices.ContainsFunc(limits, denies) {
			continue
		}
		usage, err := g.Ledger.Usage(ctx, g.Credential, limits[day:day+1])
		if err != nil || len(usage.Buckets) == 0 || len(usage.Buckets[0].Limits) == 0 {
			return r, false
		}
		left := usage.Buckets[0].Limits[0].Remaining
		if manual {
			left += limits[day].Headroom
		}
		return dayRoom{bucket, d.Limit, map[string]int64{bucket: left}}, left >= units
	}
	return r, false
}

// dayNote explains a denial by the limit of 24 hours alone; it is "" for any other denial.
func (g *gate) dayNote(ctx context.Context, manual bool, d quota.Decision, of asked) string {
	room, ok := g.dayRoom(ctx, manual, d)
	if !ok {
		return ""
	}
	return fmt.Sprintf("only %s denies it: the upstream's day still has %s. To count by that day "+
		"alone, give %s only a limit of window: day in quota.yaml (docs/concepts.md)", room.limit,
		of.inWords(room.left), room.bucket)
}
