package standin

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"net/http"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// modelAPI returns an API that bills the calls that match a pattern as openai does. GET requests
// are free.
func modelAPI(pattern string, serve func(*call)) api {
	return api{bucket: (*call).modelBucket, routes: []route{{pattern, serve, ""},
		{"GET /api/v1/key", (*call).keySpending, ""}, {"GET .*", freeDocument("free"), ""}}}
}

// freeDocument returns a handler that sends a document and bills nothing.
func freeDocument(name string) func(*call) {
	return func(c *call) {
		c.free()
		c.ok(c.doc(name, nil))
	}
}

// modelRequest has the fields of requests to models, of all APIs, that the stand-ins use.
type modelRequest struct {
	Model               string `json:"model"`
	Messages            []any  `json:"messages"`
	Input               any    `json:"input"`
	MaxTokens           int64  `json:"max_tokens"`
	MaxCompletionTokens int64  `json:"max_completion_tokens"`
	MaxOutputTokens     int64  `json:"max_output_tokens"`
	GenerationConfig    struct{ MaxOutputTokens int64 }
	InferenceConfig     struct{ MaxTokens int64 }
	N                   int64  `json:"n"`
	Stream              bool   `json:"stream"`
	Background          bool   `json:"background"`
	ServiceTier         string `json:"service_tier"`
	Tools               []struct {
		Type string `json:"type"`
	} `json:"tools"`
	StreamOptions struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`

	InputFile    string     `json:"input_file_id"` // of an OpenAI batch
	TrainingFile string     `json:"training_file"`
	Requests     []struct { // of an Anthropic batch
		ID     string `json:"custom_id"`
		Params json.RawMessage
	}
}

// allowed returns the maximum number of output tokens in the request, or 0 if it has none.
func (q *modelRequest) allowed() int64 {
	return cmp.Or(q.MaxCompletionTokens, q.MaxTokens, q.MaxOutputTokens,
		q.GenerationConfig.MaxOutputTokens, q.InferenceConfig.MaxTokens)
}

// request parses the body as a request to a model. It returns the zero request for a body that is
// not JSON.
func (c *call) request() *modelRequest {
	if c.asked == nil {
		c.asked = &modelRequest{}
		_ = json.Unmarshal(c.body, c.asked) // decodes the other fields even if one has the wrong type
	}
	return c.asked
}

const (
	maxOutput  = 1_000_000 // upper bound of a request's maximum number of output tokens
	maxChoices = 8
)

// readRequest generates a model's response to the request, which must have the field named by needs
// and allow at least least tokens of output. For any other request it sends an error and ends the
// handler.
func (c *call) readRequest(needs string, least int64) generation {
	c.parse(&modelRequest{})
	q, allowed, problem := c.request(), c.request().allowed(), ""
	switch {
	case q.Model == "":
		problem = "no model"
	case c.model() == "":
		problem = "unknown model"
	case allowed < least || allowed > maxOutput || q.N > maxChoices:
		problem = "too many tokens"
	case needs == "messages" && len(q.Messages) == 0, needs == "input" && q.Input == nil:
		problem = "no " + needs
	default:
		return c.generate()
	}
	c.fail(problem, object{"asked": q.Model, "allowed": allowed})
	return generation{} // not reached
}

// generation is a model's response to a request. It depends on the request alone:
//
//	input   a token for every 4 bytes of the body, rounded up
//	output  1 to 256, from a hash of the body, and never more than the request allows
//
// Markers anywhere in the text of a request set exact numbers: [[output:250]] for 250 tokens of
// output, [[cached:100]] for 100 tokens of input read from a cache, [[written:50]] for 50 written
// to it, [[search:2]] for two web searches, if the API has them, and [[reasoning:40]] for 40 hidden
// tokens of output. With [[expires:1]], the batch of the call expires before it.
type generation struct {
	model           string
	input           int64 // including cached and written
	cached, written int64 // read from and written to the cache
	output          int64 // of each choice, including reasoning
	reasoning       int64 // hidden output
	choices         int64
	searches        int64
	tier            string // of processing
	stopped         bool   // the output has the maximum length
	seed            uint64
	allowed         int64 // maximum output; 0 for none
	expires         bool
}

var (
	modelName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)
	marker    = regexp.MustCompile(
		`\[\[(output|cached|written|search|reasoning|expires):(\d{1,7})\]\]`)
)

// model returns the name of the model in the path or the body, or "".
func (c *call) model() string {
	if strings.Contains(c.route.pattern, "{model}") {
		return c.match[1]
	}
	name := c.request().Model
	vendor, model, ok := strings.Cut(name, "/")
	if ok && c.s.name == "openrouter" && modelName.MatchString(vendor) &&
		modelName.MatchString(model) || modelName.MatchString(name) {
		return name
	}
	return ""
}

// part returns the part of a bucket for a model, or "" without a model.
func part(bucket, model string) string {
	if model == "" {
		return ""
	}
	return bucket + "/" + model
}

// modelBucket returns the part of the bucket for the request's model, or the bucket if all models
// share it. Anthropic has a part for each class of models.
func (c *call) modelBucket(bucket string) string {
	switch model := c.model(); {
	case bucket == c.s.api.Undivided || bucket == money:
		return bucket
	case c.s.name == "anthropic":
		return part(bucket, class(model))
	default:
		return part(bucket, strings.ReplaceAll(model, "/", "-"))
	}
}

// generate returns a model's output for the request.
func (c *call) generate() generation {
	q := c.request()
	g := generation{model: c.model(), seed: c.hash(), allowed: q.allowed(), tier: q.ServiceTier,
		input: (int64(len(c.body)) + 3) / 4, choices: max(1, q.N)}
	if g.tier == "" || g.tier == "auto" {
		g.tier = "default"
	}
	marked := map[string]int64{}
	for _, m := range marker.FindAllSubmatch(c.body, -1) {
		marked[string(m[1])], _ = strconv.ParseInt(string(m[2]), 10, 64)
	}
	g.output = cmp.Or(marked["output"], int64(1+g.seed%256))
	if g.allowed > 0 && g.output >= g.allowed {
		g.output, g.stopped = g.allowed, true
	}
	g.cached = min(marked["cached"], g.input)
	g.written = min(marked["written"], g.input-g.cached)
	g.reasoning = min(marked["reasoning"], g.output)
	g.expires = marked["expires"] > 0
	for _, tool := range q.Tools {
		if strings.HasPrefix(tool.Type, "web_search") {
			g.searches = marked["search"]
		}
	}
	return g
}

// fresh returns the input that was not read from a cache.
func (g generation) fresh() int64 { return g.input - g.cached }

// money returns the price of the generation.
func (c *call) money(g generation) float64 {
	tokens := c.price("input", g.fresh()-g.written) + c.price("written", g.written) +
		c.price("cached", g.cached) + c.price("output", g.choices*g.output)
	switch g.tier {
	case "flex":
		tokens /= 2
	case "priority":
		tokens *= 2
	}
	return tokens + c.price("search", g.searches)
}

// admitGeneration bills a generation. Until the response ends, it holds the maximum output of the
// request.
func (c *call) admitGeneration(g generation) {
	output, maximum := g.choices*g.output, g.choices*max(g.allowed, g.output)
	input := g.input
	if c.s.name == "anthropic" && class(g.model) != "haiku-3.5" {
		input = g.fresh() // cached reads count for older models only
	}
	var costs []cost
	for _, item := range []cost{one("requests", 1),
		{"tokens", g.input + output, g.input + maximum, false},
		one("input", input), {"output", output, maximum, false}, paid(c.money(g))} {
		if _, ok := c.s.api.Limits[item.bucket]; ok {
			item.bucket = c.bucket(item.bucket)
			costs = append(costs, item)
		}
	}
	c.admit(costs...)
	for name, amount := range map[string]float64{money: c.money(g),
		"uncached_input_tokens":     float64(g.fresh() - g.written),
		"ephemeral_5m_input_tokens": float64(g.written),
		"cache_read_input_tokens":   float64(g.cached), "output_tokens": float64(output)} {
		c.s.Use(c.now.UTC().Format(time.DateOnly), g.model, name, amount)
	}
}

// generationValues returns the values of a generation for documents.
func (c *call) generationValues(g generation) object {
	finish, output := c.s.api.Finish[0], g.choices*g.output
	if g.stopped {
		finish = c.s.api.Finish[1]
	}
	values := object{"model": g.model, "input": g.input, "cached": g.cached, "written": g.written,
		"uncached": g.fresh() - g.written, "output": output, "reasoning": g.reasoning,
		"shown": output - g.reasoning, "total": g.input + output, "tier": g.tier,
		"text": strings.Join(g.pieces(), ""), "finish": finish, "cost": c.money(g) / 1e6,
		"searched": nil}
	if g.searches > 0 {
		values["searched"] = object{"web_search_requests": g.searches}
	}
	return values
}

var wordList = strings.Fields("the quota of a month is spent by those who wake first and count " +
	"last so keep some of it for the others when you plan a night of work")

// maxPieces bounds the events of a stream.
const maxPieces = 256

// pieces returns the text of the response, one word per token, split for the events of a stream.
func (g generation) pieces() []string {
	n := min(g.output, maxPieces)
	all := make([]string, 0, n)
	for i := range n {
		var b strings.Builder
		for token := g.output * i / n; token < g.output*(i+1)/n; token++ {
			b.WriteString(wordList[(g.seed+uint64(token))%uint64(len(wordList))] + " ")
		}
		all = append(all, b.String())
	}
	return all
}

// generateContent serves a call of Gemini, or of Converse of Bedrock.
func (c *call) generateContent() {
	c.parse(&modelRequest{})
	g := c.generate()
	c.admitGeneration(g)
	values := c.generationValues(g)
	if !strings.HasSuffix(c.r.URL.Path, ":streamGenerateContent") {
		c.ok(c.doc("reply", values))
		return
	}
	out := stream{call: c}
	out.events("reply", g, values)
	if c.r.URL.Query().Get("alt") == "sse" {
		out.send()
		return
	}
	var list []json.RawMessage // without alt=sse, the events are an array
	for _, event := range out.parts {
		list = append(list, bytes.TrimPrefix(event, []byte("data: ")))
	}
	c.ok(list)
}

// stream collects the events of a response.
type stream struct {
	*call
	parts    [][]byte
	template object // members that every event has
}

// send sends the events.
func (s *stream) send() {
	s.header("Content-Type", "text/event-stream; charset=utf-8")
	s.header("Cache-Control", "no-cache")
	s.w.WriteHeader(http.StatusOK)
	s.write(s.parts, s.s.Pace, ": still there\n\n")
}

// sendStream sends a stream of the spec.
func (c *call) sendStream(name string, g generation, values object) {
	out := stream{call: c}
	out.events(name, g, values)
	out.send()
}

// events adds the spec's events for a stream. It repeats an event with Each for each piece of the
// text.
func (s *stream) events(name string, g generation, values object) {
	for _, e := range s.s.api.Streams[name] {
		pieces := []string{""}
		if e.Each {
			pieces = g.pieces()
		}
		for _, piece := range pieces {
			values["piece"], values["number"] = piece, len(s.parts)
			s.event(s.expand(e.Name, values), s.fill(e.Data, values).(object))
		}
	}
}

// event adds an event. name may be "".
func (s *stream) event(name string, doc object) {
	all := maps.Clone(doc)
	maps.Copy(all, s.template)
	line := ""
	if name != "" {
		all["type"], line = name, "event: "+name+"\n"
	}
	text, _ := json.Marshal(all) // our own types cannot fail
	s.parts = append(s.parts, []byte(line+"data: "+string(text)+"\n\n"))
}
