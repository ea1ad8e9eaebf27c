package standin

import (
	"cmp"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"
)

// figure is what was billed on a day in UTC, of one model: money in millionths of a dollar, tokens
// or posts by the name that the report of the API has for them.
type figure struct{ day, model, name string }

// Use bills what another program has used on a day.
func (s *Server) Use(day, model, name string, amount float64) {
	defer s.locked()()
	s.bills[figure{day, model, name}] += amount
}

// record bills what the call has used.
func (c *call) record(model, name string, amount float64) {
	c.s.Use(c.now.UTC().Format(time.DateOnly), model, name, amount)
}

// isBill reports whether a request asks for what was billed, or for limits, with an admin key.
func isBill(r *http.Request) bool {
	return strings.HasPrefix(r.URL.Path, "/v1/organization")
}

// bill serves what the API reports of the account itself. It returns false for other requests.
func (c *call) bill() bool {
	path := strings.TrimPrefix(c.r.URL.Path, "/")
	switch {
	case c.r.Method != http.MethodGet:
		return false
	case c.s.name == "openai" && path == "v1/organization/costs":
		c.openAICosts()
	case c.s.name == "openai" && strings.HasSuffix(path, "/rate_limits"):
		c.openAILimits()
	case c.s.name == "anthropic" && path == "v1/organizations/cost_report":
		c.anthropicReport(func(model string, of map[string]float64) object {
			amount := strconv.FormatFloat(of[money]/10_000, 'f', -1, 64)
			return c.doc("cost_report", object{"model": model, "amount": amount})
		})
	case c.s.name == "anthropic" && path == "v1/organizations/usage_report/messages":
		c.anthropicReport(func(model string, of map[string]float64) object {
			values := object{"model": model}
			for _, name := range anthropicFigures {
				values[name] = of[name]
			}
			return c.doc("usage_report", values)
		})
	case c.s.name == "x" && path == "2/usage/tweets":
		c.xUsage()
	default:
		return false
	}
	return true
}

// anthropicFigures are the tokens that the usage report of Anthropic lists.
var anthropicFigures = []string{"uncached_input_tokens", "ephemeral_5m_input_tokens",
	"cache_read_input_tokens", "output_tokens"}

// billedOn returns what was billed on a day, by model and name.
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

// days calls do for each day in UTC from the one of a moment on, at most 31.
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

func (c *call) openAICosts() {
	q := c.r.URL.Query()
	from, err := strconv.ParseInt(q.Get("start_time"), 10, 64)
	until, err2 := strconv.ParseInt(cmp.Or(q.Get("end_time"), decimal(c.now.Unix())), 10, 64)
	if err != nil || err2 != nil || q.Get("bucket_width") != "1d" {
		c.invalid("start_time, end_time or bucket_width is not valid")
		return
	}
	if c.lost() {
		return
	}
	buckets := []any{}
	c.days(time.Unix(from, 0), time.Unix(until, 0), func(day time.Time) {
		results, billed := []any{}, c.billedOn(day)
		for _, model := range slices.Sorted(maps.Keys(billed)) {
			results = append(results, c.doc("cost", object{"model": model,
				"dollars": billed[model][money] / 1e6}))
		}
		buckets = append(buckets, object{"object": "bucket", "start_time": day.Unix(),
			"end_time": day.AddDate(0, 0, 1).Unix(), "results": results})
	})
	c.ok(object{"object": "page", "data": buckets, "has_more": false, "next_page": nil})
}

// openAILimits lists the limits of the models that have some of their own, one a page, so that
// clients must follow the pages.
func (c *call) openAILimits() {
	models := []string{"gpt-standin"}
	func() {
		defer c.s.locked()()
		for bucket := range c.s.meter.limits {
			if _, model, ok := strings.Cut(bucket, "/"); ok && !slices.Contains(models, model) {
				models = append(models, model)
			}
		}
	}()
	slices.Sort(models)
	i := 0
	if after := c.r.URL.Query().Get("after"); after != "" {
		i = 1 + slices.Index(models, strings.TrimPrefix(after, "rl-"))
	}
	if i >= len(models) || c.lost() {
		c.ok(object{"object": "list", "data": []any{}, "has_more": false})
		return
	}
	doc := object{"object": "project.rate_limit", "id": "rl-" + models[i], "model": models[i]}
	for bucket, name := range map[string]string{"requests": "max_requests_per_1_minute",
		"tokens": "max_tokens_per_1_minute"} {
		if g, ok := c.gauge(part(bucket, models[i]), 0); ok {
			doc[name] = g.limit
		}
	}
	c.ok(c.doc("rate_limits", object{"data": []any{doc}, "first": doc["id"],
		"more": i+1 < len(models)}))
}

// anthropicReport serves a report by day and model.
func (c *call) anthropicReport(result func(model string, of map[string]float64) object) {
	q := c.r.URL.Query()
	from, err := time.Parse(time.RFC3339, q.Get("starting_at"))
	until, err2 := time.Parse(time.RFC3339, cmp.Or(q.Get("ending_at"), rfc3339(c.now)))
	if err != nil || err2 != nil {
		c.invalid("starting_at: Field required")
		return
	}
	if c.lost() {
		return
	}
	days := []any{}
	c.days(from, until, func(day time.Time) {
		results, billed := []any{}, c.billedOn(day)
		for _, model := range slices.Sorted(maps.Keys(billed)) {
			results = append(results, result(model, billed[model]))
		}
		days = append(days, object{"starting_at": day.Format(time.RFC3339),
			"ending_at": day.AddDate(0, 0, 1).Format(time.RFC3339), "results": results})
	})
	c.ok(object{"data": days, "has_more": false, "next_page": nil})
}

// xUsage serves the posts of each of the last days.
func (c *call) xUsage() {
	n, err := strconv.Atoi(cmp.Or(c.r.URL.Query().Get("days"), "7"))
	if err != nil || n < 1 || n > 90 {
		c.invalid("The `days` query parameter value is not between 1 and 90")
		return
	}
	if !c.admit(one(part("requests", "x.usage"), 1)) {
		return
	}
	c.report()
	usage := []any{}
	c.days(c.now.AddDate(0, 0, 1-n), c.now, func(day time.Time) {
		usage = append(usage, object{"date": day.Format("2006-01-02T15:04:05.000Z"),
			"usage": strconv.FormatFloat(c.billedOn(day)[""]["posts"], 'f', -1, 64)})
	})
	c.ok(c.doc("usage", object{"usage": usage}))
}
