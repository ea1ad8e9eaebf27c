package standin

import (
	"net/http"
	"strings"
)

// jobs serves files, batches, fine-tuning and background responses. It returns false for other
// requests.
func (c *call) jobs(route string) bool {
	verb, path, _ := strings.Cut(route, " ")
	id, action, _ := strings.Cut(strings.TrimPrefix(path, "/v1/files/"), "/")
	switch {
	case route == "POST /v1/files":
		c.upload()
	case verb == "GET" && strings.HasPrefix(path, "/v1/files/") && action == "content":
		c.output(strings.TrimPrefix(id, "file-out-"))
	case route == "POST /v1/batches":
		c.createBatch()
	case strings.HasPrefix(path, "/v1/batches/"):
		if j, _ := c.job("/v1/batches/"); j != nil && c.admit(one("free", 1)) {
			c.ok(c.batch(j))
		}
	case route == "POST /v1/fine_tuning/jobs":
		c.tune()
	case strings.HasPrefix(path, "/v1/fine_tuning/jobs/"):
		if j, _ := c.job("/v1/fine_tuning/jobs/"); j != nil && c.admit(one("free", 1)) {
			c.ok(c.tuning(j))
		}
	case strings.HasPrefix(path, "/v1/responses/"):
		if j, _ := c.job("/v1/responses/"); j != nil && c.admit(one("free", 1)) {
			g := j.calls[0].generation
			done := g.finish("completed", "incomplete")
			doc := c.response(g, j.state(c.ended(j, noCosts), "in_progress", done))
			doc["id"] = j.id
			c.ok(doc)
		}
	default:
		return false
	}
	return true
}

// noCosts returns no costs, for a job that was billed when it began.
func noCosts([]batchCall) []cost { return nil }

func (c *call) createBatch() {
	var q struct {
		Input string `json:"input_file_id"`
	}
	if !c.parse(&q) {
		return
	}
	input := c.file(q.Input)
	if input == nil {
		c.invalid("Invalid file: %s", q.Input)
		return
	}
	if c.admit(one("free", 1)) {
		c.ok(c.batch(c.addJob(c.id("batch_"), batchLasts(input.calls),
			job{input: input, calls: input.calls, failed: input.invalid})))
	}
}

// batch returns a batch object.
func (c *call) batch(j *job) object {
	ended := c.ended(j, func(done []batchCall) []cost {
		costs := []cost{c.batchMoney(done)}
		for _, of := range done {
			costs = append(costs, one(part("batch_tokens", of.model), of.input))
		}
		return costs
	})
	doc := object{"id": j.id, "object": "batch", "status": j.state(ended, "in_progress", "completed"),
		"created_at": j.created.Unix(), "output_file_id": nil, "error_file_id": nil,
		"request_counts": object{"total": len(j.calls), "completed": 0, "failed": 0}}
	if !ended {
		return doc
	}
	var sum generation
	for _, of := range j.done() {
		sum.input, sum.cached = sum.input+of.input, sum.cached+of.cached
		sum.output, sum.reasoning = sum.output+of.output, sum.reasoning+of.reasoning
		doc["model"] = of.model
	}
	doc["request_counts"] = object{"total": len(j.calls), "completed": len(j.done()),
		"failed": len(j.calls) - len(j.done())}
	if len(j.done()) > 0 {
		doc["output_file_id"] = "file-out-" + j.id
	}
	if c.fault != "no-usage" {
		doc["usage"] = c.doc("response_usage", sum.values())
	}
	return doc
}

// output serves the output file of a batch.
func (c *call) output(id string) {
	unlock := c.s.locked()
	j := c.s.jobs[id]
	unlock()
	if j == nil || c.now.Before(j.ends) {
		c.fail(http.StatusNotFound, "No such File object: %s", id)
		return
	}
	if !c.admit(one("free", 1)) {
		return
	}
	c.batchLines(j.done(), func(_ int, of batchCall) object {
		usage := c.usage(of.generation, 1)
		if of.path == "/v1/responses" {
			usage = c.doc("response_usage", of.values())
		}
		return object{"custom_id": of.name, "error": nil, "response": object{"status_code": 200,
			"body": object{"model": of.model, "usage": usage}}}
	})
}

func (c *call) tune() {
	var q struct {
		Model, Training string
		File            string `json:"training_file"`
	}
	if !c.parse(&q) {
		return
	}
	input := c.file(q.File)
	if input == nil || c.model() == "" {
		c.invalid("invalid training_file or model")
		return
	}
	if c.admit(one("free", 1)) {
		c.ok(c.tuning(c.addJob(c.id("ftjob-"), batchTime, job{input: input,
			body: openAIRequest{Model: q.Model}})))
	}
}

// epochs is how often fine-tuning reads its file, regardless of the request.
const epochs = 3

// tuning returns a fine-tuning job. One that was cancelled has read its file once.
func (c *call) tuning(j *job) object {
	trained := j.input.bytes / 4 * epochs
	if j.partly {
		trained = j.input.bytes / 4
	}
	ended := c.ended(j, func([]batchCall) []cost {
		return []cost{paid(c.s.Prices["training"] * float64(trained))}
	})
	doc := object{"id": j.id, "object": "fine_tuning.job", "model": j.body.Model,
		"status": j.state(ended, "running", "succeeded"), "trained_tokens": nil}
	if ended {
		doc["trained_tokens"] = trained
	}
	return doc
}
