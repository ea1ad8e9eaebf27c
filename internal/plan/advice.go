package plan

import (
	"fmt"
	"math"
	"slices"

	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

const (
	changeSchedule = "change the schedule (ingestor plan --suggest finds one that fits)"
	// changeJobs is the advice if the commands alone do not fit: --suggest keeps their schedules.
	changeJobs = "run the jobs less often (see ingestor plan)"
)

// advise returns steps to lose nothing, most certain first: release reservations that no job draws
// on, request fewer pages, or spend less outside the schedule. It tries each step with the likely
// spending. If the schedule alone does not fit, and no pace causes that, the schedule must change.
// It returns "" if nothing helps.
func (o *outlook) advise(likely load) string {
	for i, r := range o.Reservations {
		b := o.Bucket
		b.Reservations = slices.Delete(slices.Clone(b.Reservations), i, i+1)
		if r.Drawn == 0 && o.with(b).suffices(likely) {
			return "release reservation " + r.ID
		}
	}
	for n := o.plan.maxPages() - 1; n > 0; n-- {
		if o.with(o.fewer(n)).suffices(likely) {
			return fmt.Sprintf("set pages to %d", n)
		}
	}
	if rate := int64(o.affordable(likely)); rate >= 1 {
		outside := ""
		if len(o.Lanes) > 0 {
			outside = " outside the schedule"
		}
		spending := o.Amount.of(rate) + " an hour"
		if isLong(o.window) {
			spending = o.Amount.of(24*rate) + " a day"
		}
		return "spend at most " + spending + outside + " (see quotactl log --by job)"
	}
	paced := slices.Contains(o.brakes, quota.PaceName)
	if o.now > 0 && len(o.Lanes) > 0 && !paced && !o.suffices(nil) {
		commands := o.Bucket
		commands.Lanes = slices.DeleteFunc(slices.Clone(o.Lanes), share.Lane.HasRegion)
		if len(commands.Lanes) < len(o.Lanes) && o.with(commands).suffices(nil) {
			return changeSchedule
		}
		return changeJobs
	}
	return ""
}

// fewer returns the bucket with runs of at most the given pages.
func (b Bucket) fewer(pages int64) Bucket {
	b.Lanes = slices.Clone(b.Lanes)
	for i := range b.Lanes {
		b.Lanes[i].Pages = min(b.Lanes[i].Pages, pages)
	}
	return b
}

// with returns the outlook of the bucket with something changed.
func (o *outlook) with(b Bucket) *outlook {
	other := newOutlook(b)
	other.size = o.size
	return other
}

// affordable returns the unscheduled units per hour, spent evenly, that leave enough for the
// schedule, less a tenth.
func (o *outlook) affordable(likely load) float64 {
	rate := likely.perHour()
	low, high := 0.0, math.Floor(rate)
	for high-low > max(1, rate/50) {
		middle := math.Floor((low + high) / 2)
		if o.suffices(slices.Repeat(load{middle * bin.Hours()}, len(likely))) {
			low = middle
		} else {
			high = middle
		}
	}
	return twoDigits(0.9 * low)
}

func twoDigits(n float64) float64 {
	if n < 1 {
		return 0
	}
	unit := math.Pow(10, max(0, math.Floor(math.Log10(n))-1))
	return math.Floor(n/unit) * unit
}
