package standin

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
)

// responses answers POST /v1/responses of OpenAI.
func (c *call) responses() {
	var q openAIRequest
	if !c.openAI(&q, "input") {
		return
	}
	g := c.generate(q.MaxOutputTokens)
	g.tier = q.tier()
	if !slices.ContainsFunc(q.Tools, func(t tool) bool { return t.Type == "web_search" }) {
		g.searches = 0
	}
	if !c.admitOpenAI(g, 1) {
		return
	}
	if q.Background {
		doc := c.response(g, "queued")
		c.keepBegun(doc["id"].(string), g)
		c.json(http.StatusOK, doc)
		return
	}
	if !q.Stream {
		c.json(http.StatusOK, c.response(g, g.finish("completed", "incomplete")))
		return
	}
	c.responseStream(g)
}

// maxBegun bounds the background responses.
const maxBegun = 1000

func (c *call) keepBegun(id string, g generation) {
	defer c.s.locked()()
	if c.s.begun == nil || len(c.s.begun) >= maxBegun {
		c.s.begun = map[string]generation{}
	}
	c.s.begun[id] = g
}

// begunResponse answers GET /v1/responses/{id}: a background response is in progress at the first
// request, and ended at the second.
func (c *call) begunResponse() {
	id := strings.TrimPrefix(c.r.URL.Path, "/v1/responses/")
	unlock := c.s.locked()
	g, ok := c.s.begun[id]
	asked := g.asked
	g.asked = true
	if ok {
		c.s.begun[id] = g
	}
	unlock()
	if !ok {
		c.fail(http.StatusNotFound, "Response with id '%s' not found.", id)
		return
	}
	status := "in_progress"
	if asked {
		status = g.finish("completed", "incomplete")
	}
	if !c.admit(one("free", 1)) {
		return
	}
	doc := c.response(g, status)
	doc["id"] = id
	c.json(http.StatusOK, doc)
}

// response is the object of a response that is begun (in_progress) or ended.
func (c *call) response(g generation, status string) map[string]any {
	doc := map[string]any{"id": c.id("resp_"), "object": "response", "status": status,
		"created_at": c.now.Unix(), "model": g.model, "error": nil, "incomplete_details": nil,
		"service_tier": "auto",
		"output":       []any{}, "usage": nil, "tools": []any{}, "tool_choice": "auto",
		"parallel_tool_calls": true, "instructions": nil, "metadata": map[string]any{},
		"temperature": 1, "top_p": 1}
	if status == "in_progress" || status == "queued" {
		return doc
	}
	if g.stopped {
		doc["incomplete_details"] = map[string]any{"reason": "max_output_tokens"}
	}
	doc["service_tier"], doc["output"] = g.tier,
		append(c.searches(g), c.message(g.text(), status))
	if c.fault != "no-usage" {
		doc["usage"] = map[string]any{"input_tokens": g.input, "output_tokens": g.output,
			"total_tokens":          g.input + g.output,
			"input_tokens_details":  map[string]any{"cached_tokens": g.cached},
			"output_tokens_details": map[string]any{"reasoning_tokens": g.reasoning}}
	}
	return doc
}

// searches are the calls of the tool, which come before the message.
func (c *call) searches(g generation) (items []any) {
	for i := range g.searches {
		items = append(items, map[string]any{"id": c.id("ws_") + strconv.FormatInt(i, 10),
			"type": "web_search_call", "status": "completed",
			"action": map[string]any{"type": "search", "query": "quota"}})
	}
	return items
}

func (c *call) message(text, status string) map[string]any {
	content := []any{}
	if text != "" {
		content = append(content, outputText(text))
	}
	return map[string]any{"id": c.id("msg_"), "type": "message", "status": status,
		"role": "assistant", "content": content}
}

func outputText(text string) map[string]any {
	return map[string]any{"type": "output_text", "text": text, "annotations": []any{},
		"logprobs": []any{}}
}

func (c *call) responseStream(g generation) {
	pieces, text := g.pieces(), g.text()
	out, n := c.stream(len(pieces)), 0
	send := func(kind string, fields map[string]any) bool {
		fields["type"], fields["sequence_number"] = kind, n
		n++
		return out.event(kind, fields)
	}
	inItem := func(kind string, fields map[string]any) bool {
		fields["item_id"], fields["output_index"] = c.id("msg_"), 0
		fields["content_index"] = 0
		return send(kind, fields)
	}
	type doc = map[string]any
	ok := send("response.created", doc{"response": c.response(g, "in_progress")}) &&
		send("response.in_progress", doc{"response": c.response(g, "in_progress")}) &&
		send("response.output_item.added", doc{"output_index": 0,
			"item": c.message("", "in_progress")}) &&
		inItem("response.content_part.added", doc{"part": outputText("")})
	for _, piece := range pieces {
		ok = ok && inItem("response.output_text.delta", doc{"delta": piece, "logprobs": []any{}})
	}
	end := g.finish("completed", "incomplete")
	_ = ok && inItem("response.output_text.done", doc{"text": text, "logprobs": []any{}}) &&
		inItem("response.content_part.done", doc{"part": outputText(text)}) &&
		send("response.output_item.done",
			doc{"output_index": 0, "item": c.message(text, end)}) &&
		send("response."+end, doc{"response": c.response(g, end)})
}
