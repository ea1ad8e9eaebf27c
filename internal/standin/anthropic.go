package standin

import (
	"cmp"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"time"
)

// anthropic counts requests, input and output tokens by class of model. Limits do not count input
// that was read from a cache. The tokens that a model may write are held until the response ends.
var anthropic = api{
	limits: map[string][]Limit{
		"requests": {{Units: 50, Window: time.Minute}},
		"input":    {{Units: 50_000, Window: time.Minute}},
		"output":   {{Units: 10_000, Window: time.Minute}},
		money:      nil,
		"batched":  nil,
	},
	prices:  map[string]float64{"input": 0, "cached": 0, "written": 0, "output": 0, "search": 0},
	refills: true,
	key:     func(r *http.Request) string { return cmp.Or(r.Header.Get("X-Api-Key"), bearer(r)) },
	serve:   serveAnthropic,
	fail:    failAnthropic,
	deny:    denyAnthropic,
	failed:  func(c *call) string { return part("requests", class(c.model())) },
	every:   true,
}

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

func serveAnthropic(c *call) {
	c.header("Request-Id", c.id("req_"))
	c.header("Anthropic-Organization-Id", "00000000-0000-4000-8000-000000000000")
	route := c.r.Method + " " + c.r.URL.Path
	switch {
	case c.r.Header.Get("Anthropic-Version") == "":
		c.invalid("anthropic-version: header is required")
	case route == "GET /v1/models":
		c.ok(object{"data": []any{object{"type": "model",
			"id": "claude-standin", "display_name": "Stand-in",
			"created_at": "2025-01-01T00:00:00Z"}}, "has_more": false,
			"first_id": "claude-standin", "last_id": "claude-standin"})
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
		cost{bucket: part("output", of), billed: g.output, held: g.most}, paid(c.money(g))) {
		return
	}
	c.record(g.model, money, c.money(g))
	c.record(g.model, "uncached_input_tokens", float64(g.fresh()-g.written))
	c.record(g.model, "ephemeral_5m_input_tokens", float64(g.written))
	c.record(g.model, "cache_read_input_tokens", float64(g.cached))
	c.record(g.model, "output_tokens", float64(g.output))
	c.anthropicHeaders(g.model)
	doc := object{"id": c.id("msg_"), "type": "message", "role": "assistant", "model": g.model,
		"content": []any{}, "stop_reason": nil, "stop_sequence": nil}
	if q.Stream {
		c.messageStream(g, doc)
		return
	}
	doc["content"] = []any{object{"type": "text", "text": g.text()}}
	doc["stop_reason"] = g.finish("end_turn", "max_tokens")
	if c.fault != "no-usage" {
		doc["usage"] = g.anthropicUsage(g.output)
	}
	c.ok(doc)
}

func (g generation) anthropicUsage(output int64) object {
	usage := object{"input_tokens": g.fresh() - g.written, "output_tokens": output,
		"cache_creation_input_tokens": g.written, "cache_read_input_tokens": g.cached,
		"service_tier": "standard"}
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
		usage, all := g.anthropicUsage(1), object{"output_tokens": g.output}
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

// anthropicHeaders reports the limits. Tokens is the tighter one of input and output.
func (c *call) anthropicHeaders(model string) {
	var tightest gauge
	show := func(name string, g gauge) {
		name = "Anthropic-Ratelimit-" + name
		c.report(name+"-Limit", decimal(g.limit), name+"-Remaining", c.left(g), name+"-Reset",
			rfc3339(g.reset))
	}
	for bucket, name := range map[string]string{"requests": "Requests", "input": "Input-Tokens",
		"output": "Output-Tokens"} {
		g, ok := c.gauge(part(bucket, class(model)), 0)
		if !ok {
			continue
		}
		show(name, g)
		if bucket != "requests" && (tightest.limit == 0 || g.left < tightest.left) {
			tightest = g
		}
	}
	if tightest.limit > 0 {
		show("Tokens", tightest)
	}
}

func failAnthropic(c *call, status int, message string) {
	kind := map[int]string{400: "invalid_request_error", 401: "authentication_error",
		404: "not_found_error", 413: "request_too_large", 529: "overloaded_error"}[status]
	switch status {
	case http.StatusUnauthorized:
		message = "invalid x-api-key"
	case 529:
		message = "Overloaded"
	}
	c.anthropicError(status, object{"type": cmp.Or(kind, "api_error"), "message": message})
}

func (c *call) anthropicError(status int, e object) {
	c.json(status, object{"type": "error", "error": e, "request_id": c.id("req_")})
}

func denyAnthropic(c *call, d denial) {
	e := object{"type": "rate_limit_error"}
	if d.bucket == money {
		e["message"] = "You have reached your specified API usage limits. You will regain access " +
			"at the beginning of the next month, UTC."
		e["details"] = object{"error_code": "enforced_spend_limit_reached"}
	} else {
		c.anthropicHeaders(c.model())
		c.retryAfter(d.until)
		e["message"] = fmt.Sprintf("This request would exceed the rate limit for your organization "+
			"of %s (%s).", d.limit, d.bucket)
	}
	c.anthropicError(http.StatusTooManyRequests, e)
}

// rfc3339 formats a time in whole seconds, rounded up.
func rfc3339(t time.Time) string {
	return t.Add(time.Second - 1).Truncate(time.Second).UTC().Format(time.RFC3339)
}
