package schedule

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/robfig/cron/v3"

	"quotabudget/internal/words"
)

// Parse reads a spec: five fields (minute, hour, day of the month, month, day of the week), one
// of @yearly, @monthly, @weekly, @daily, @hourly, or "@every 90s" in whole seconds. A prefix such
// as "CRON_TZ=Asia/Tokyo " overrides the zone; a nil zone is UTC.
//
// As in every cron, a spec that restricts both days fires on either: "0 0 13 * fri" is every 13th
// and every Friday. A spec that never fires, such as one for 30 February, is an error.
func Parse(spec string, zone *time.Location) (*Schedule, error) {
	s, err := parse(strings.TrimSpace(spec), zone)
	if err != nil {
		return nil, fmt.Errorf("%q is not a schedule: %w", words.Clip(spec), err)
	}
	s.spec = spec
	return s, nil
}

func parse(text string, zone *time.Location) (*Schedule, error) {
	zone, text, err := cutZone(text, zone)
	if err != nil {
		return nil, err
	}
	if rest, ok := strings.CutPrefix(text, "@every"); ok {
		every, err := parseEvery(rest)
		return &Schedule{zone: zone, every: every}, err
	}
	w, err := parseFields(strings.ToLower(text))
	return &Schedule{zone: zone, fields: w}, err
}

// cutZone splits the zone from the front of a spec. The cron parser panics if nothing follows the
// zone.
func cutZone(text string, zone *time.Location) (*time.Location, string, error) {
	if zone == nil {
		zone = time.UTC
	}
	if !hasZone(text) {
		return zone, text, nil
	}
	fields := strings.Fields(text)
	_, name, _ := strings.Cut(fields[0], "=")
	rest := strings.Join(fields[1:], " ")
	zone, err := time.LoadLocation(name)
	if err != nil || name == "" || name == "Local" {
		return nil, "", fmt.Errorf("%q is not an IANA time zone such as Europe/Berlin", words.Clip(name))
	}
	if rest == "" || hasZone(rest) {
		return nil, "", fmt.Errorf("write a spec after the time zone, such as %q",
			"CRON_TZ=Europe/Berlin 0 */3 * * *")
	}
	return zone, rest, nil
}

func hasZone(text string) bool {
	return strings.HasPrefix(text, "TZ=") || strings.HasPrefix(text, "CRON_TZ=")
}

// parseEvery reads the duration after "@every". The cron parser would round 100ms and 1.9s to 1s.
func parseEvery(text string) (seconds int64, err error) {
	d, err := time.ParseDuration(strings.TrimSpace(text))
	if err != nil || d < time.Second || d%time.Second != 0 {
		return 0, fmt.Errorf("after @every write a duration of 1s or more in full seconds, such "+
			"as %q", "@every 90s")
	}
	return int64(d / time.Second), nil
}

func parseFields(text string) (cronFields, error) {
	if err := checkItems(text); err != nil {
		return cronFields{}, err
	}
	parsed, err := cron.ParseStandard(text)
	fields, ok := parsed.(*cron.SpecSchedule)
	if err != nil || !ok {
		return cronFields{}, explain(text)
	}
	w := newCronFields(fields)
	if !w.fires() {
		return cronFields{}, fmt.Errorf("never fires: none of its months has that day; "+
			"%q is every 28 February", "0 0 28 2 *")
	}
	return w, nil
}

// explain returns an error that says how to write what the cron parser refused.
func explain(text string) error {
	if strings.HasPrefix(text, "@") {
		return errors.New("write @yearly, @monthly, @weekly, @daily, @hourly or @every 3h")
	}
	fields := strings.Fields(text)
	if len(fields) != 5 {
		return fmt.Errorf("has %d fields, not 5: write minute, hour, day of the month, month, "+
			"day of the week, such as %q", len(fields), "0 */3 * * *")
	}
	names := []string{"minute", "hour", "day of the month", "month", "day of the week"}
	values := []string{"0 to 59", "0 to 23", "1 to 31", "1 to 12 or jan to dec",
		"0 to 6 or sun to sat"}
	for i, field := range fields {
		alone := strings.Repeat("* ", i) + field + strings.Repeat(" *", 4-i)
		if _, err := cron.ParseStandard(alone); err != nil {
			return fmt.Errorf("%s %q: write %s, such as 5, 1-5, 1,3 or */5", names[i],
				words.Clip(field), values[i])
		}
	}
	return errors.New("write five fields, such as \"0 */3 * * *\"")
}

// checkItems refuses items that the cron parser misreads: "1,,2" and "," (as nothing), "*-5" (as
// all).
func checkItems(text string) error {
	for _, field := range strings.Fields(text) {
		for item := range strings.SplitSeq(field, ",") {
			if item == "" {
				return fmt.Errorf("%q has an empty item: write %q", words.Clip(field), "1,2")
			}
			if strings.HasPrefix(item, "*-") || strings.HasPrefix(item, "?-") {
				return errors.New(`a range begins with a number, such as "0-5"`)
			}
		}
	}
	return nil
}
