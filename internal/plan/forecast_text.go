package plan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// Text returns the forecast in a sentence without a full stop: "default runs dry at 16:40Z
// (15:50Z to 18:10Z), before the reset at 2026-11-22 08:00Z: BR, DE and JP will miss 12 runs from
// 17:00Z on; to avoid it, set pages to 2".
func (f Forecast) Text() string {
	if f.Verdict == Closed {
		return quota.ShownBucket(f.Bucket) + " is closed: one of its limits allows no units"
	}
	if f.Verdict == Unused {
		return quota.ShownBucket(f.Bucket) +
			" is unused: nothing is spent or scheduled that a forecast could count"
	}
	text, lost, joined := quota.ShownBucket(f.Bucket)+" ", f.losses(), ": "
	// A day's limit can run dry within a month, and refill before the month ends.
	refills := f.isLong() && f.Verdict == RunsDry &&
		f.Limit != quota.Limit{Bucket: f.Bucket, Window: f.window}.Name()
	if f.isLong() && !refills {
		text = "the " + f.window.Calendar + "'s " + text
	}
	switch f.Verdict {
	case Suspended:
		text += "is suspended until " + f.moment(minuteUp(f.SuspendedUntil))
		if !f.DryAt.IsZero() {
			text += ", and runs dry at " + f.moment(f.DryAt)
		}
	case Exhausted:
		text += "is exhausted (" + f.Limit + ")"
		if !f.OpensAt.IsZero() {
			text += " until " + f.moment(minuteUp(f.OpensAt))
		}
	case RunsDry:
		if refills {
			text += "runs dry at " + f.clock(f.DryAt) + f.interval() + ", by the limit " + f.Limit
			break
		}
		if f.isLong() {
			text += "lasts to " + f.dayOf(f.DryAt) + f.interval()
			break
		}
		text += "runs dry at " + f.moment(f.DryAt) + f.interval() + ", before " + f.reset()
	default:
		text += "lasts to " + f.reset()
		if !f.Earliest.IsZero() {
			text += " (dry " + f.dayOf(f.Earliest) + " at the earliest)"
		}
		joined = ", but "
		if f.LeftOut.Runs > 0 {
			joined = ", but the schedule does not fit: "
		}
	}
	switch {
	case refills && f.Missing > 0:
		text += "; at this rate the " + f.window.Calendar + " is " + f.amount.of(f.Missing) + " short"
	case f.isLong() && f.Missing > 0:
		text += "; at this rate " + f.amount.of(f.Missing) + " short"
	}
	if lost != "" {
		text += joined + lost
	}
	if f.Advice != "" {
		text += "; to avoid it, " + f.Advice
	}
	if f.isLong() && f.history > 0 && f.history < fewDays {
		text += "; too little history to rely on it: " + days(f.history)
	}
	return text
}

// days formats the length of a log.
func days(history time.Duration) string {
	switch n := int(history / (24 * time.Hour)); n {
	case 0:
		return "less than a day"
	case 1:
		return "a day"
	default:
		return fmt.Sprintf("%d days", n)
	}
}

// fewDays is the length of log needed to forecast a week or a month.
const fewDays = 7 * 24 * time.Hour

// TextIn is like Text, with the important times in the reader's zone too.
func (f Forecast) TextIn(zone *time.Location) string {
	f.zone = zone
	return f.Text()
}

// losses lists the lost runs by cause: shares or a lack of units, each pace, each throttle.
func (f Forecast) losses() string {
	var causes []string
	by := map[string][]Run{}
	for _, r := range f.LostRuns {
		cause := ""
		if r.Limit == ShareName || slices.Contains(f.brakes, r.Limit) {
			cause = r.Limit
		}
		if by[cause] == nil {
			causes = append(causes, cause)
		}
		by[cause] = append(by[cause], r)
	}
	var parts []string
	for _, cause := range causes {
		text := f.lost(by[cause])
		switch cause {
		case "", ShareName:
		case quota.PaceName:
			text += ", held back by the pace"
		default:
			text += " to the limit " + cause
		}
		parts = append(parts, text)
	}
	return strings.Join(parts, "; ")
}

