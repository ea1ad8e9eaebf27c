package schedule

import (
	"math/bits"
	"time"

	"github.com/robfig/cron/v3"
)

// cronFields finds the moments of a cron spec on a wall clock without a zone. A wall moment is the
// Unix time of the UTC moment that reads the same. The cron library works only in a zone, with its
// own daylight-saving rules, and is slower.
type cronFields struct {
	minute, hour, day, month, weekday uint64 // one bit per number
	// both the day of the month and the day of the week must match, not either
	both     bool
	everyDay bool // every day matches
}

const (
	perDay  = 24 * 60 // minutes
	starBit = 1 << 63 // the cron parser's mark of a "*" field
)

func newCronFields(f *cron.SpecSchedule) cronFields {
	const days, months, weekdays = 1<<32 - 2, 1<<13 - 2, 1<<7 - 1
	w := cronFields{
		minute: f.Minute &^ starBit, hour: f.Hour &^ starBit,
		day: f.Dom &^ starBit, month: f.Month &^ starBit, weekday: f.Dow &^ starBit,
		both: (f.Dom|f.Dow)&starBit != 0,
	}
	w.everyDay = w.day == days && w.month == months && w.weekday == weekdays
	return w
}

// next returns the first wall moment at or after the given one.
func (w *cronFields) next(wall int64) int64 {
	minutes := -floorDiv(-wall, 60)
	day := floorDiv(minutes, perDay)
	minute, ok := w.nextOfDay(int(minutes - day*perDay))
	for !ok || !w.on(day) {
		day++
		minute, ok = w.nextOfDay(0)
	}
	return (day*perDay + int64(minute)) * 60
}

// nextOfDay returns the first minute of a day at or after the given one, counted from midnight.
func (w *cronFields) nextOfDay(from int) (minute int, ok bool) {
	hour := from / 60
	if w.hour>>hour&1 != 0 {
		if left := w.minute >> (from % 60); left != 0 {
			return from + bits.TrailingZeros64(left), true
		}
	}
	left := w.hour >> (hour + 1)
	return (hour+1+bits.TrailingZeros64(left))*60 + bits.TrailingZeros64(w.minute), left != 0
}

// count returns the number of moments from one wall moment until just before another.
func (w *cronFields) count(from, to int64) (n int64) {
	first, last := -floorDiv(-from, 60), -floorDiv(-to, 60) // minutes
	if first >= last {
		return 0
	}
	day, lastDay := floorDiv(first, perDay), floorDiv(last, perDay)
	if w.on(day) {
		n -= w.before(first - day*perDay)
	}
	if whole := w.before(perDay); w.everyDay {
		n += (lastDay - day) * whole
	} else {
		for ; day < lastDay; day++ {
			if w.on(day) {
				n += whole
			}
		}
	}
	if w.on(lastDay) {
		n += w.before(last - lastDay*perDay)
	}
	return n
}

// before returns the number of a day's moments before one of its minutes.
func (w *cronFields) before(minute int64) int64 {
	hour := minute / 60
	n := bits.OnesCount64(w.hour&(1<<hour-1)) * bits.OnesCount64(w.minute)
	if w.hour>>hour&1 != 0 {
		n += bits.OnesCount64(w.minute & (1<<(minute%60) - 1))
	}
	return int64(n)
}

// on reports whether the spec includes the day, counted from 1970-01-01.
func (w *cronFields) on(day int64) bool {
	if w.everyDay {
		return true
	}
	t := time.Unix(day*perDay*60, 0).UTC()
	_, month, dom := t.Date()
	if w.month>>month&1 == 0 {
		return false
	}
	domMatches, weekdayMatches := w.day>>dom&1 != 0, w.weekday>>t.Weekday()&1 != 0
	if w.both {
		return domMatches && weekdayMatches
	}
	return domMatches || weekdayMatches
}

// The days 2000-01-01 to 2011-12-31 contain every combination that a spec can distinguish, and 29
// February three times.
const referenceDay, referenceDays = 10957, 4383

// fires reports whether any day matches.
func (w *cronFields) fires() bool {
	for day := int64(referenceDay); day < referenceDay+referenceDays; day++ {
		if w.on(day) {
			return w.minute != 0 && w.hour != 0
		}
	}
	return false
}

// shortest returns the smallest number of minutes between two moments.
func (w *cronFields) shortest() int64 {
	var minutes []int64 // of one day
	for m, ok := w.nextOfDay(0); ok; m, ok = w.nextOfDay(m + 1) {
		minutes = append(minutes, int64(m))
	}
	overnight := minutes[0] + perDay - minutes[len(minutes)-1]
	shortest := (w.shortestDays()-1)*perDay + overnight
	for i, m := range minutes[1:] {
		shortest = min(shortest, m-minutes[i])
	}
	return shortest
}

// shortestDays returns the smallest number of days between two matching days.
func (w *cronFields) shortestDays() int64 {
	shortest, last := int64(referenceDays), int64(0)
	for day := int64(referenceDay); day < referenceDay+referenceDays && shortest > 1; day++ {
		if !w.on(day) {
			continue
		}
		if last > 0 {
			shortest = min(shortest, day-last)
		}
		last = day
	}
	return shortest
}

func floorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}
