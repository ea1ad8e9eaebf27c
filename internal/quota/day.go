package quota

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// DayRoom explains a denial by a limit of 24 hours alone: it returns what is left of the upstream's
// day, formatted by amount, and how to remove the limit. For any other denial both are "". It reads
// only Allowed, Never, Units and Limit of the decision.
func (b *Budget) DayRoom(ctx context.Context, manual bool, d Decision,
	amount func(bucket string, units int64) string) (room, remedy string) {
	if d.Allowed || d.Never {
		return "", ""
	}
	for bucket, units := range d.Units {
		limits := Enforced(b.LimitsOn(bucket))
		denies := func(l Limit) bool {
			return l.Name() == d.Limit && l.Window.Length == 24*time.Hour && !l.Window.IsCalendar()
		}
		isDay := func(l Limit) bool { return l.Window.Calendar == "day" }
		day := slices.IndexFunc(limits, isDay)
		if day < 0 || !slices.ContainsFunc(limits, denies) {
			continue
		}
		usage, err := b.Ledger.Usage(ctx, b.Credential, limits[day:day+1])
		if err != nil || len(usage.Buckets) == 0 || len(usage.Buckets[0].Limits) == 0 {
			return "", ""
		}
		left := usage.Buckets[0].Limits[0].Remaining
		if manual {
			left += limits[day].Headroom
		}
		if left < units {
			return "", ""
		}
		return fmt.Sprintf("only %s denies it: the upstream's day still has %s", d.Limit,
				amount(bucket, left)),
			fmt.Sprintf("to count by that day alone, give %s only a limit of window: day in "+
				"quota.yaml (docs/concepts.md)", bucket)
	}
	return "", ""
}
