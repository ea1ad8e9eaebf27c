package schedule

import (
	"fmt"
	"maps"
	"regexp"
	"strconv"
	"strings"
)

// CronLine is a line that runs a command.
type CronLine struct {
	Number  int
	Spec    string // the spec, in the form of package schedule
	Zone    string // value of CRON_TZ; "" for the machine's zone
	User    string // only in a system crontab
	Command string // for the shell: without the text after %, which is standard input
	Env     map[string]string
}

// CronProblem is a line whose schedule cannot be read, or is unknown to package schedule. It
// includes the command, if it can be found.
type CronProblem struct {
	CronLine
	Text string
}

var (
	variable = regexp.MustCompile(`^\s*("[^"]*"|'[^']*'|[A-Za-z_][A-Za-z0-9_]*)\s*=\s*(.*?)\s*$`)
	blank    = regexp.MustCompile(`^\s*(#.*)?$`)
	nickname = regexp.MustCompile(`^@(yearly|annually|monthly|weekly|daily|midnight|hourly)$`)
)

// ParseCrontab reads a crontab. A system crontab has the user before each command.
func ParseCrontab(text string, system bool) (lines []CronLine, problems []CronProblem) {
	env := make(map[string]string)
	number := 0
	for raw := range strings.Lines(text) {
		number++
		raw = strings.TrimRight(raw, "\r\n")
		if blank.MatchString(raw) {
			continue
		}
		if m := variable.FindStringSubmatch(raw); m != nil {
			env[unquoted(m[1])] = unquoted(m[2])
			continue
		}
		l, err := parseLine(raw, system)
		l.Number, l.Zone, l.Env = number, env["CRON_TZ"], maps.Clone(env)
		if err != nil {
			problems = append(problems, CronProblem{l, err.Error()})
			continue
		}
		lines = append(lines, l)
	}
	return lines, problems
}

func unquoted(text string) string {
	if n := len(text); n > 1 && (text[0] == '"' || text[0] == '\'') && text[n-1] == text[0] {
		return text[1 : n-1]
	}
	return text
}

func parseLine(raw string, system bool) (l CronLine, err error) {
	rest := strings.TrimLeft(raw, " \t")
	if strings.HasPrefix(rest, "@") {
		l.Spec, rest = word(rest)
		if l.Spec = strings.ToLower(l.Spec); !nickname.MatchString(l.Spec) {
			err = fmt.Errorf("%s is not a schedule of days and hours", l.Spec)
		}
	} else {
		fields := make([]string, 5)
		for i := range fields {
			fields[i], rest = word(rest)
		}
		l.Spec, err = specOf(fields)
	}
	if system {
		l.User, rest = word(rest)
	}
	if l.Command = commandOf(rest); l.Command == "" && err == nil {
		err = fmt.Errorf("the command is missing")
	}
	return l, err
}

// word cuts the first word off.
func word(text string) (first, rest string) {
	end := strings.IndexAny(text, " \t")
	if end < 0 {
		return text, ""
	}
	return text[:end], strings.TrimLeft(text[end:], " \t")
}

// commandOf returns the shell's command: text after a % is standard input, and \% is a %.
func commandOf(text string) string {
	var b strings.Builder
	for i := 0; i < len(text); i++ {
		if text[i] == '\\' && i+1 < len(text) && text[i+1] == '%' {
			continue
		}
		if text[i] == '%' && (i == 0 || text[i-1] != '\\') {
			break
		}
		b.WriteByte(text[i])
	}
	return strings.TrimSpace(b.String())
}

// item matches one item of a field's list, as cron reads it: a step must follow a range or a star.
var item = regexp.MustCompile(`^(\*(/[1-9]\d*)?|\w+(-\w+(/[1-9]\d*)?)?)$`)

// specOf translates five fields for the cron library. Crontabs differ from the library in Sunday,
// which is 0 or 7 here, in what a step may follow, and in which days a step matches.
func specOf(fields []string) (string, error) {
	for i, text := range fields {
		var items []string
		for part := range strings.SplitSeq(strings.ToLower(text), ",") {
			if !item.MatchString(part) {
				return "", fmt.Errorf("%q: cron takes *, 5, 1-5, or */5 and 1-30/5", part)
			}
			if i == 4 {
				part = sunday(part)
			}
			items = append(items, part)
		}
		fields[i] = strings.Join(items, ",")
	}
	day, weekday := fields[2], fields[4]
	both := strings.HasPrefix(day, "*") || strings.HasPrefix(weekday, "*") // cron needs both
	if both != (isStar(day) || isStar(weekday)) {
		return "", fmt.Errorf("day of the month %s with day of the week %s: "+
			"cron runs it on other days than a schedule here would", day, weekday)
	}
	spec := strings.Join(fields, " ")
	_, err := Parse(spec, nil)
	return spec, err
}

// isStar reports whether a field restricts nothing in the cron library.
func isStar(text string) bool {
	for item := range strings.SplitSeq(text, ",") {
		if item == "*" || item == "*/1" {
			return true
		}
	}
	return false
}

// sunday rewrites weekday 7 as 0.
func sunday(item string) string {
	values, step, _ := strings.Cut(item, "/")
	from, to, isRange := strings.Cut(values, "-")
	first, err := strconv.Atoi(from)
	switch {
	case values == "7":
		return "0"
	case !isRange || to != "7" || err != nil:
		return item
	}
	every, _ := strconv.Atoi(step)
	var days []string
	for day := first; day <= 7; day += max(1, every) {
		days = append(days, strconv.Itoa(day%7))
	}
	return strings.Join(days, ",")
}
