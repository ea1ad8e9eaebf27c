package standin

import (
	"cmp"
	"net/http"
	"regexp"
)

// modelAPI returns an API that bills a model's call as openai does. Path matches "POST /path". Its
// group, if any, is the model; otherwise the body names it. GET requests are free.
func modelAPI(path string, serve func(*call, string)) api {
	form := regexp.MustCompile("^" + path + "$")
	return api{bucket: (*call).modelBucket, serve: func(c *call) {
		switch m := form.FindStringSubmatch(c.r.Method + " " + c.r.URL.Path); {
		case m != nil:
			serve(c, m[len(m)-1])
		case c.r.Method != http.MethodGet:
			c.fail(http.StatusNotFound, "Not Found")
		case c.s.name == "openrouter" && c.r.URL.Path == "/api/v1/key":
			c.free("key", c.spent())
		default:
			c.free("free", nil)
		}
	}}
}

func chatOf(c *call, _ string) { c.chat() }

// generateAs returns a function that bills a generation of the model in the path, and answers in
// the API's own shape.
func generateAs(end, stopped string) func(*call, string) {
	return func(c *call, model string) {
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
		if _, tokens := c.s.api.Limits["tokens"]; tokens {
			costs = append(costs, cost{bucket: c.bucketOf("tokens", model),
				billed: g.input + g.output, held: g.input + max(g.allowed, g.output)})
		} else {
			costs = append(costs, one(c.bucketOf("input", model), g.input))
		}
		if !c.admit(costs...) {
			return
		}
		c.record(model, money, c.money(g))
		values := g.values()
		values["text"], values["finish"] = g.text(), g.finish(end, stopped)
		c.ok(c.doc("reply", values))
	}
}

// spent returns what the key has spent, in dollars, by day, week and month of UTC.
func (c *call) spent() object {
	dollars := func(days int) (sum float64) {
		for i := range days {
			for _, of := range c.billedOn(c.now.UTC().AddDate(0, 0, -i)) {
				sum += of[money]
			}
		}
		return sum / 1e6
	}
	return object{"all": dollars(31), "day": dollars(1), "month": dollars(c.now.UTC().Day()),
		"week": dollars(1 + (int(c.now.UTC().Weekday())+6)%7)}
}
