package pages

import (
	"fmt"
	"html/template"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"

	"quotabudget/internal/words"
)

// functions are those of the templates.
var functions = template.FuncMap{
	"plain": words.Plain, "title": title, "count": count, "short": short, "ago": ago,
	"until": until, "clock": clock, "moment": moment, "minute": minute, "iso": iso,
	"length": length, "asset": asset,
	"times": times, "percent": percent, "day": day, "second": second, "lines": lines,
	"videoPath":  videoPath,
	"searchPath": func(query string) string { return searchPage(query, 1) },
	"add":        func(a, b int) int { return a + b },
	"item":       newItem,
}

// title is the title of a video as text.
func title(text string) string {
	if text = strings.TrimSpace(words.Plain(text)); text == "" {
		return "(no title)"
	}
	return text
}

// number is n as an integer, of which there may be none.
func number(n any) (int64, bool) {
	switch n := n.(type) {
	case int:
		return int64(n), true
	case int64:
		return n, true
	case *int64:
		if n != nil {
			return *n, true
		}
	}
	return 0, false
}

// count formats an integer with commas; "–" for none.
func count(n any) string { return format(n, words.Count) }

// short formats an integer in about three digits; "–" for none.
func short(n any) string { return format(n, words.Short) }

func format(n any, write func(int64) string) string {
	if v, ok := number(n); ok {
		return write(v)
	}
	return "–"
}

// ago is how long before now a moment was. The first minute has no seconds, which would change the
// page each time.
func ago(now, at time.Time) template.HTML { return timeTag(at, words.Age(now.Sub(at))) }

// timeTag is the element of a moment, "never" where there is none.
func timeTag(at time.Time, text string) template.HTML {
	if at.IsZero() {
		return "never"
	}
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s">%s</time>`, iso(at),
		moment(at), text))
}

// until is how long after now a moment will be.
func until(now, at time.Time) template.HTML {
	if d := at.Sub(now); d >= time.Minute {
		return timeTag(at, "in "+strings.TrimSuffix(words.Age(d), " ago"))
	}
	return timeTag(at, "now")
}

// clock is a moment as people write it in a sentence, with its day unless that is today.
func clock(now, at time.Time) template.HTML {
	return timeTag(at, at.UTC().Format(clockForm(now, at)))
}

func clockForm(now, at time.Time) string {
	switch at, now := at.UTC(), now.UTC(); {
	case at.Format(time.DateOnly) == now.Format(time.DateOnly):
		return "15:04"
	case at.Year() == now.Year():
		return "2 Jan 15:04"
	}
	return "2 Jan 2006 15:04"
}

// second is a moment to the second, with its day unless that is today.
func second(now, at time.Time) template.HTML {
	return timeTag(at, at.UTC().Format(clockForm(now, at)+":05"))
}

// day is the day of a moment, with its year unless that is this one.
func day(now, at time.Time) template.HTML {
	if at.UTC().Year() == now.UTC().Year() {
		return timeTag(at, at.UTC().Format("2 Jan"))
	}
	return timeTag(at, at.UTC().Format("2 Jan 2006"))
}

// moment is a moment to the second.
func moment(at time.Time) string { return at.UTC().Format("2 Jan 2006 15:04:05 UTC") }

// minute is a moment to the minute, so that a page is the same for so long: it has an ETag.
func minute(at time.Time) string { return at.UTC().Format("15:04 UTC") }

// iso is a moment for programs, and for at= of a link.
func iso(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.999999Z") }

var isoLength = regexp.MustCompile(`^P(?:(\d{1,4})W)?(?:(\d{1,4})D)?` +
	`(?:T(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,8})(?:[.,]\d{1,9})?S)?)?$`)

// length writes a duration of ISO 8601 as players do: "3:20". It returns "" for anything else.
func length(text string) string {
	parts := isoLength.FindStringSubmatch(text)
	if parts == nil || strings.Join(parts[1:], "") == "" {
		return ""
	}
	seconds := 0
	for i, size := range []int{7 * 86400, 86400, 3600, 60, 1} {
		n, _ := strconv.Atoi(parts[1+i])
		seconds += n * size
	}
	if seconds >= 3600 {
		return fmt.Sprintf("%d:%02d:%02d", seconds/3600, seconds/60%60, seconds%60)
	}
	return fmt.Sprintf("%d:%02d", seconds/60, seconds%60)
}

// times formats a number with its noun: "1 page", "3 pages".
func times(n any, noun string) string {
	v, _ := number(n)
	return words.Plural(v, noun)
}

// lines are those of a text, without empty ones.
func lines(text string) (all []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(words.Plain(line)); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// videoPath is the address of a video's page. The id is the upstream's: anything may be in it.
func videoPath(id string) string { return "/videos/" + url.PathEscape(id) }

// item is one of the menu.
type item struct {
	Path, Name string
	Here       bool
}

func newItem(p page, section, path, name string) item {
	return item{path, name, p.Section == section}
}

// percent is a part of a whole for a bar: a part that is there can be seen.
func percent(part, whole int64) int64 {
	if whole <= 0 || part <= 0 {
		return 0
	}
	return min(100, max(1, 100*part/whole))
}
