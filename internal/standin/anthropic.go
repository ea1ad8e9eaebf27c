package standin

import (
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// anthropic counts requests, input and output tokens by class of model. Input that was read from a
// cache is free of limits. What a model may write is held until it has written.
var anthropic = api{
	limits: map[string][]Limit{
		"requests": {{Units: 50, Window: time.Minute}},
		"input":    {{Units: 50_000, Window: time.Minute}},
		"output":   {{Units: 10_000, Window: time.Minute}},
		money:      nil,
	},
	prices:  map[string]float64{"input": 0, "cached": 0, "written": 0, "output": 0, "search": 0},
	refills: true,
	key: func(r *http.Request) string {
		if key := r.Header.Get("X-Api-Key"); key != "" {
			return key
		}
		return bearer(r)
	},
	serve:  serveAnthropic,
	fail:   failAnthropic,
	deny:   denyAnthropic,
	failed: func(c *call) string { return part("requests", class(c.model())) },
	every:  true,
}

var modelClass = regexp.MustCompile(`^claude-(?:(3-5)-)?(opus|sonnet|haiku)(?:-(\d))?\b`)

// class is what shares limits: all versions of opus-4, of sonnet-4, of haiku-3.5. A model with a
// name of another form is a class of its own.
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
		c.fail(http.StatusBadRequest, "anthropic-version: header is required")
	case route == "GET /v1/models":
		c.json(http.StatusOK, map[string]any{"data": []any{map[string]any{"type": "model",
			"id": "claude-standin", "display_name": "Stand-in",
			"created_at": "2025-01-01T00:00:00Z"}}, "has_more": false,
			"first_id": "claude-standin", "last_id": "claude-standin"})
	case route == "POST /v1/messages/count_tokens":
		if q := (anthropicRequest{MaxTokens: 1}); c.readAnthropic(&q) {
			c.json(http.StatusOK, map[string]any{"input_tokens": c.generate(1).input})
		}
	case route == "POST /v1/messages":
		c.messages()
	default:
		c.fail(http.StatusNotFound, "Not found")
	}
}

type anthropicRequest struct {
	Model     string `json:"model"`
	MaxTokens int64  `json:"max_tokens"`
	Messages  []any  `json:"messages"`
	Stream    bool   `json:"stream"`
	Tools     []tool `json:"tools"`
}

