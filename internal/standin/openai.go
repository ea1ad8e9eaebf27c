package standin

import (
	"cmp"
	"fmt"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// openai counts requests and tokens by model and refuses what would not fit if the model wrote as
// much as it may. Requests that it refuses count as requests.
var openai = api{
	limits: map[string][]Limit{
		"requests": {{Units: 500, Window: time.Minute}},
		"tokens":   {{Units: 200_000, Window: time.Minute}},
		money:      nil,
		"free":     nil,
	},
	prices:  map[string]float64{"input": 0, "cached": 0, "output": 0, "written": 0, "search": 0},
	refills: true,
	key:     bearer,
	serve:   serveOpenAI,
	fail:    failOpenAI,
	deny:    denyOpenAI,
	failed:  func(c *call) string { return part("requests", c.model()) },
	every:   true,
}

// part is the bucket of a model, "" without a model.
func part(bucket, model string) string {
	if model == "" {
		return ""
	}
	return bucket + "/" + model
}

func serveOpenAI(c *call) {
	c.header("X-Request-Id", c.id("req_"))
	c.header("Openai-Organization", "org-standin")
	c.header("Openai-Version", "2020-10-01")
	switch c.r.Method + " " + c.r.URL.Path {
	case "GET /v1/models", "GET /v1/files", "POST /v1/moderations", "POST /v1/responses/input_tokens":
		if !c.admit(one("free", 1)) {
			return
		}
		c.json(http.StatusOK, map[string]any{"object": "list", "data": []any{map[string]any{
			"id": "gpt-standin", "object": "model", "created": 1700000000, "owned_by": "standin"}}})
	case "POST /v1/chat/completions":
		c.chat()
	case "POST /v1/responses":
		c.responses()
	case "POST /v1/embeddings":
		c.embeddings()
	default:
		if c.r.Method == http.MethodGet && strings.HasPrefix(c.r.URL.Path, "/v1/responses/") {
			c.begunResponse()
			return
		}
		c.fail(http.StatusNotFound, "Invalid URL (%s %s)", c.r.Method, c.r.URL.Path)
	}
}

// openAIRequest are the fields of a request that matter here.
type openAIRequest struct {
	Messages            []any  `json:"messages"`
	Input               any    `json:"input"`
	MaxTokens           int64  `json:"max_tokens"`
	MaxCompletionTokens int64  `json:"max_completion_tokens"`
	MaxOutputTokens     int64  `json:"max_output_tokens"`
	N                   int64  `json:"n"`
	Stream              bool   `json:"stream"`
	Background          bool   `json:"background"`
	Model               string `json:"model"`
	ServiceTier         string `json:"service_tier"`
	Tools               []tool `json:"tools"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// read reads a request that needs a field, or answers 400 or 404 and returns false.
func (c *call) openAI(into *openAIRequest, field string) bool {
	if !c.parse(into) {
		return false
	}
	has := map[string]bool{"messages": len(into.Messages) > 0, "input": into.Input != nil}
	into.N = max(1, into.N)
	switch most := max(into.MaxTokens, into.MaxCompletionTokens, into.MaxOutputTokens); {
	case into.Model == "":
		c.fail(http.StatusBadRequest, "you must provide a model parameter")
	case c.model() == "":
		c.fail(http.StatusNotFound,
			"The model `%s` does not exist or you do not have access to it.", into.Model)
	case !has[field]:
		c.fail(http.StatusBadRequest, "Missing required parameter: '%s'.", field)
	case most < 0 || most > maxOutput || into.N > 8:
		c.fail(http.StatusBadRequest, "max_tokens is too large: %d.", most)
	default:
		return true
	}
	return false
}

// tool is something that the model may call.
type tool struct {
	Type string `json:"type"`
}

// tier is the one by which the request is processed, and billed.
func (q *openAIRequest) tier() string {
	if q.ServiceTier == "" || q.ServiceTier == "auto" {
		return "default"
	}
	return q.ServiceTier
}

// maxOutput is the most that a request may ask a model to write.
const maxOutput = 1_000_000

// admitOpenAI bills a generation of n choices, and sets the headers.
func (c *call) admitOpenAI(g generation, n int64) bool {
	tokens := cost{bucket: part("tokens", g.model), billed: g.input + n*g.output,
		held: g.input + n*max(g.most, g.output)}
	g.output *= n
	ok := c.admit(one(part("requests", g.model), 1), tokens, paid(c.money(g)))
	if ok {
		c.openAIHeaders(g.model)
	}
	return ok
}

func (c *call) openAIHeaders(model string) {
	for _, bucket := range []string{"requests", "tokens"} {
		if g, ok := c.gauge(part(bucket, model), 0); ok {
			c.tell("X-Ratelimit-Limit-"+bucket, strconv.FormatInt(g.limit, 10))
			c.tell("X-Ratelimit-Remaining-"+bucket, c.left(g))
			c.tell("X-Ratelimit-Reset-"+bucket, inWords(g.reset.Sub(c.now)))
		}
	}
}

// inWords is a duration as these headers have it: 12ms, 7.66s, 6m0s.
func inWords(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%dms", d.Milliseconds())
	}
	return d.Round(time.Millisecond).String()
}

func (g generation) usage(n int64) map[string]any {
	out := n * g.output
	return map[string]any{"prompt_tokens": g.input, "completion_tokens": out,
		"total_tokens":          g.input + out,
		"prompt_tokens_details": map[string]any{"cached_tokens": g.cached, "audio_tokens": 0},
		"completion_tokens_details": map[string]any{
			"reasoning_tokens": g.reasoning, "audio_tokens": 0}}
}

func (c *call) chat() {
	var q openAIRequest
	if !c.openAI(&q, "messages") {
		return
	}
	g := c.generate(cmp.Or(q.MaxCompletionTokens, q.MaxTokens))
	g.searches, g.tier = 0, q.tier()
	if !c.admitOpenAI(g, q.N) {
		return
	}
	if q.Stream {
		c.chatStream(q, g)
		return
	}
	var choices []any
	for i := range q.N {
		choices = append(choices, map[string]any{"index": i, "logprobs": nil,
			"message": map[string]any{
				"role": "assistant", "content": g.text(), "refusal": nil},
			"finish_reason": g.finish("stop", "length")})
	}
	doc := map[string]any{"id": c.id("chatcmpl-"), "object": "chat.completion",
		"created": c.now.Unix(), "model": g.model, "choices": choices, "usage": g.usage(q.N),
		"service_tier": g.tier}
	if c.fault == "no-usage" {
		delete(doc, "usage")
	}
	c.json(http.StatusOK, doc)
}

// finish is why the model ended.
func (g generation) finish(end, stopped string) string {
	if g.stopped {
		return stopped
	}
	return end
}

func (c *call) chatStream(q openAIRequest, g generation) {
	pieces := g.pieces()
	usage := q.StreamOptions.IncludeUsage
	out := c.stream(len(pieces) * int(q.N))
	chunk := func(choices []any, used any) bool {
		doc := map[string]any{"id": c.id("chatcmpl-"), "object": "chat.completion.chunk",
			"created": c.now.Unix(), "model": g.model, "choices": choices, "service_tier": g.tier}
		if usage {
			doc["usage"] = used
		}
		return out.event("", doc)
	}
	delta := func(i int64, delta map[string]any, finish any) bool {
		return chunk([]any{map[string]any{"index": i, "delta": delta, "logprobs": nil,
			"finish_reason": finish}}, nil)
	}
	for i := range q.N {
		if !delta(i, map[string]any{"role": "assistant", "content": "", "refusal": nil}, nil) {
			return
		}
		for _, text := range pieces {
			if !delta(i, map[string]any{"content": text}, nil) {
				return
			}
		}
		if !delta(i, map[string]any{}, g.finish("stop", "length")) {
			return
		}
	}
	if usage && c.fault != "no-usage" && !chunk([]any{}, g.usage(q.N)) {
		return
	}
	out.line("", "[DONE]")
}

func (c *call) embeddings() {
	var q openAIRequest
	if !c.openAI(&q, "input") {
		return
	}
	g := c.generate(0)
	g.output, g.searches = 0, 0
	if !c.admitOpenAI(g, 1) {
		return
	}
	doc := map[string]any{"object": "list", "model": g.model, "data": []any{map[string]any{
		"object": "embedding", "index": 0, "embedding": []float64{0.25, -0.5, 0.125}}},
		"usage": map[string]any{"prompt_tokens": g.input, "total_tokens": g.input}}
	if c.fault == "no-usage" {
		delete(doc, "usage")
	}
	c.json(http.StatusOK, doc)
}

// failOpenAI tells an error by its status.
func failOpenAI(c *call, status int, message string) {
	kind, code := "invalid_request_error", any(nil)
	switch {
	case status == http.StatusUnauthorized:
		code, message = "invalid_api_key", "Incorrect API key provided. You can find your API key "+
			"at https://platform.openai.com/account/api-keys."
	case status == http.StatusNotFound && c.model() == "" && len(c.body) > 0:
		code = "model_not_found"
	case status >= http.StatusInternalServerError:
		kind = "server_error"
	}
	c.openAIError(status, kind, code, message)
}

func (c *call) openAIError(status int, kind string, code any, message string) {
	c.json(status, map[string]any{"error": map[string]any{"message": message, "type": kind,
		"param": nil, "code": code}})
}

func denyOpenAI(c *call, d denial) {
	if d.bucket == money {
		c.openAIError(http.StatusTooManyRequests, "insufficient_quota",
			"organization_spend_limit_exceeded", "You exceeded your current quota, please check "+
				"your plan and billing details.")
		return
	}
	kind, short := "requests", "requests per min (RPM)"
	if d.bucket == part("tokens", c.model()) {
		kind, short = "tokens", "tokens per min (TPM)"
	}
	c.openAIHeaders(c.model())
	about := fmt.Sprintf("for %s in organization org-standin on %s: Limit %d", c.model(), short,
		d.limit.Units)
	if d.requested > d.limit.Units {
		c.openAIError(http.StatusTooManyRequests, kind, "rate_limit_exceeded", fmt.Sprintf(
			"Request too large %s, Requested %d. The input or output tokens must be reduced in "+
				"order to run successfully.", about, d.requested))
		return
	}
	wait := max(time.Millisecond, d.until.Sub(c.now))
	c.retryAfter(d.until)
	c.header("Retry-After-Ms", strconv.FormatInt(wait.Milliseconds(), 10))
	c.openAIError(http.StatusTooManyRequests, kind, "rate_limit_exceeded", fmt.Sprintf(
		"Rate limit reached %s, Used %d, Requested %d. Please try again in %s.", about, d.used,
		d.requested, inWords(wait)))
}
