package serve

import (
	"cmp"
	"fmt"
	"html/template"
	"net/url"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"time"

	"quotabudget/internal/words"
)

var functions = template.FuncMap{
	"plain": words.Plain, "title": title, "count": count, "short": short, "ago": ago,
	"until": until, "clock": clock, "moment": moment, "iso": iso, "length": length,
	"asset": asset, "times": times, "percent": percent, "day": day, "lines": lines,
	// without seconds, which would change the ETag of a page each time
	"minute": func(at time.Time) string { return at.UTC().Format("15:04 UTC") },
	"second": func(now, at time.Time) template.HTML { // with the day, unless it is today
		return timeTag(at, at.UTC().Format(clockForm(now, at)+":05"))
	},
	// an upstream's ID may contain any characters
	"videoPath":  func(id string) string { return "/videos/" + url.PathEscape(id) },
	"searchPath": func(query string) string { return searchPage(query, 1) },
	"add":        func(a, b int) int { return a + b },
	"item": func(p page, section, path, name string) item {
		return item{path, name, p.Section == section}
	},
}

func title(text string) string {
	return cmp.Or(strings.TrimSpace(words.Plain(text)), "(no title)")
}

// number returns an integer, or the one that a pointer leads to; false for a nil pointer.
func number(n any) (int64, bool) {
	v := reflect.Indirect(reflect.ValueOf(n))
	if !v.IsValid() {
		return 0, false
	}
	return v.Int(), true
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

// ago formats how long before now a moment was. The first minute has no seconds, which would change
// the page each time.
func ago(now, at time.Time) template.HTML { return timeTag(at, words.Age(now.Sub(at))) }

// timeTag returns the element of a moment; "never" for the zero time.
func timeTag(at time.Time, text string) template.HTML {
	if at.IsZero() {
		return "never"
	}
	return template.HTML(fmt.Sprintf(`<time datetime="%s" title="%s">%s</time>`, iso(at),
		moment(at), text))
}

// until formats how long after now a moment will be.
func until(now, at time.Time) template.HTML {
	if d := at.Sub(now); d >= time.Minute {
		return timeTag(at, "in "+strings.TrimSuffix(words.Age(d), " ago"))
	}
	return timeTag(at, "now")
}

// clock formats a moment for a sentence, with its day unless that is today.
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

// day formats the day of a moment, with its year unless that is this one.
func day(now, at time.Time) template.HTML {
	form := "2 Jan"
	if at.UTC().Year() != now.UTC().Year() {
		form = "2 Jan 2006"
	}
	return timeTag(at, at.UTC().Format(form))
}

// moment formats a moment to the second.
func moment(at time.Time) string { return at.UTC().Format("2 Jan 2006 15:04:05 UTC") }

// iso formats a moment for programs, and for at= of a link.
func iso(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.999999Z") }

var isoLength = regexp.MustCompile(`^P(?:(\d{1,4})W)?(?:(\d{1,4})D)?` +
	`(?:T(?:(\d{1,6})H)?(?:(\d{1,6})M)?(?:(\d{1,8})(?:[.,]\d{1,9})?S)?)?$`)

// length formats a duration of ISO 8601 as players do: "3:20". It returns "" for other texts.
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

// lines returns the lines of a text, without empty ones.
func lines(text string) (all []string) {
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(words.Plain(line)); line != "" {
			all = append(all, line)
		}
	}
	return all
}

type item struct {
	Path, Name string
	Here       bool
}

// percent returns a part of a whole in percent, at least 1 unless the part is 0.
func percent(part, whole int64) int64 {
	if whole <= 0 || part <= 0 {
		return 0
	}
	return min(100, max(1, 100*part/whole))
}
