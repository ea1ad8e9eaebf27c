package standin

import (
	"bufio"
	"encoding/json"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"time"
)

// job is work that continues after the response: a background response, a batch or fine-tuning.
type job struct {
	id      string
	created time.Time
	ends    time.Time
	calls   []batchCall
	partly  bool          // cancelled after the first half of the calls
	failed  bool          // the input file is not valid
	costs   func() []cost // billed when the job ends; nil once they are billed
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
	value := all[id]
	unlock()
	if value == nil {
		c.fail(problem, values)
	}
	return value
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

// state returns running, completed, or the name of the way in which the job failed.
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

// money returns the price of a batch: half that of its calls. The caller holds the server's lock.
func (j *job) money(prices map[string]float64) cost {
	var sum float64
	for _, member := range j.done() {
		sum += prices["input"]*float64(member.fresh()) + prices["cached"]*float64(member.cached) +
			prices["output"]*float64(member.output)
	}
	return paid(sum / 2)
}

// part returns the call in a line of a batch, or false if the line has none.
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

// upload is an uploaded file.
type upload struct {
	bytes   int64
	calls   []batchCall // one for each line
	invalid bool        // not valid as the input of a batch
}

const uploadPattern = "POST /v1/files"

// upload serves POST /v1/files of OpenAI. It reads the body as a stream.
func (c *call) upload() {
	_, params, _ := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
	parts := multipart.NewReader(c.r.Body, params["boundary"])
	var file upload
	purpose := ""
	for {
		part, err := parts.NextPart()
		if err != nil {
			break
		}
		if part.FileName() == "" {
			var text [32]byte
			n, _ := part.Read(text[:])
			purpose = string(text[:n])
			continue
		}
		lines := bufio.NewScanner(part)
		lines.Buffer(nil, 16<<20)
		for lines.Scan() {
			var line struct {
				ID   string `json:"custom_id"`
				URL  string
				Body json.RawMessage
			}
			member, ok := batchCall{}, json.Unmarshal(lines.Bytes(), &line) == nil
			if ok {
				member, ok = c.part(line.ID, line.URL, line.Body)
			}
			file.bytes += int64(len(lines.Bytes())) + 1
			file.invalid = file.invalid || !ok
			file.calls = append(file.calls, member)
		}
	}
	if file.bytes == 0 || purpose == "" {
		c.fail("no file", nil)
	}
	id := c.id("file-")
	unlock := c.s.locked()
	c.s.files[id] = &file
	unlock()
	c.free()
	c.ok(c.doc("file", object{"file": id, "bytes": file.bytes, "purpose": purpose}))
}

// file returns an uploaded file, or sends 400 and ends the handler.
func (c *call) file(id string) *upload {
	return lookUp(c, c.s.files, id, "wrong file", object{"file": id})
}

// createBatch serves POST /v1/batches of OpenAI.
func (c *call) createBatch() {
	input := c.file(c.request().InputFile)
	j := &job{id: c.id("batch_"), calls: input.calls, failed: input.invalid}
	j.costs = func() []cost {
		costs := []cost{j.money(c.s.Prices)}
		for _, member := range j.done() {
			costs = append(costs, one(part("batch_tokens", member.model), member.input))
		}
		return costs
	}
	j.doc = j.batch
	c.startBatch(j)
}

// batch returns a batch object of OpenAI.
func (j *job) batch(c *call, ended bool) object {
	sum, done := generation{choices: 1}, j.done()
	for _, member := range done {
		sum.input, sum.cached = sum.input+member.input, sum.cached+member.cached
		sum.output, sum.reasoning = sum.output+member.output, sum.reasoning+member.reasoning
		sum.model = member.model
	}
	values := c.generationValues(sum)
	maps.Copy(values, object{"batch": j.id, "status": j.state(ended, "in_progress", "completed"),
		"created": j.created.Unix(), "all": len(j.calls), "done": len(done),
		"failed": len(j.calls) - len(done), "output_file": nil})
	if !ended {
		return c.doc("batch_begun", values)
	}
	if len(done) > 0 {
		values["output_file"] = "file-out-" + j.id
	}
	return c.doc("batch", values)
}

// batchOutput serves the output file of a batch.
func (c *call) batchOutput() {
	j := c.job(c.match[1])
	if c.now.Before(j.ends) {
		c.fail("no object", object{"object": "file-out-" + j.id})
	}
	var lines []object
	for _, member := range j.done() {
		document := "batch_chat"
		if member.path == "/v1/responses" {
			document = "batch_response"
		}
		values := c.generationValues(member.generation)
		values["name"] = member.name
		lines = append(lines, c.doc(document, values))
	}
	c.free()
	c.lines(lines)
}

// epochs is how many times fine-tuning reads its file, regardless of the request.
const epochs = 3

// tune serves POST /v1/fine_tuning/jobs of OpenAI. A cancelled job has read its file once.
func (c *call) tune() {
	input, model := c.file(c.request().TrainingFile), c.model()
	if model == "" {
		c.fail("no model", nil)
	}
	c.free()
	j := &job{id: c.id("ftjob-")}
	trained := func() int64 {
		if j.partly {
			return input.bytes / 4
		}
		return input.bytes / 4 * epochs
	}
	j.costs = func() []cost {
		return []cost{paid(c.s.Prices["training"] * float64(trained()))}
	}
	j.doc = func(c *call, ended bool) object {
		values := object{"job": j.id, "model": model, "trained": nil,
			"status": j.state(ended, "running", "succeeded")}
		if ended {
			values["trained"] = trained()
		}
		return c.doc("tuning", values)
	}
	c.addJob(j, batchTime)
	c.ok(j.doc(c, false))
}