// readAnthropic reads a request, or answers what is wrong with it and returns false.
func (c *call) readAnthropic(q *anthropicRequest) bool {
	if !c.parse(q) {
		return false
	}
	switch {
	case q.Model == "":
		c.fail(http.StatusBadRequest, "model: Field required")
	case c.model() == "":
		c.fail(http.StatusNotFound, "model: %s", q.Model)
	case q.MaxTokens < 1 || q.MaxTokens > maxOutput:
		c.fail(http.StatusBadRequest, "max_tokens: Field required, from 1 to %d", maxOutput)
	case len(q.Messages) == 0:
		c.fail(http.StatusBadRequest, "messages: at least one message is required")
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
	if !slices.ContainsFunc(q.Tools, func(t tool) bool {
		return strings.HasPrefix(t.Type, "web_search_")
	}) {
		g.searches = 0
	}
	of := class(g.model)
	input := g.fresh()
	if of == "haiku-3.5" { // where cached reads count
		input = g.input
	}
	if !c.admit(one(part("requests", of), 1), one(part("input", of), input),
		cost{bucket: part("output", of), billed: g.output, held: g.most},
		paid(c.money(g))) {
		return
	}
	c.anthropicHeaders(g.model)
	if q.Stream {
		c.messageStream(g)
		return
	}
	doc := c.anthropicMessage(g)
	doc["content"] = []any{map[string]any{"type": "text", "text": g.text()}}
	doc["stop_reason"] = g.finish("end_turn", "max_tokens")
	if usage := g.anthropicUsage(g.output); c.fault != "no-usage" {
		doc["usage"] = usage
	}
	c.json(http.StatusOK, doc)
}

func (c *call) anthropicMessage(g generation) map[string]any {
	return map[string]any{"id": c.id("msg_"), "type": "message", "role": "assistant",
		"model": g.model, "content": []any{}, "stop_reason": nil, "stop_sequence": nil}
}

func (g generation) anthropicUsage(output int64) map[string]any {
	usage := map[string]any{"input_tokens": g.fresh() - g.written, "output_tokens": output,
		"cache_creation_input_tokens": g.written, "cache_read_input_tokens": g.cached,
		"service_tier": "standard"}
	if g.searches > 0 {
		usage["server_tool_use"] = map[string]any{"web_search_requests": g.searches}
	}
	return usage
}

func (c *call) messageStream(g generation) {
	type doc = map[string]any
	pieces := g.pieces()
	out := c.stream(len(pieces))
	send := func(kind string, fields doc) bool {
		fields["type"] = kind
		return out.event(kind, fields)
	}
	begun := c.anthropicMessage(g)
	ended := doc{"delta": doc{"stop_reason": g.finish("end_turn", "max_tokens"),
		"stop_sequence": nil}}
	if c.fault != "no-usage" {
		usage, all := g.anthropicUsage(1), doc{"output_tokens": g.output}
		if tools, ok := usage["server_tool_use"]; ok {
			all["server_tool_use"] = tools
			delete(usage, "server_tool_use") // it has not searched yet
		}
		begun["usage"], ended["usage"] = usage, all
	}
	ok := send("message_start", doc{"message": begun}) &&
		send("content_block_start", doc{"index": 0, "content_block": doc{"type": "text",
			"text": ""}}) &&
		send("ping", doc{})
	for _, text := range pieces {
		ok = ok && send("content_block_delta", doc{"index": 0,
			"delta": doc{"type": "text_delta", "text": text}})
	}
	_ = ok && send("content_block_stop", doc{"index": 0}) && send("message_delta", ended) &&
		send("message_stop", doc{})
}

// anthropicHeaders are those of the limits. That of tokens is the tighter one of input and output.
func (c *call) anthropicHeaders(model string) {
	var tightest gauge
	show := func(name string, g gauge) {
		c.tell("Anthropic-Ratelimit-"+name+"-Limit", strconv.FormatInt(g.limit, 10))
		c.tell("Anthropic-Ratelimit-"+name+"-Remaining", c.left(g))
		c.tell("Anthropic-Ratelimit-"+name+"-Reset", rfc3339(g.reset))
	}
	for _, l := range [][2]string{{"requests", "Requests"}, {"input", "Input-Tokens"},
		{"output", "Output-Tokens"}} {
		g, ok := c.gauge(part(l[0], class(model)), 0)
		if !ok {
			continue
		}
		show(l[1], g)
		if l[0] != "requests" && (tightest.limit == 0 || g.left < tightest.left) {
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
	switch {
	case status == http.StatusUnauthorized:
		message = "invalid x-api-key"
	case status == 529:
		message = "Overloaded"
	case kind == "":
		kind = "api_error"
	}
	c.anthropicError(status, map[string]any{"type": kind, "message": message})
}

func (c *call) anthropicError(status int, e map[string]any) {
	c.json(status, map[string]any{"type": "error", "error": e, "request_id": c.id("req_")})
}

func denyAnthropic(c *call, d denial) {
	e := map[string]any{"type": "rate_limit_error"}
	if d.bucket == money {
		e["message"] = "You have reached your specified API usage limits. You will regain access " +
			"at the beginning of the next month, UTC."
		e["details"] = map[string]any{"error_code": "enforced_spend_limit_reached"}
	} else {
		c.anthropicHeaders(c.model())
		c.retryAfter(d.until)
		e["message"] = fmt.Sprintf("This request would exceed the rate limit for your organization "+
			"of %s (%s).", d.limit, d.bucket)
	}
	c.anthropicError(http.StatusTooManyRequests, e)
}

// rfc3339 is a time in whole seconds, rounded up.
func rfc3339(t time.Time) string {
	return t.Add(time.Second - 1).Truncate(time.Second).UTC().Format(time.RFC3339)
}
