package standin

// responses serves POST /v1/responses of OpenAI.
func (c *call) responses() {
	var q openAIRequest
	if !c.readOpenAI(&q, "input") {
		return
	}
	g := c.generate(q.MaxOutputTokens)
	g.tier = q.ServiceTier
	if !q.Tools.search("web_search") {
		g.searches = 0
	}
	switch {
	case !c.admitOpenAI(g, 1):
	case q.Background:
		doc := c.response(g, "queued")
		c.addJob(doc["id"].(string), responseTime, job{calls: []batchCall{{generation: g}}})
		c.ok(doc)
	case q.Stream:
		c.responseStream(g)
	default:
		c.ok(c.response(g, g.finish("completed", "incomplete")))
	}
}

// response returns a response object.
func (c *call) response(g generation, status string) object {
	values := g.values()
	values["status"], values["incomplete"], values["items"] = status, nil, []any{}
	values["usage"] = nil
	if status == "in_progress" || status == "queued" {
		values["tier"] = "auto"
		return c.doc("response", values)
	}
	if g.stopped {
		values["incomplete"] = object{"reason": "max_output_tokens"}
	}
	items := []any{}
	for i := range g.searches {
		items = append(items, c.doc("web_search", object{"index": i}))
	}
	values["items"] = append(items, c.message(g.text(), status))
	if c.fault != "no-usage" {
		values["usage"] = c.doc("response_usage", values)
	}
	return c.doc("response", values)
}

func (c *call) message(text, status string) object {
	content := []any{}
	if text != "" {
		content = append(content, c.outputText(text))
	}
	return c.doc("message", object{"status": status, "content": content})
}

func (c *call) outputText(text string) object { return c.doc("text", object{"text": text}) }

func (c *call) responseStream(g generation) {
	pieces, text := g.pieces(), g.text()
	out, n := c.stream(len(pieces)), 0
	send := func(kind string, fields object) {
		fields["type"], fields["sequence_number"] = kind, n
		n++
		out.event(kind, fields)
	}
	inItem := func(kind string, fields object) {
		fields["item_id"], fields["output_index"], fields["content_index"] = c.id("msg_"), 0, 0
		send(kind, fields)
	}
	end := g.finish("completed", "incomplete")
	send("response.created", object{"response": c.response(g, "in_progress")})
	send("response.in_progress", object{"response": c.response(g, "in_progress")})
	send("response.output_item.added", object{"output_index": 0,
		"item": c.message("", "in_progress")})
	inItem("response.content_part.added", object{"part": c.outputText("")})
	for _, piece := range pieces {
		inItem("response.output_text.delta", object{"delta": piece, "logprobs": []any{}})
	}
	inItem("response.output_text.done", object{"text": text, "logprobs": []any{}})
	inItem("response.content_part.done", object{"part": c.outputText(text)})
	send("response.output_item.done", object{"output_index": 0, "item": c.message(text, end)})
	send("response."+end, object{"response": c.response(g, end)})
}
