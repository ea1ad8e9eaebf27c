package config

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// cronFields are the five fields of a spec, with the names that stand for numbers.
var cronFields = [...]struct {
	name        string
	least, most int
	names       string // from least on
}{
	{"minute", 0, 59, ""},
	{"hour", 0, 23, ""},
	{"day of the month", 1, 31, ""},
	{"month", 1, 12, "jan feb mar apr may jun jul aug sep oct nov dec"},
	{"day of the week", 0, 6, "sun mon tue wed thu fri sat"},
}

var descriptors = [...]string{"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"}

// checkCron reports what is wrong with a cron spec of five fields, or one that begins with "@". It finds here, with the line,
// what the scheduler would find later.
func checkCron(spec string) error {
	if every, ok := strings.CutPrefix(spec, "@every "); ok {
		if d, err := time.ParseDuration(every); err != nil || d < time.Second {
			return errors.New("after @every write a duration of 1s or more, such as 3h")
		}
		return nil
	}
	if strings.HasPrefix(spec, "@") {
		if !slices.Contains(descriptors[:], strings.ToLower(spec)) {
			return fmt.Errorf("%q is none of %s, @every 3h", clip(spec), strings.Join(descriptors[:], ", "))
		}
		return nil
	}
	parts := strings.Fields(spec)
	if len(parts) != len(cronFields) {
		return fmt.Errorf("%q has %d fields: write minute, hour, day of the month, month, day of the week, such as %q",
			clip(spec), len(parts), DefaultSchedule)
	}
	for i, f := range cronFields {
		for _, item := range strings.Split(parts[i], ",") {
			if !cronItem(item, f.least, f.most, strings.Fields(f.names)) {
				return fmt.Errorf("%q is no %s from %d to %d", clip(item), f.name, f.least, f.most)
			}
		}
	}
	return nil
}

// cronItem checks "*", "7", "mon", "1-5", each with an optional "/2".
func cronItem(item string, least, most int, names []string) bool {
	span, step, stepped := strings.Cut(item, "/")
	if n, err := strconv.Atoi(step); stepped && (err != nil || n < 1) {
		return false
	}
	if span == "*" || span == "?" {
		return true
	}
	from, to, ranged := strings.Cut(span, "-")
	low, ok := cronNumber(from, least, most, names)
	if !ranged || !ok {
		return ok
	}
	high, ok := cronNumber(to, least, most, names)
	return ok && low <= high
}

func cronNumber(text string, least, most int, names []string) (int, bool) {
	if i := slices.Index(names, strings.ToLower(text)); i >= 0 {
		return least + i, true
	}
	n, err := strconv.Atoi(text)
	return n, err == nil && n >= least && n <= most
}
