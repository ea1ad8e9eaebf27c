package standin

import (
	"cmp"
	"net/http"
	"regexp"
	"time"
)

// modelAPI returns an API that bills a model's call as openai does, with its own path and response.
// Path matches "POST /path". Its group, if any, is the model; otherwise the body names it.
func modelAPI(key func(*http.Request) string, path string,
	reply func(c *call, g generation) object) api {
	form := regexp.MustCompile("^" + path + "$")
	return api{
		limits: map[string][]Limit{"requests": {{Units: 500, Window: time.Minute}},
			"tokens": {{Units: 200_000, Window: time.Minute}}, money: nil, "free": nil},
		prices:  map[string]float64{"input": 0, "cached": 0, "output": 0, "written": 0, "search": 0},
		refills: true,
		key:     key,
		serve: func(c *call) {
			m := form.FindStringSubmatch(c.r.Method + " " + c.r.URL.Path)
			switch {
			case m == nil && c.r.Method == http.MethodGet:
				c.free()
			case m == nil:
				c.fail(http.StatusNotFound, "Not Found")
			case reply == nil:
				c.chat()
			default:
				c.generateAs(m[1], reply)
			}
		},
		fail: func(c *call, status int, message string) {
			c.json(status, object{"message": message, "error": object{"code": status, "message": message}})
		},
		deny: func(c *call, d denial) {
			status := http.StatusTooManyRequests
			if d.bucket == money {
				status = http.StatusPaymentRequired
			} else {
				c.retryAfter(d.until)
			}
			c.fail(status, "Rate limit exceeded: %s", d.limit)
		},
	}
}

// whole returns the API with one bucket for all models.
func (a api) whole(bucket string) api {
	a.undivided = bucket
	return a
}

// with returns the API with other buckets.
func (a api) with(limits map[string][]Limit) api {
	a.limits = limits
	return a
}

// The APIs that bill models, besides openai and anthropic.
var (
	azure      = modelAPI(header("Api-Key"), "POST /openai/deployments/[^/]+/chat/completions", nil)
	mistral    = modelAPI(bearer, "POST /v1/chat/completions", nil).whole("requests")
	openRouter = modelAPI(bearer, "POST /api/v1/chat/completions", nil).whole("requests")
	bedrock    = modelAPI(bearer, "POST /model/([^/]+)/converse", converse)
	gemini     = modelAPI(header("X-Goog-Api-Key"),
		"POST /v1(?:beta)?/models/([^/]+):generateContent", content).with(map[string][]Limit{
		"requests": {{Units: 500, Window: time.Minute}}, "input": nil, money: nil, "free": nil})
)

func header(name string) func(*http.Request) string {
	return func(r *http.Request) string { return r.Header.Get(name) }
}

// free answers a call that costs nothing.
func (c *call) free() {
	if !c.admit(one("free", 1)) {
		return
	}
	if c.s.name == "openrouter" && c.r.URL.Path == "/api/v1/key" {
		c.openRouterKey()
		return
	}
	c.ok(object{"object": "list", "data": []any{}, "models": []any{}})
}

// generateAs bills a generation of the model in the path, and answers in the API's own shape.
func (c *call) generateAs(model string, reply func(*call, generation) object) {
	var q struct {
		GenerationConfig struct{ MaxOutputTokens int64 }
		InferenceConfig  struct{ MaxTokens int64 }
	}
	if !c.parse(&q) {
		return
	}
	g := c.generate(cmp.Or(q.GenerationConfig.MaxOutputTokens, q.InferenceConfig.MaxTokens))
	g.model, g.searches = model, 0
	costs := []cost{one(c.bucketOf("requests", model), 1), paid(c.money(g))}
	if _, tokens := c.s.api.limits["tokens"]; tokens {
		costs = append(costs, cost{bucket: c.bucketOf("tokens", model), billed: g.input + g.output,
			held: g.input + max(g.most, g.output)})
	} else {
		costs = append(costs, one(c.bucketOf("input", model), g.input))
	}
	if c.admit(costs...) {
		c.record(model, money, c.money(g))
		c.ok(reply(c, g))
	}
}

// content is a response of Gemini.
func content(c *call, g generation) object {
	doc := object{"modelVersion": g.model, "candidates": []any{object{"index": 0,
		"finishReason": g.finish("STOP", "MAX_TOKENS"),
		"content":      object{"role": "model", "parts": []any{object{"text": g.text()}}}}}}
	if c.fault != "no-usage" {
		doc["usageMetadata"] = object{"promptTokenCount": g.input, "cachedContentTokenCount": g.cached,
			"candidatesTokenCount": g.output - g.reasoning, "thoughtsTokenCount": g.reasoning,
			"totalTokenCount": g.input + g.output}
	}
	return doc
}

// converse is a response of Bedrock's Converse.
func converse(c *call, g generation) object {
	doc := object{"stopReason": g.finish("end_turn", "max_tokens"), "metrics": object{"latencyMs": 1},
		"output": object{"message": object{"role": "assistant",
			"content": []any{object{"text": g.text()}}}}}
	if c.fault != "no-usage" {
		doc["usage"] = object{"inputTokens": g.fresh() - g.written, "outputTokens": g.output,
			"totalTokens": g.input + g.output, "cacheReadInputTokens": g.cached,
			"cacheWriteInputTokens": g.written}
	}
	return doc
}

// openRouterKey serves what the key has spent, in dollars, by day, week and month of UTC.
func (c *call) openRouterKey() {
	dollars := func(days int) (sum float64) {
		for i := range days {
			for _, of := range c.on(c.now.UTC().AddDate(0, 0, -i)) {
				sum += of[money]
			}
		}
		return sum / 1e6
	}
	c.ok(object{"data": object{"label": "sk-or-v1-...", "limit": nil, "limit_remaining": nil,
		"limit_reset": nil, "is_free_tier": false, "usage": dollars(31), "usage_daily": dollars(1),
		"usage_weekly":  dollars(1 + (int(c.now.UTC().Weekday())+6)%7),
		"usage_monthly": dollars(c.now.UTC().Day()), "byok_usage": 0}})
}
