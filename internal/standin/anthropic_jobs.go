package standin

import (
	"encoding/json"
	"net/http"
)

// messageBatch serves POST /v1/messages/batches.
func (c *call) messageBatch() {
	var q struct {
		Requests []struct {
			ID     string `json:"custom_id"`
			Params json.RawMessage
		}
	}
	if !c.parse(&q) {
		return
	}
	var calls []batchCall
	for _, r := range q.Requests {
		of, ok := c.part(r.ID, "/v1/messages", r.Params)
		if !ok {
			c.invalid("requests: params are not valid")
			return
		}
		calls = append(calls, of)
	}
	if len(calls) == 0 {
		c.invalid("requests: at least one is required")
		return
	}
	if c.admit(one("counting", 1)) {
		c.ok(c.messageBatchOf(c.addJob(c.id("msgbatch_"), batchLasts(calls),
			job{calls: calls})))
	}
}

// begunBatch serves a batch, its results and its cancellation.
func (c *call) begunBatch() {
	const prefix = "/v1/messages/batches/"
	j, action := c.job(prefix)
	switch {
	case j == nil:
	case action == "results" && c.now.Before(j.ends):
		c.fail(http.StatusNotFound, "No results are available yet.")
	case !c.admit(one("counting", 1)):
	case action == "results":
		c.batchLines(j.calls, func(i int, of batchCall) object {
			result := object{"type": j.unmade(i)}
			if j.unmade(i) == "" {
				usage := c.anthropicUsage(of.generation)
				usage["service_tier"] = "batch"
				result = object{"type": "succeeded",
					"message": object{"model": of.model, "usage": usage}}
			}
			return object{"custom_id": of.name, "result": result}
		})
	default:
		c.ok(c.messageBatchOf(j))
	}
}

// messageBatchOf returns a batch object.
func (c *call) messageBatchOf(j *job) object {
	ended := c.ended(j, func(done []batchCall) []cost {
		return []cost{c.batchMoney(done), one("batched", int64(len(j.calls)))}
	})
	doc := object{"id": j.id, "type": "message_batch", "processing_status": "in_progress",
		"request_counts": object{"processing": len(j.calls)}, "results_url": nil}
	if ended {
		doc["processing_status"] = "ended"
		counts := map[string]int{"": 0, "canceled": 0, "expired": 0}
		for i := range j.calls {
			counts[j.unmade(i)]++
		}
		doc["request_counts"] = object{"succeeded": counts[""], "canceled": counts["canceled"],
			"expired": counts["expired"]}
		doc["results_url"] = "https://api.anthropic.com/v1/messages/batches/" + j.id + "/results"
	}
	return doc
}
