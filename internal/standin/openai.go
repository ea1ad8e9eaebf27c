package standin

import (
	"cmp"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// openai counts requests and tokens by model, and refuses a request that would not fit if the
// model wrote as much as the request allows. Refused requests count as requests.
var openai = api{
	limits: map[string][]Limit{
		"requests": {{Units: 500, Window: time.Minute}},
		"tokens":   {{Units: 200_000, Window: time.Minute}},
		money:      nil,
		"free":     nil,

		"batch_tokens": nil,
	},
	prices: map[string]float64{"input": 0, "cached": 0, "output": 0, "written": 0, "search": 0,
		"training": 0},
	refills: true,
	key:     bearer,
	serve:   serveOpenAI,
	fail:    failOpenAI,
	deny:    denyOpenAI,
	failed:  func(c *call) string { return c.bucketOf("requests", c.model()) },
	every:   true,
}

// part returns the bucket of a model, "" without a model.
func part(bucket, model string) string {
	if model == "" {
		return ""
	}
	return bucket + "/" + model
}

// bucketOf returns the bucket of a model, or the one that all models share.
func (c *call) bucketOf(bucket, model string) string {
	if bucket == c.s.api.undivided {
		return bucket
	}
	return part(bucket, strings.ReplaceAll(model, "/", "-"))
}

func serveOpenAI(c *call) {
	c.header("X-Request-Id", c.id("req_"))
	c.header("Openai-Organization", "org-standin")
	c.header("Openai-Version", "2020-10-01")
	switch route := c.r.Method + " " + c.r.URL.Path; route {
	case "GET /v1/models", "GET /v1/files", "POST /v1/moderations", "POST /v1/responses/input_tokens":
		if c.admit(one("free", 1)) {
			c.ok(object{"object": "list", "data": []any{object{"id": "gpt-standin",
				"object": "model", "created": 1700000000, "owned_by": "standin"}}})
		}
	case "POST /v1/chat/completions":
		c.chat()
	case "POST /v1/responses":
		c.responses()
	case "POST /v1/embeddings":
		c.embeddings()
	default:
		if !c.jobs(route) {
			c.fail(http.StatusNotFound, "Invalid URL (%s %s)", c.r.Method, c.r.URL.Path)
		}
	}
}

// openAIRequest is the part of a request that matters here.
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
	Tools               tools  `json:"tools"`
	StreamOptions       struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

// readOpenAI reads a request that needs a field, or sends 400 or 404 and returns false.
func (c *call) readOpenAI(q *openAIRequest, field string) bool {
	if !c.parse(q) {
		return false
	}
	q.N = max(1, q.N)
	if q.ServiceTier = cmp.Or(q.ServiceTier, "auto"); q.ServiceTier == "auto" {
		q.ServiceTier = "default"
	}
	most := max(q.MaxTokens, q.MaxCompletionTokens, q.MaxOutputTokens)
	switch has := len(q.Messages) > 0; {
	case q.Model == "":
		c.invalid("you must provide a model parameter")
	case c.model() == "":
		c.fail(http.StatusNotFound,
			"The model `%s` does not exist or you do not have access to it.", q.Model)
	case field == "messages" && !has, field == "input" && q.Input == nil:
		c.invalid("Missing required parameter: '%s'.", field)
	case most < 0 || most > maxOutput || q.N > 8:
		c.invalid("max_tokens is too large: %d.", most)
	default:
		return true
	}
	return false
}

// maxOutput is the most tokens that a request may allow a model to write.
const maxOutput = 1_000_000

// admitOpenAI bills a generation of n choices, and sets the headers.
func (c *call) admitOpenAI(g generation, n int64) bool {
	tokens := cost{bucket: c.bucketOf("tokens", g.model), billed: g.input + n*g.output,
		held: g.input + n*max(g.most, g.output)}
	g.output *= n
	ok := c.admit(one(c.bucketOf("requests", g.model), 1), tokens, paid(c.money(g)))
	if ok {
		c.record(g.model, money, c.money(g))
		c.openAIHeaders(g.model)
	}
	return ok
}

func (c *call) openAIHeaders(model string) {
	for _, bucket := range []string{"requests", "tokens"} {
		if g, ok := c.gauge(c.bucketOf(bucket, model), 0); ok {
			c.report("X-Ratelimit-Limit-"+bucket, decimal(g.limit),
				"X-Ratelimit-Remaining-"+bucket, c.left(g),
				"X-Ratelimit-Reset-"+bucket, inWords(g.reset.Sub(c.now)))
		}
	}
}

// inWords formats a duration as these headers do: 12ms, 7.66s, 6m0s.
func inWords(d time.Duration) string {
	if d < time.Second {
		return fmt.Sprintf("%dms", d.Milliseconds())
	}
	return d.Round(time.Millisecond).String()
}

// usage returns the tokens of n choices, or nil if the fault hides them.
func (c *call) usage(g generation, n int64) any {
	if c.fault == "no-usage" {
		return nil
	}
	out := n * g.output
	usage := object{"prompt_tokens": g.input, "completion_tokens": out, "total_tokens": g.input + out,
		"prompt_tokens_details":     object{"cached_tokens": g.cached, "audio_tokens": 0},
		"completion_tokens_details": object{"reasoning_tokens": g.reasoning, "audio_tokens": 0}}
	if c.s.name == "openrouter" {
		g.output = out
		usage["cost"] = c.money(g) / 1e6
	}
	return usage
}

func (c *call) chat() {
	var q openAIRequest
	if !c.readOpenAI(&q, "messages") {
		return
	}
	g := c.generate(cmp.Or(q.MaxCompletionTokens, q.MaxTokens))
	g.searches, g.tier = 0, q.ServiceTier
	if !c.admitOpenAI(g, q.N) {
		return
	}
	doc := object{"id": c.id("chatcmpl-"), "object": "chat.completion", "created": c.now.Unix(),
		"model": g.model, "service_tier": g.tier, "system_fingerprint": "fp_standin"}
	if q.Stream {
		c.chatStream(q, g, doc)
		return
	}
	var choices []any
	for i := range q.N {
		choices = append(choices, object{"index": i, "logprobs": nil,
			"message":       object{"role": "assistant", "content": g.text(), "refusal": nil},
			"finish_reason": g.finish("stop", "length")})
	}
	doc["choices"] = choices
	if usage := c.usage(g, q.N); usage != nil {
		doc["usage"] = usage
	}
	c.ok(doc)
}

// chatStream sends chunks, each with the members of doc.
func (c *call) chatStream(q openAIRequest, g generation, doc object) {
	pieces := g.pieces()
	out := c.stream(len(pieces) * int(q.N))
	doc["object"] = "chat.completion.chunk"
	if q.StreamOptions.IncludeUsage {
		doc["usage"] = nil
	}
	send := func(i int64, delta object, finish any) {
		doc["choices"] = []any{object{"index": i, "delta": delta, "logprobs": nil,
			"finish_reason": finish}}
		out.event("", doc)
	}
	for i := range q.N {
		send(i, object{"role": "assistant", "content": "", "refusal": nil}, nil)
		for _, text := range pieces {
			send(i, object{"content": text}, nil)
		}
		send(i, object{}, g.finish("stop", "length"))
	}
	if usage := c.usage(g, q.N); q.StreamOptions.IncludeUsage && usage != nil {
		doc["choices"], doc["usage"] = []any{}, usage
		out.event("", doc)
	}
	out.line("", "[DONE]")
}

func (c *call) embeddings() {
	var q openAIRequest
	if !c.readOpenAI(&q, "input") {
		return
	}
	g := c.generate(0)
	g.output, g.searches = 0, 0
	if !c.admitOpenAI(g, 1) {
		return
	}
	doc := object{"object": "list", "model": g.model, "data": []any{object{
		"object": "embedding", "index": 0, "embedding": []float64{0.25, -0.5, 0.125}}}}
	if c.fault != "no-usage" {
		doc["usage"] = object{"prompt_tokens": g.input, "total_tokens": g.input}
	}
	c.ok(doc)
}

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
	c.json(status, object{"error": object{"message": message, "type": kind, "param": nil,
		"code": code}})
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
	message := fmt.Sprintf("Request too large %s, Requested %d. The input or output tokens must "+
		"be reduced in order to run successfully.", about, d.requested)
	if d.requested <= d.limit.Units {
		wait := max(time.Millisecond, d.until.Sub(c.now))
		c.retryAfter(d.until)
		c.header("Retry-After-Ms", decimal(wait.Milliseconds()))
		message = fmt.Sprintf("Rate limit reached %s, Used %d, Requested %d. Please try again in "+
			"%s.", about, d.used, d.requested, inWords(wait))
	}
	c.openAIError(http.StatusTooManyRequests, kind, "rate_limit_exceeded", message)
}
