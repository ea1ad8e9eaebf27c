package standin

import (
	"net/http"
	"regexp"
	"strings"
)

var modelClass = regexp.MustCompile(`^claude-(?:(3-5)-)?(opus|sonnet|haiku)(?:-(\d))?\b`)

// class returns the models that share limits: all versions of opus-4, of sonnet-4, of haiku-3.5. A
// model with a name of another form is a class of its own.
func class(model string) string {
	m := modelClass.FindStringSubmatch(model)
	if m == nil || m[1]+m[3] == "" {
		return model
	}
	return m[2] + "-" + strings.ReplaceAll(m[1], "-", ".") + m[3]
}

// anthropicBucket returns the bucket of the class of the model.
func anthropicBucket(c *call, name string) string { return part(name, class(c.model())) }

// serveAnthropic counts requests, input and output tokens by class of model. Limits do not count
// input that was read from a cache. The tokens that a model may write are held until the response
// ends.
func serveAnthropic(c *call) {
	route := c.r.Method + " " + c.r.URL.Path
	switch {
	case c.r.Header.Get("Anthropic-Version") == "":
		c.invalid("anthropic-version: header is required")
	case route == "GET /v1/models":
		c.ok(c.doc("models", nil))
	case route == "POST /v1/messages/count_tokens":
		if q := (anthropicRequest{MaxTokens: 1}); c.readAnthropic(&q) {
			c.ok(object{"input_tokens": c.generate(1).input})
		}
	case route == "POST /v1/messages":
		c.messages()
	case route == "POST /v1/messages/batches":
		c.messageBatch()
	case strings.HasPrefix(c.r.URL.Path, "/v1/messages/batches/"):
		c.begunBatch()
	default:
		c.fail(http.StatusNotFound, "Not found")
	}
}

type anthropicRequest struct {
	Model     string `json:"model"`
	MaxTokens int64  `json:"max_tokens"`
	Messages  []any  `json:"messages"`
	Stream    bool   `json:"stream"`
	Tools     tools  `json:"tools"`
}

// readAnthropic reads a request, or sends what is wrong with it and returns false.
func (c *call) readAnthropic(q *anthropicRequest) bool {
	if !c.parse(q) {
		return false
	}
	switch {
	case q.Model == "":
		c.invalid("model: Field required")
	case c.model() == "":
		c.fail(http.StatusNotFound, "model: %s", q.Model)
	case q.MaxTokens < 1 || q.MaxTokens > maxOutput:
		c.invalid("max_tokens: Field required, from 1 to %d", maxOutput)
	case len(q.Messages) == 0:
		c.invalid("messages: at least one message is required")
	default:
		return true
	}
	return false
}

func (c *call) messages() {
	var q anthropicRequest
	if !c.readAnthropic(&q) {
		return
	}
	g := c.generate(q.MaxTokens)
	if !q.Tools.search("web_search_") {
		g.searches = 0
	}
	of := class(g.model)
	input := g.fresh()
	if of == "haiku-3.5" { // where cached reads count
		input = g.input
	}
	if !c.admit(one(part("requests", of), 1), one(part("input", of), input),
		cost{bucket: part("output", of), billed: g.output, held: g.allowed}, paid(c.money(g))) {
		return
	}
	c.record(g.model, money, c.money(g))
	c.record(g.model, "uncached_input_tokens", float64(g.fresh()-g.written))
	c.record(g.model, "ephemeral_5m_input_tokens", float64(g.written))
	c.record(g.model, "cache_read_input_tokens", float64(g.cached))
	c.record(g.model, "output_tokens", float64(g.output))
	c.report()
	doc := c.doc("message", g.values())
	if q.Stream {
		c.messageStream(g, doc)
		return
	}
	doc["content"] = []any{object{"type": "text", "text": g.text()}}
	doc["stop_reason"] = g.finish("end_turn", "max_tokens")
	if c.fault != "no-usage" {
		doc["usage"] = c.anthropicUsage(g)
	}
	c.ok(doc)
}

func (c *call) anthropicUsage(g generation) object {
	usage := c.doc("usage", g.values())
	if g.searches > 0 {
		usage["server_tool_use"] = object{"web_search_requests": g.searches}
	}
	return usage
}

// messageStream sends the events of a message; begun is the message without its content.
func (c *call) messageStream(g generation, begun object) {
	pieces := g.pieces()
	out := c.stream(len(pieces))
	send := func(kind string, fields object) {
		fields["type"] = kind
		out.event(kind, fields)
	}
	ended := object{"delta": object{"stop_reason": g.finish("end_turn", "max_tokens"),
		"stop_sequence": nil}}
	if c.fault != "no-usage" {
		usage, all := c.anthropicUsage(g), object{"output_tokens": g.output}
		usage["output_tokens"] = 1
		if tools, ok := usage["server_tool_use"]; ok {
			all["server_tool_use"] = tools
			delete(usage, "server_tool_use") // it has not searched yet
		}
		begun["usage"], ended["usage"] = usage, all
	}
	send("message_start", object{"message": begun})
	send("content_block_start", object{"index": 0, "content_block": object{"type": "text",
		"text": ""}})
	send("ping", object{})
	for _, text := range pieces {
		send("content_block_delta", object{"index": 0,
			"delta": object{"type": "text_delta", "text": text}})
	}
	send("content_block_stop", object{"index": 0})
	send("message_delta", ended)
	send("message_stop", object{})
}
