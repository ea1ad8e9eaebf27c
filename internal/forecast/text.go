package forecast

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/sim"
)

// unlikely is the chance below which nothing is said of it.
const unlikely = 0.1

// Text is the forecast in a sentence, without a full stop: "default runs dry 21:14Z (20:50Z to
// 22:05Z), 2 h 46 m before the reset; the 22:00Z runs of BR and AU lose 6 of 8 pages".
func (f Forecast) Text() string {
	text := f.Bucket + " "
	switch f.Verdict {
	case Closed:
		return text + "is closed: a limit of it allows no units"
	case Suspended:
		text += "is suspended until " + f.moment(f.SuspendedUntil)
		if !f.DryAt.IsZero() {
			text += ", and runs dry " + f.moment(f.DryAt)
		}
	case Exhausted:
		text += "is exhausted (" + f.Limit + ")"
		if !f.OpensAt.IsZero() {
			text += " until " + f.moment(f.OpensAt)
		}
	case RunsDry:
		text += "runs dry " + f.moment(f.DryAt) + f.interval() + ", " + span(f.ResetAt.Sub(f.DryAt)) +
			" before " + f.reset()
	default:
		text += "lasts to " + f.reset()
		if f.Chance >= unlikely {
			text += fmt.Sprintf(" (but may run dry from %s on, %.0f %% likely)", f.clock(f.Earliest), 100*f.Chance)
		}
	}
	return text + f.losses()
}

// TextIn is Text with the moments that matter in the reader's zone, too.
func (f Forecast) TextIn(zone *time.Location) string {
	f.zone = zone
	return f.Text()
}

// losses says what is lost: by the shares, for want of units, and by each pace and throttle.
func (f Forecast) losses() (text string) {
	if n := f.LeftOut.Runs; n > 0 {
		text = "; "
		if f.Verdict == Lasts {
			text = ", and the schedule does not fit in it: "
		}
		verb, shares := "are", "their shares"
		if n == 1 {
			verb, shares = "is", "its share"
		}
		text += fmt.Sprintf("%s of %s %s left out by %s", number(n), plural(f.Scheduled.Runs, "run"), verb, shares)
	}
	by := map[string][]LostRun{}
	for _, r := range f.LostRuns {
		name := ""
		if slices.Contains(f.brakes, r.Limit) {
			name = r.Limit
		}
		if r.Limit != sim.ShareName {
			by[name] = append(by[name], r)
		}
	}
	for _, name := range append([]string{""}, f.brakes...) {
		if runs := by[name]; len(runs) > 0 {
			text += "; " + f.lost(runs)
			if name != "" {
				text += " to " + theLimit(name)
			}
		}
	}
	return text
}

func (f Forecast) reset() string {
	if f.slides {
		return f.clock(f.ResetAt)
	}
	return "the reset"
}

func (f Forecast) interval() string {
	switch early := f.clock(f.Earliest); {
	case f.Latest.IsZero():
		return fmt.Sprintf(" (from %s on, %.0f %% likely)", early, 100*f.Chance)
	case early != f.clock(f.Latest):
		return " (" + early + " to " + f.clock(f.Latest) + ")"
	}
	return ""
}

// theLimit is what a run loses pages to.
func theLimit(name string) string {
	if name == quota.PaceName {
		return "the pace"
	}
	return "the limit " + name
}

// lost says which runs lose how much.
func (f Forecast) lost(from []LostRun) string {
	first := from[0]
	var regions []string
	lost, pages, together := int64(0), int64(0), true
	for _, r := range from {
		lost, pages = lost+r.Lost, pages+r.Pages
		together = together && r.Scheduled.Equal(first.Scheduled)
		if !slices.Contains(regions, r.Region) {
			regions = append(regions, r.Region)
		}
	}
	runs, verb := "runs", "lose"
	if len(from) == 1 {
		runs, verb = "run", "loses"
	}
	whose := fmt.Sprintf("the %s %s of %s", f.clock(first.Scheduled), runs, list(regions))
	if !together {
		whose = fmt.Sprintf("%s runs of %s from %s on", number(int64(len(from))), list(regions), f.clock(first.Scheduled))
	}
	return fmt.Sprintf("%s %s %s of %s pages", whose, verb, number(lost), number(pages))
}

// list is "BR", "BR and AU", "BR, AU and 6 more".
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

// plural is "1 run", "1,152 runs".
func plural(n int64, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return number(n) + " " + what + "s"
}

// number is a figure in groups of three digits.
func number(n int64) string {
	text := strconv.FormatInt(n, 10)
	for i := len(text) - 3; i > 0; i -= 3 {
		text = text[:i] + "," + text[i:]
	}
	return text
}

// clock is a moment in UTC by the minute, with the date unless it is of the same day as the
// forecast.
func (f Forecast) clock(t time.Time) string { return f.on(t, time.UTC, "15:04Z") }

// moment is clock, followed by the same in the reader's zone.
func (f Forecast) moment(t time.Time) string {
	if f.zone == nil {
		return f.clock(t)
	}
	return f.clock(t) + ", " + f.on(t, f.zone, "15:04 MST")
}

func (f Forecast) on(t time.Time, zone *time.Location, form string) string {
	if t.In(zone).Format(time.DateOnly) != f.At.In(zone).Format(time.DateOnly) {
		form = "2006-01-02 " + form
	}
	return t.In(zone).Format(form)
}

// span is a duration in its two largest units, without what is less than a minute: "2 h 46 m".
func span(d time.Duration) string {
	days, hours, minutes := int(d.Hours())/24, int(d.Hours())%24, int(d.Minutes())%60
	switch {
	case days > 1:
		return fmt.Sprintf("%d d %d h", days, hours)
	case d >= time.Hour:
		return fmt.Sprintf("%d h %d m", int(d.Hours()), minutes)
	}
	return fmt.Sprintf("%d m", minutes)
}
