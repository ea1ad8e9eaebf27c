package standin

import (
	"maps"
	"slices"
	"strings"
)

// openAIRoutes count requests and tokens by model, and refuse a request that would not fit with its
// maximum output. Refused requests count as requests.
var openAIRoutes = []route{
	{"POST /v1/chat/completions", (*call).chat, ""},
	{"POST /v1/responses", (*call).responses, ""},
	{"POST /v1/embeddings", func(c *call) {
		g := c.readRequest("input", 0)
		g.output, g.allowed, g.searches = 0, 0, 0
		c.admitGeneration(g)
		c.ok(c.doc("embeddings", c.generationValues(g)))
	}, ""},
	{"GET /v1/models|GET /v1/files|POST /v1/moderations|POST /v1/responses/input_tokens",
		freeDocument("models"), ""},
	{uploadPattern, (*call).upload, ""},
	{"GET /v1/files/file-out-{batch}/content", (*call).batchOutput, ""},
	{"POST /v1/batches", (*call).createBatch, ""},
	{"POST /v1/fine_tuning/jobs", (*call).tune, ""},
	{"[A-Z]+ /v1/(?:batches|fine_tuning/jobs|responses)/{job}(/cancel)?", (*call).showJob, ""},
	{"GET /v1/organization/costs", bill("cost"), ""},
	{"GET /v1/organization/projects/{project}/rate_limits", (*call).rateLimits, ""},
}

func (c *call) chat() {
	g := c.readRequest("messages", 0)
	g.searches = 0
	c.admitGeneration(g)
	values := c.generationValues(g)
	if c.request().Stream {
		c.chatStream(g, values)
		return
	}
	var choices []any
	for i := range g.choices {
		values["index"] = i
		choices = append(choices, c.doc("choice", values))
	}
	values["choices"] = choices
	c.ok(c.doc("chat", values))
}

// chatStream sends the chunks of all choices, and the usage if the request asks for it.
func (c *call) chatStream(g generation, values object) {
	withUsage := c.request().StreamOptions.IncludeUsage
	out := stream{call: c, template: c.doc("chunk", values)}
	if withUsage {
		out.template["usage"] = nil
	}
	for i := range g.choices {
		values["index"] = i
		out.events("chat", g, values)
	}
	if withUsage && c.fault != "no-usage" {
		out.template["usage"] = c.doc("usage", values)
		out.event("", object{"choices": []any{}})
	}
	out.parts = append(out.parts, []byte("data: [DONE]\n\n"))
	out.send()
}

func (c *call) responses() {
	g := c.readRequest("input", 0)
	c.admitGeneration(g)
	values := c.generationValues(g)
	values["end"], values["incomplete"] = "completed", nil
	if g.stopped {
		values["end"], values["incomplete"] = "incomplete", object{"reason": "max_output_tokens"}
	}
	values["status"] = values["end"]
	items := []any{}
	for i := range g.searches {
		items = append(items, c.doc("web_search", object{"index": i}))
	}
	values["items"] = append(items, c.doc("message", values))
	switch {
	case c.request().Background:
		values["status"] = "queued"
		j := &job{id: c.id("resp_")}
		j.doc = func(c *call, ended bool) object {
			document, values := "response_begun", maps.Clone(values)
			if values["status"] = j.state(ended, "in_progress", values["end"].(string)); ended {
				document = "response"
			}
			doc := c.doc(document, values)
			doc["id"] = j.id
			return doc
		}
		c.addJob(j, responseTime)
		c.ok(c.doc("response_begun", values))
	case c.request().Stream:
		c.sendStream("response", g, values)
	default:
		c.ok(c.doc("response", values))
	}
}

// rateLimits lists the limits of models that have their own, one per page, so that clients must
// follow the pages.
func (c *call) rateLimits() {
	models := []string{"gpt-standin"}
	unlock := c.s.locked()
	for bucket := range c.s.meter.limits {
		if _, model, ok := strings.Cut(bucket, "/"); ok && !slices.Contains(models, model) {
			models = append(models, model)
		}
	}
	unlock()
	slices.Sort(models)
	if after := c.r.URL.Query().Get("after"); after != "" {
		models = models[1+slices.Index(models, strings.TrimPrefix(after, "rl-")):]
	}
	values := object{"data": []any{}, "first": nil, "more": len(models) > 1}
	c.dropResponse()
	if len(models) > 0 {
		limits := object{"object": "project.rate_limit", "id": "rl-" + models[0], "model": models[0]}
		for _, bucket := range []string{"requests", "tokens"} {
			if r, ok := c.rate(part(bucket, models[0]), 0); ok {
				limits["max_"+bucket+"_per_1_minute"] = r.Units
			}
		}
		values["data"], values["first"] = []any{limits}, limits["id"]
	}
	c.ok(c.doc("rate_limits", values))
}
