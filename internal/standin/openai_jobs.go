package standin

import (
	"bufio"
	"encoding/json"
	"maps"
	"mime"
	"mime/multipart"
)

// upload is a file that was uploaded.
type upload struct {
	bytes   int64
	calls   []batchCall // one for each line
	invalid bool        // as the input of a batch
}

const uploadPattern = "POST /v1/files"

// upload serves POST /v1/files of OpenAI. It reads the body as it comes.
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

// epochs is how often fine-tuning reads its file, regardless of the request.
const epochs = 3

// tune serves POST /v1/fine_tuning/jobs of OpenAI. A job that was cancelled has read its file once.
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
