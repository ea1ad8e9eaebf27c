package forecast

import (
	"fmt"
	"math"
	"slices"

	"quotabudget/internal/quota"
)

const changeSchedule = "change the schedule (ingestor plan --suggest finds one that fits)"

// advise returns what a person can do to lose nothing, most certain first: release reservations
// nobody draws on, request fewer pages, or spend less besides the schedule. It tries each on a
// day with a little more spending than the likely one. If the schedule does not fit even without
// a pace, the schedule must change. It returns "" if nothing helps.
func (o *outlook) advise(d day) string {
	for i, r := range o.Reservations {
		b := o.Bucket
		b.Reservations = slices.Delete(slices.Clone(b.Reservations), i, i+1)
		if r.Drawn == 0 && newOutlook(b, o).suffices(d) {
			return "release reservation " + r.ID
		}
	}
	most := int64(1)
	for _, l := range o.Lanes {
		most = max(most, l.Pages)
	}
	for n := most - 1; n > 0; n-- {
		if newOutlook(o.fewer(n), o).suffices(d) {
			return fmt.Sprintf("set pages to %d", n)
		}
	}
	if rate := int64(o.affordable(d)); rate >= 1 {
		besides := ""
		if len(o.Lanes) > 0 {
			besides = " besides the schedule"
		}
		most := o.Amount.of(rate) + " an hour"
		if isLong(o.window) {
			most = o.Amount.of(24*rate) + " a day"
		}
		return "spend at most " + most + besides + " (see quotactl log --by job)"
	}
	alone := day{wants: make([]float64, len(d.wants)), size: d.size}
	paced := slices.Contains(o.brakes, quota.PaceName)
	if o.now > 0 && len(o.Lanes) > 0 && !paced && !o.suffices(alone) {
		return changeSchedule
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

// affordable returns the unscheduled units per hour, spent evenly, that leave enough for the
// schedule, less a tenth.
func (o *outlook) affordable(d day) float64 {
	even := func(rate float64) day {
		e := day{wants: make([]float64, len(d.wants)), rate: rate, size: d.size, seed: d.seed}
		for i := range e.wants {
			e.wants[i] = rate * bin.Hours()
		}
		return e
	}
	low, high := 0.0, math.Floor(d.rate)
	for high-low > max(1, d.rate/50) {
		if middle := math.Floor((low + high) / 2); o.suffices(even(middle)) {
			low = middle
		} else {
			high = middle
		}
	}
	return twoDigits(0.9 * low)
}

// twoDigits rounds down to two digits.
func twoDigits(n float64) float64 {
	if n < 1 {
		return 0
	}
	unit := math.Pow(10, max(0, math.Floor(math.Log10(n))-1))
	return math.Floor(n/unit) * unit
}
