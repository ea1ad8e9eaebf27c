package standin

import (
	"regexp"
	"strings"
)

// anthropicRoutes count requests, input and output tokens by class of model. Limits do not count
// input that was read from a cache.
var anthropicRoutes = []route{
	{"GET /v1/models", func(c *call) { c.ok(c.doc("models", nil)) }, ""},
	{"POST /v1/messages/count_tokens", func(c *call) {
		c.ok(object{"input_tokens": c.readRequest("messages", 0).input})
	}, ""},
	{"POST /v1/messages", (*call).messages, ""},
	{"POST /v1/messages/batches", (*call).messageBatch, ""},
	{"GET /v1/messages/batches/{job}/results", (*call).messageResults, ""},
	{"[A-Z]+ /v1/messages/batches/{job}(/cancel)?", (*call).showJob, ""},
	{"GET /v1/organizations/cost_report", bill("cost_report"), ""},
	{"GET /v1/organizations/usage_report/messages", bill("usage_report"), ""},
}

var modelClass = regexp.MustCompile(`^claude-(?:(3-5)-)?(opus|sonnet|haiku)(?:-(\d))?\b`)

// class returns the class of a model, such as opus-4, sonnet-4 or haiku-3.5, whose versions share
// their limits. A model with a name of another form has its own class.
func class(model string) string {
	m := modelClass.FindStringSubmatch(model)
	if m == nil || m[1]+m[3] == "" {
		return model
	}
	return m[2] + "-" + strings.ReplaceAll(m[1], "-", ".") + m[3]
}

func (c *call) messages() {
	g := c.readRequest("messages", 1)
	c.admitGeneration(g)
	values := c.generationValues(g)
	if c.request().Stream {
		c.sendStream("message", g, values)
		return
	}
	c.ok(c.doc("message", values))
}

// messageBatch serves POST /v1/messages/batches of Anthropic.
func (c *call) messageBatch() {
	c.parse(&modelRequest{})
	j := &job{id: c.id("msgbatch_")}
	for _, r := range c.request().Requests {
		member, ok := c.part(r.ID, "/v1/messages", r.Params)
		if !ok {
			c.fail("wrong params", nil)
		}
		j.calls = append(j.calls, member)
	}
	if len(j.calls) == 0 {
		c.fail("no requests", nil)
	}
	j.costs = func() []cost {
		return []cost{j.money(c.s.Prices), one("batched", int64(len(j.calls)))}
	}
	j.doc = func(c *call, ended bool) object {
		values := object{"batch": j.id, "all": len(j.calls), "": 0, "canceled": 0, "expired": 0}
		if !ended {
			return c.doc("batch_begun", values)
		}
		for i := range j.calls {
			values[j.omission(i)] = values[j.omission(i)].(int) + 1
		}
		values["succeeded"] = values[""]
		return c.doc("batch", values)
	}
	c.startBatch(j)
}

// messageResults serves the results of a batch of Anthropic.
func (c *call) messageResults() {
	j := c.job(c.match[1])
	if c.now.Before(j.ends) {
		c.fail("no results", nil)
	}
	var results []object
	for i, member := range j.calls {
		result := object{"type": j.omission(i)}
		if result["type"] == "" {
			result = c.doc("succeeded", c.generationValues(member.generation))
		}
		results = append(results, object{"custom_id": member.name, "result": result})
	}
	c.free()
	c.lines(results)
}
