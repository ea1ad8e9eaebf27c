package standin

import (
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// job is work that goes on after the response: a background response, a batch or fine-tuning. It
// ends after a while by the account's clock.
type job struct {
	id      string
	created time.Time
	ends    time.Time
	calls   []batchCall
	partly  bool          // cancelled: the first half of the calls is done
	failed  bool          // the input file is not valid
	costs   func() []cost // billed once when the job has ended; nil if it was billed before
	doc     func(c *call, ended bool) object
}

// batchCall is one call of a batch.
type batchCall struct {
	name, path string
	generation
}

const (
	responseTime = 10 * time.Second
	batchTime    = 10 * time.Minute
)

// addJob stores a job.
func (c *call) addJob(j *job, lasts time.Duration) {
	defer c.s.locked()()
	j.created, j.ends = c.now, c.now.Add(lasts)
	c.s.jobs[j.id] = j
}

// startBatch stores a batch and sends it. A batch with a call that expires lasts a day.
func (c *call) startBatch(j *job) {
	lasts := batchTime
	if slices.ContainsFunc(j.calls, func(member batchCall) bool { return member.expires }) {
		lasts = 24 * time.Hour
	}
	c.free()
	c.addJob(j, lasts)
	c.ok(j.doc(c, false))
}

// job returns a job, or sends 404 and ends the handler.
func (c *call) job(id string) *job {
	return lookUp(c, c.s.jobs, id, "no object", object{"object": id})
}

// lookUp returns the value with an ID. If there is none, it sends the problem and ends the handler.
func lookUp[T any](c *call, all map[string]*T, id, problem string, values object) *T {
	unlock := c.s.locked()
	found := all[id]
	unlock()
	if found == nil {
		c.fail(problem, values)
	}
	return found
}

// showJob sends the state of a job, or cancels it. It bills a job that has ended.
func (c *call) showJob() {
	j := c.job(c.match[1])
	c.free()
	unlock := c.s.locked()
	if c.match[2] != "" && c.now.Before(j.ends) {
		j.partly, j.ends = true, c.now
	}
	ended := !c.now.Before(j.ends)
	if ended && j.costs != nil {
		for _, item := range j.costs() {
			c.s.meter.bill(item.bucket, item.billed)
		}
		j.costs = nil
	}
	unlock()
	c.ok(j.doc(c, ended))
}

// omission returns why a call is not made before the job ends, or "".
func (j *job) omission(i int) string {
	switch {
	case j.failed, j.partly && i >= len(j.calls)/2:
		return "canceled"
	case j.calls[i].expires:
		return "expired"
	}
	return ""
}

// done returns the calls that the job has made when it ends.
func (j *job) done() (calls []batchCall) {
	for i, member := range j.calls {
		if j.omission(i) == "" {
			calls = append(calls, member)
		}
	}
	return calls
}

// state returns the job's state: running, completed, or the word for how it failed.
func (j *job) state(ended bool, running, completed string) string {
	switch {
	case !ended:
		return running
	case j.failed:
		return "failed"
	case j.partly:
		return "cancelled"
	case len(j.done()) < len(j.calls):
		return "expired"
	}
	return completed
}

// money returns half of what the calls of a batch cost. The caller holds the server's lock.
func (j *job) money(prices map[string]float64) cost {
	var sum float64
	for _, member := range j.done() {
		sum += prices["input"]*float64(member.fresh()) + prices["cached"]*float64(member.cached) +
			prices["output"]*float64(member.output)
	}
	return paid(sum / 2)
}

// part returns the call that a line of a batch is.
func (c *call) part(name, path string, body []byte) (batchCall, bool) {
	to, err := url.ParseRequestURI(path)
	if err != nil || json.Unmarshal(body, &modelRequest{}) != nil {
		return batchCall{}, false
	}
	g := (&call{s: c.s, r: &http.Request{URL: to}, body: body}).generate()
	g.searches, g.choices = 0, 1
	return batchCall{name, path, g}, g.model != ""
}

// lines sends a file of JSON lines.
func (c *call) lines(documents []object) {
	var text []byte
	for _, doc := range documents {
		line, _ := json.Marshal(doc) // our own types cannot fail
		text = append(append(text, line...), '\n')
	}
	c.header("Content-Type", "application/octet-stream")
	c.send(http.StatusOK, text)
}
