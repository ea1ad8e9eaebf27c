package standin

import (
	"cmp"
	"encoding/json"
	"regexp"
	"strconv"
	"strings"
)

// generation is what a model makes of a request. It depends on the request alone:
//
//	input   a token for every 4 bytes of the body, rounded up
//	output  1 to 256, from a hash of the body, and never more than the request allows
//
// A request can ask for more exactly, anywhere in its text: [[output:250]] is an answer of 250
// tokens, [[cached:100]] says that 100 of the input were read from a cache, [[written:50]] that 50
// of it were written to one, [[search:2]] that it searched the web twice, if the API can,
// [[reasoning:40]] that 40 tokens of the output are not shown, and [[expires:1]] that its batch
// expires before it.
type generation struct {
	model           string
	input           int64 // all of it
	cached, written int64 // parts of input
	output          int64
	reasoning       int64 // part of output
	searches        int64
	tier            string // of processing
	stopped         bool   // at the output that the request allows
	seed            uint64
	allowed         int64 // output that the request allows; 0 for no bound
	expires         bool
}

var (
	modelName = regexp.MustCompile(`^[a-z0-9][a-z0-9._-]{0,62}$`)
	marker    = regexp.MustCompile(`\[\[(output|cached|written|search|reasoning|expires):(\d{1,7})\]\]`)
)

// model returns the name of the model in the body, or "".
func (c *call) model() string {
	var named struct {
		Model string `json:"model"`
	}
	if json.Unmarshal(c.body, &named) != nil {
		return ""
	}
	if vendor, model, ok := strings.Cut(named.Model, "/"); ok && c.s.name == "openrouter" &&
		modelName.MatchString(vendor) && modelName.MatchString(model) {
		return named.Model
	}
	if !modelName.MatchString(named.Model) {
		return ""
	}
	return named.Model
}

// generate returns a model's output for the request.
func (c *call) generate(allowed int64) generation {
	g := generation{model: c.model(), seed: c.hash(), allowed: allowed,
		input: (int64(len(c.body)) + 3) / 4}
	marked := map[string]int64{}
	for _, m := range marker.FindAllSubmatch(c.body, -1) {
		marked[string(m[1])], _ = strconv.ParseInt(string(m[2]), 10, 64)
	}
	g.output = cmp.Or(marked["output"], int64(1+g.seed%256))
	if allowed > 0 && g.output >= allowed {
		g.output, g.stopped = allowed, true
	}
	g.cached = min(marked["cached"], g.input)
	g.written = min(marked["written"], g.input-g.cached)
	g.searches, g.reasoning = marked["search"], min(marked["reasoning"], g.output)
	g.expires = marked["expires"] > 0
	return g
}

// fresh returns the input that was not read from a cache.
func (g generation) fresh() int64 { return g.input - g.cached }

// money returns the price of the generation.
func (c *call) money(g generation) float64 {
	tokens := c.price("input", g.fresh()-g.written) + c.price("written", g.written) +
		c.price("cached", g.cached) + c.price("output", g.output)
	switch g.tier {
	case "flex":
		tokens /= 2
	case "priority":
		tokens *= 2
	}
	return tokens + c.price("search", g.searches)
}

var wordList = strings.Fields("the quota of a month is spent by those who wake first and count " +
	"last so keep some of it for the others when you plan a night of work")

// maxPieces bounds the events of a stream.
const maxPieces = 256

// pieces returns the text of the response, one word per token, in the pieces that a stream sends.
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

func (g generation) text() string { return strings.Join(g.pieces(), "") }

// tools are the tools that a model may call.
type tools []struct {
	Type string `json:"type"`
}

// search reports whether there is a tool whose type has the prefix.
func (t tools) search(prefix string) bool {
	for _, tool := range t {
		if strings.HasPrefix(tool.Type, prefix) {
			return true
		}
	}
	return false
}

// values returns what documents may report.
func (g generation) values() object {
	return object{"model": g.model, "input": g.input, "cached": g.cached, "written": g.written,
		"uncached": g.fresh() - g.written, "output": g.output, "reasoning": g.reasoning,
		"shown": g.output - g.reasoning, "total": g.input + g.output, "tier": g.tier}
}

// finish returns why the model ended.
func (g generation) finish(end, stopped string) string {
	if g.stopped {
		return stopped
	}
	return end
}