func (f Forecast) reset() string {
	if f.Slides {
		return f.clock(f.ResetAt)
	}
	if f.Verdict == Lasts {
		return "the reset"
	}
	return "the reset at " + f.clock(f.ResetAt)
}

func (f Forecast) interval() string {
	switch early := f.dayOf(f.Earliest); {
	case f.Latest.IsZero():
		return " (" + early + " at the earliest, or not at all)"
	case early != f.dayOf(f.Latest):
		return " (" + early + " to " + f.dayOf(f.Latest) + ")"
	}
	return ""
}

// isLong reports whether the forecast covers a week or a month, with days as times.
func (f Forecast) isLong() bool { return isLong(f.window) }

func isLong(w quota.Window) bool { return w.Longest() > 2*24*time.Hour }

// dayOf is like clock, but returns the day of a time that is not today in a week or a month: "the
// 27th", "Thursday".
func (f Forecast) dayOf(t time.Time) string {
	if !f.isLong() {
		return f.clock(t)
	}
	local, zone := t.In(f.window.Zone), f.window.Zone
	switch {
	case local.Format(time.DateOnly) == f.At.In(zone).Format(time.DateOnly):
		return f.clock(t)
	case f.window.Calendar == "week":
		return local.Weekday().String()
	}
	n := local.Day()
	ending := "th"
	if n/10 != 1 && n%10 >= 1 && n%10 <= 3 {
		ending = [...]string{"st", "nd", "rd"}[n%10-1]
	}
	return fmt.Sprintf("the %d%s", n, ending)
}

// lost lists the regions and their losses: whole runs, or pages.
func (f Forecast) lost(runs []Run) string {
	var regions []string
	var lost, pages int64
	when := " at " + f.clock(runs[0].Scheduled)
	for _, r := range runs {
		lost, pages = lost+r.Missing(), pages+r.Wanted
		if !r.Scheduled.Equal(runs[0].Scheduled) {
			when = " from " + f.clock(runs[0].Scheduled) + " on"
		}
		if title := r.Title(); !slices.Contains(regions, title) {
			regions = append(regions, title)
		}
	}
	text := list(regions) + " will "
	switch n := int64(len(runs)); {
	case lost < pages:
		return text + fmt.Sprintf("lose %s of %s pages%s", words.Count(lost), words.Count(pages), when)
	case n > 1 && runs[0].Limit == ShareName:
		return text + fmt.Sprintf("miss %s of %s runs", words.Count(n), words.Count(f.Scheduled.Runs))
	case n > 1:
		return text + fmt.Sprintf("miss %s runs%s", words.Count(n), when)
	}
	return text + "miss 1 run" + when
}

// list returns "BR", "BR and AU", or "BR, AU and 6 more".
func list(names []string) string {
	switch n := len(names); {
	case n == 1:
		return names[0]
	case n <= 4:
		return strings.Join(names[:n-1], ", ") + " and " + names[n-1]
	default:
		return fmt.Sprintf("%s, %s and %d more", names[0], names[1], n-2)
	}
}

// clock formats a time in UTC to the minute, with the date unless it is the forecast's.
func (f Forecast) clock(t time.Time) string { return f.on(t, time.UTC, "15:04Z") }

// moment is like clock, followed by the time in the reader's zone.
func (f Forecast) moment(t time.Time) string {
	if f.zone == nil {
		return f.clock(t)
	}
	return f.clock(t) + ", " + f.on(t, f.zone, "15:04 MST")
}

// minuteUp rounds up to the minute, so that a period has ended by the end shown.
func minuteUp(t time.Time) time.Time {
	return t.Add(time.Minute - time.Nanosecond).Truncate(time.Minute)
}

func (f Forecast) on(t time.Time, zone *time.Location, form string) string {
	if t.In(zone).Format(time.DateOnly) != f.At.In(zone).Format(time.DateOnly) {
		form = "2006-01-02 " + form
	}
	return t.In(zone).Format(form)
}
