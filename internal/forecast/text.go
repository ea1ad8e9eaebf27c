package forecast

import (
	"fmt"
	"slices"
	"strings"
	"time"
)

// unlikely is the chance below which nothing is said of it.
const unlikely = 0.1

// Text is the forecast in a sentence, without a full stop: "default runs dry 21:14Z (20:50Z to 22:05Z), 2 h 46 m before the
// reset; the 22:00Z runs of BR and AU lose 6 of 8 pages".
func (f Forecast) Text() string {
	text := f.Bucket + " "
	switch f.Verdict {
	case Closed:
		return text + "is closed: a limit of it allows no units"
	case Suspended:
		text += "is suspended until " + f.clock(f.SuspendedUntil)
		if !f.DryAt.IsZero() {
			text += ", and runs dry " + f.clock(f.DryAt)
		}
	case Exhausted:
		text += "is exhausted (" + f.Limit + ")"
		if !f.OpensAt.IsZero() {
			text += " until " + f.clock(f.OpensAt)
		}
	case RunsDry:
		text += "runs dry " + f.clock(f.DryAt) + f.interval() + ", " + span(f.ResetAt.Sub(f.DryAt)) + " before " + f.reset()
	default:
		text += "lasts to " + f.reset()
		if f.Chance >= unlikely {
			text += fmt.Sprintf(" (but may run dry from %s on, %.0f %% likely)", f.clock(f.Earliest), 100*f.Chance)
		}
	}
	if lost := f.lost(); lost != "" {
		text += "; " + lost
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

// lost says which runs lose how much.
func (f Forecast) lost() string {
	if len(f.LostRuns) == 0 {
		return ""
	}
	first := f.LostRuns[0]
	var regions []string
	lost, pages, together := 0, 0, true
	for _, r := range f.LostRuns {
		lost, pages = lost+r.Lost, pages+r.Pages
		together = together && r.Scheduled.Equal(first.Scheduled)
		if !slices.Contains(regions, r.Region) {
			regions = append(regions, r.Region)
		}
	}
	runs, verb := "runs", "lose"
	if len(f.LostRuns) == 1 {
		runs, verb = "run", "loses"
	}
	whose := fmt.Sprintf("the %s %s of %s", f.clock(first.Scheduled), runs, list(regions))
	if !together {
		whose = fmt.Sprintf("%d runs of %s from %s on", len(f.LostRuns), list(regions), f.clock(first.Scheduled))
	}
	return fmt.Sprintf("%s %s %d of %d pages", whose, verb, lost, pages)
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

// clock is a moment in UTC by the minute; with the day where the time alone might mean another one.
func (f Forecast) clock(t time.Time) string {
	if t.Sub(f.At).Abs() < 24*time.Hour {
		return t.UTC().Format("15:04Z")
	}
	return t.UTC().Format("2006-01-02 15:04Z")
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
