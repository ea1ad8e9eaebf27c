package standin

import (
	"cmp"
	"net/http"
	"strings"
)

// part returns the bucket of a model, "" without a model.
func part(bucket, model string) string {
	if model == "" {
		return ""
	}
	return bucket + "/" + model
}

// bucketOf returns the bucket of a model, or the one that all models share.
func (c *call) bucketOf(bucket, model string) string {
	if bucket == c.s.api.Undivided {
		return bucket
	}
	return part(bucket, strings.ReplaceAll(model, "/", "-"))
}

// modelBucket returns the bucket of the model that the body names.
func (c *call) modelBucket(name string) string { return c.bucketOf(name, c.model()) }

// serveOpenAI counts requests and tokens by model, and refuses a request that would not fit if the
// model wrote as much as the request allows. Refused requests count as requests.
func serveOpenAI(c *call) {
	switch route := c.r.Method + " " + c.r.URL.Path; route {
	case "GET /v1/models", "GET /v1/files", "POST /v1/moderations", "POST /v1/responses/input_tokens":
		c.free("models", nil)
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

// free answers a call that costs nothing.
func (c *call) free(document string, values object) {
	if c.admit(one("free", 1)) {
		c.ok(c.doc(document, values))
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
	allowed := max(q.MaxTokens, q.MaxCompletionTokens, q.MaxOutputTokens)
	switch has := len(q.Messages) > 0; {
	case q.Model == "":
		c.invalid("you must provide a model parameter")
	case c.model() == "":
		c.failWith(object{"code": "model_not_found"}, http.StatusNotFound,
			"The model `%s` does not exist or you do not have access to it.", q.Model)
	case field == "messages" && !has, field == "input" && q.Input == nil:
		c.invalid("Missing required parameter: '%s'.", field)
	case allowed < 0 || allowed > maxOutput || q.N > 8:
		c.invalid("max_tokens is too large: %d.", allowed)
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
		held: g.input + n*max(g.allowed, g.output)}
	g.output *= n
	ok := c.admit(one(c.bucketOf("requests", g.model), 1), tokens, paid(c.money(g)))
	if ok {
		c.record(g.model, money, c.money(g))
		c.report()
	}
	return ok
}

// usage returns the tokens of n choices, or nil if the fault hides them.
func (c *call) usage(g generation, n int64) any {
	if c.fault == "no-usage" {
		return nil
	}
	g.output *= n
	values := g.values()
	values["cost"] = c.money(g) / 1e6
	return c.doc("usage", values)
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
	values := g.values()
	values["choices"], values["usage"] = nil, c.usage(g, q.N)
	doc := c.doc("chat", values)
	if q.Stream {
		c.chatStream(q, g, doc)
		return
	}
	var choices []any
	for i := range q.N {
		choices = append(choices, c.doc("choice", object{"index": i, "text": g.text(),
			"finish": g.finish("stop", "length")}))
	}
	doc["choices"] = choices
	c.ok(doc)
}

// chatStream sends chunks, each with the members of doc.
func (c *call) chatStream(q openAIRequest, g generation, doc object) {
	pieces := g.pieces()
	out := c.stream(len(pieces) * int(q.N))
	doc["object"] = "chat.completion.chunk"
	delete(doc, "usage")
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
	c.ok(c.doc("embeddings", g.values()))
}
