package standin

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"time"
)

// figure names an amount billed for one model on a day in UTC: money in millionths of a dollar, or
// tokens or posts by their name in the API's report.
type figure struct{ day, model, name string }

// tokenFigures are the kinds of tokens in Anthropic's usage report.
var tokenFigures = []string{"uncached_input_tokens", "ephemeral_5m_input_tokens",
	"cache_read_input_tokens", "output_tokens"}

// Use bills the use of another program on a day.
func (s *Server) Use(day, model, name string, amount float64) {
	defer s.locked()()
	s.bills[figure{day, model, name}] += amount
}

// billedOn returns the figures of a day, by model and name.
func (c *call) billedOn(day time.Time) map[string]map[string]float64 {
	defer c.s.locked()()
	all := map[string]map[string]float64{}
	for f, amount := range c.s.bills {
		if f.day == day.Format(time.DateOnly) {
			if all[f.model] == nil {
				all[f.model] = map[string]float64{}
			}
			all[f.model][f.name] += amount
		}
	}
	return all
}

// days calls do for each day in UTC, beginning with the day of from, at most 31 times.
func (c *call) days(from, until time.Time, do func(day time.Time)) {
	day := from.UTC().Truncate(24 * time.Hour)
	for range 31 {
		if !day.Before(until) || day.After(c.now) {
			return
		}
		do(day)
		day = day.AddDate(0, 0, 1)
	}
}

// bill returns a handler for a report of the figures by day and model. document names the spec's
// document with the figures of one model.
func bill(document string) func(*call) {
	return func(c *call) {
		q, now := c.r.URL.Query(), decimal(c.now.Unix())
		from, err := parseMoment(q.Get("start_time") + q.Get("starting_at"))
		until, err2 := parseMoment(cmp.Or(q.Get("end_time")+q.Get("ending_at"), now))
		if err != nil || err2 != nil || q.Get("bucket_width") != "1d" {
			c.fail("no period", nil)
		}
		c.dropResponse()
		days := []any{}
		c.days(from, until, func(day time.Time) {
			results, billed := []any{}, c.billedOn(day)
			for _, model := range slices.Sorted(maps.Keys(billed)) {
				values := object{"model": model, "dollars": billed[model][money] / 1e6,
					"cents": strconv.FormatFloat(billed[model][money]/10_000, 'f', -1, 64)}
				for _, name := range tokenFigures {
					values[name] = billed[model][name]
				}
				results = append(results, c.doc(document, values))
			}
			end := day.AddDate(0, 0, 1)
			days = append(days, c.doc("day", object{"results": results, "begin": day.Unix(),
				"end": end.Unix(), "begin_at": rfc3339(day), "end_at": rfc3339(end)}))
		})
		c.ok(c.doc("days", object{"days": days}))
	}
}

// parseMoment reads a time in seconds or as RFC 3339.
func parseMoment(text string) (time.Time, error) {
	if unix, err := strconv.ParseInt(text, 10, 64); err == nil {
		return time.Unix(unix, 0), nil
	}
	return time.Parse(time.RFC3339, text)
}

// keySpending returns the spending of an OpenRouter key, in dollars, in the current day, week and
// month of UTC.
func (c *call) keySpending() {
	dollars := func(days int) (sum float64) {
		for i := range days {
			for _, figures := range c.billedOn(c.now.UTC().AddDate(0, 0, -i)) {
				sum += figures[money]
			}
		}
		return sum / 1e6
	}
	c.free()
	c.ok(c.doc("key", object{"all": dollars(31), "day": dollars(1),
		"month": dollars(c.now.UTC().Day()),
		"week":  dollars(1 + (int(c.now.UTC().Weekday())+6)%7)}))
}
