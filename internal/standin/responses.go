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
	doc := object{"id": c.id("resp_"), "object": "response", "status": status,
		"created_at": c.now.Unix(), "model": g.model, "error": nil, "incomplete_details": nil,
		"service_tier": "auto", "output": []any{}, "usage": nil, "tools": []any{},
		"tool_choice": "auto", "parallel_tool_calls": true, "instructions": nil,
		"metadata": object{}, "temperature": 1, "top_p": 1}
	if status == "in_progress" || status == "queued" {
		return doc
	}
	if g.stopped {
		doc["incomplete_details"] = object{"reason": "max_output_tokens"}
	}
	output := []any{}
	for i := range g.searches {
		output = append(output, object{"id": c.id("ws_") + decimal(i), "type": "web_search_call",
			"status": "completed", "action": object{"type": "search", "query": "quota"}})
	}
	doc["service_tier"], doc["output"] = g.tier, append(output, c.message(g.text(), status))
	if c.fault != "no-usage" {
		doc["usage"] = g.responseUsage()
	}
	return doc
}

func (g generation) responseUsage() object {
	return object{"input_tokens": g.input, "output_tokens": g.output,
		"total_tokens":          g.input + g.output,
		"input_tokens_details":  object{"cached_tokens": g.cached},
		"output_tokens_details": object{"reasoning_tokens": g.reasoning}}
}

func (c *call) message(text, status string) object {
	content := []any{}
	if text != "" {
		content = append(content, outputText(text))
	}
	return object{"id": c.id("msg_"), "type": "message", "status": status, "role": "assistant",
		"content": content}
}

func outputText(text string) object {
	return object{"type": "output_text", "text": text, "annotations": []any{}, "logprobs": []any{}}
}

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
	inItem("response.content_part.added", object{"part": outputText("")})
	for _, piece := range pieces {
		inItem("response.output_text.delta", object{"delta": piece, "logprobs": []any{}})
	}
	inItem("response.output_text.done", object{"text": text, "logprobs": []any{}})
	inItem("response.content_part.done", object{"part": outputText(text)})
	send("response.output_item.done", object{"output_index": 0, "item": c.message(text, end)})
	send("response."+end, object{"response": c.response(g, end)})
}
