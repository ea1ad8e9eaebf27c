package standin

import (
	"bufio"
	"encoding/json"
	"mime"
	"mime/multipart"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"
)

// job is work that goes on after the response: a background response, a batch or fine-tuning. It
// ends after a while by the account's clock.
type job struct {
	id      string
	created time.Time
	ends    time.Time
	calls   []batchCall
	input   *upload       // of a batch or of fine-tuning of OpenAI; or nil
	body    openAIRequest // of fine-tuning
	partly  bool          // cancelled: the first half of the calls is done
	failed  bool          // the input file is not valid
	billed  bool
}

// batchCall is one call of a batch.
type batchCall struct {
	name, path string
	generation
}

// upload is a file that was uploaded.
type upload struct {
	bytes, lines int64
	calls        []batchCall
	invalid      bool // as the input of a batch
}

const (
	responseTime = 10 * time.Second
	batchTime    = 10 * time.Minute
	maxJobs      = 1000
)

// addJob keeps a job under an ID.
func (c *call) addJob(id string, lasts time.Duration, j job) *job {
	defer c.s.locked()()
	if c.s.jobs == nil || len(c.s.jobs) >= maxJobs {
		c.s.jobs = map[string]*job{}
	}
	j.id, j.created, j.ends = id, c.now, c.now.Add(lasts)
	c.s.jobs[id] = &j
	return &j
}

// job returns the job that the path names after the prefix, and what follows its ID, or sends 404
// and returns nil. If it has ended, it is billed.
func (c *call) job(prefix string) (j *job, action string) {
	id, action, _ := strings.Cut(strings.TrimPrefix(c.r.URL.Path, prefix), "/")
	unlock := c.s.locked()
	j = c.s.jobs[id]
	if j != nil && action == "cancel" && c.now.Before(j.ends) {
		j.partly, j.ends = true, c.now
	}
	unlock()
	if j == nil {
		c.fail(http.StatusNotFound, "No such object: %s", id)
		return nil, ""
	}
	return j, action
}

// ended reports whether the job has ended, and bills it then, once.
func (c *call) ended(j *job, costs func(done []batchCall) []cost) bool {
	defer c.s.locked()()
	if c.now.Before(j.ends) {
		return false
	}
	if !j.billed {
		j.billed = true
		for _, of := range costs(j.done()) {
			c.s.meter.bill(of.bucket, of.billed)
		}
	}
	return true
}

// batchLasts returns how long a batch of the calls lasts.
func batchLasts(calls []batchCall) time.Duration {
	if slices.ContainsFunc(calls, func(of batchCall) bool { return of.expires }) {
		return 24 * time.Hour
	}
	return batchTime
}

// unmade returns why the call is not made before the job ends, or "".
func (j *job) unmade(i int) string {
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
	for i, of := range j.calls {
		if j.unmade(i) == "" {
			calls = append(calls, of)
		}
	}
	return calls
}

// state returns how the job stands.
func (j *job) state(ended bool, words ...string) string {
	switch {
	case !ended:
		return words[0]
	case j.failed:
		return "failed"
	case j.partly:
		return "cancelled"
	case len(j.done()) < len(j.calls):
		return "expired"
	}
	return words[1]
}

// batchMoney returns the half of what the calls cost.
func (c *call) batchMoney(calls []batchCall) cost {
	var sum float64
	for _, of := range calls {
		tokens := c.s.Prices["input"]*float64(of.fresh()) + c.s.Prices["cached"]*float64(of.cached) +
			c.s.Prices["output"]*float64(of.output)
		sum += tokens / 2
	}
	return paid(sum)
}

// part returns the call that a line of a batch is.
func (c *call) part(name, path string, body []byte) (batchCall, bool) {
	to, err := url.ParseRequestURI(path)
	var q openAIRequest
	if err != nil || json.Unmarshal(body, &q) != nil {
		return batchCall{}, false
	}
	sub := &call{s: c.s, r: &http.Request{URL: to}, body: body}
	g := sub.generate(max(q.MaxTokens, q.MaxCompletionTokens, q.MaxOutputTokens))
	g.searches = 0
	return batchCall{name, path, g}, g.model != ""
}

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
			file.lines++
			file.bytes += int64(len(lines.Bytes())) + 1
			of := batchCall{}
			ok := json.Unmarshal(lines.Bytes(), &line) == nil
			if ok {
				of, ok = c.part(line.ID, line.URL, line.Body)
			}
			file.invalid = file.invalid || !ok
			file.calls = append(file.calls, of)
		}
	}
	if file.lines == 0 || purpose == "" {
		c.invalid("Missing required parameter: 'file' or 'purpose'.")
		return
	}
	id := c.id("file-")
	func() {
		defer c.s.locked()()
		if c.s.files == nil {
			c.s.files = map[string]*upload{}
		}
		c.s.files[id] = &file
	}()
	c.free("file", object{"file": id, "bytes": file.bytes, "purpose": purpose})
}

// file returns an uploaded file, or sends 404 and returns nil.
func (c *call) file(id string) *upload {
	defer c.s.locked()()
	return c.s.files[id]
}

// batchLines sends a file of JSON lines.
func (c *call) batchLines(calls []batchCall, line func(i int, of batchCall) object) {
	var text []byte
	for i, of := range calls {
		one, _ := json.Marshal(line(i, of))
		text = append(append(text, one...), '\n')
	}
	c.header("Content-Type", "application/octet-stream")
	c.send(http.StatusOK, text)
}
