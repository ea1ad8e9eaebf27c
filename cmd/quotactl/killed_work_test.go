package main

import (
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"quotabudget/internal/standin"
)

// worker is a proxy in its own process, in front of the stand-in of an API.
type worker struct {
	*killable
	name  string // of the API
	api   *standin.Server
	ahead atomic.Int64                                                // of the stand-in's clock
	sends atomic.Pointer[func(r *http.Request, response string) bool] // before a response is sent
}

func newWorker(t *testing.T, name string) *worker {
	t.Helper()
	api, err := standin.New(name)
	must(t, err)
	api.Prices = map[string]map[string]float64{
		"openai":    {"input": 0.25, "output": 2, "training": 1.5},
		"anthropic": {"input": 3, "output": 15},
	}[name]
	w := &worker{name: name, api: api}
	api.Now = func() time.Time { return time.Now().Add(time.Duration(w.ahead.Load())) }
	w.killable = newKillableBefore(t, name, func(out http.ResponseWriter, r *http.Request) {
		r.Header.Del("Accept-Encoding")
		recorded := httptest.NewRecorder()
		api.ServeHTTP(recorded, r)
		text := recorded.Body.String()
		if sends := w.sends.Load(); sends != nil && !(*sends)(r, text) {
			panic(http.ErrAbortHandler)
		}
		for name, values := range recorded.Header() {
			out.Header()[name] = values
		}
		out.WriteHeader(recorded.Code)
		io.WriteString(out, text)
	})
	w.start()
	return w
}

// post sends a request and returns the ID in its response.
func (w *worker) post(path, kind string, body io.Reader) string {
	w.Helper()
	r, err := http.NewRequestWithContext(w.Context(), "POST", w.address+w.name+"/v1/"+path, body)
	must(w.T, err)
	r.Header.Set("Content-Type", kind)
	r.Header.Set("Anthropic-Version", "2023-06-01")
	resp, err := http.DefaultClient.Do(r)
	must(w.T, err)
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	must(w.T, err)
	var doc struct{ ID string }
	if err := json.Unmarshal(text, &doc); err != nil || doc.ID == "" {
		w.Fatalf("%s %s", resp.Status, text)
	}
	return doc.ID
}

// upload uploads a file that write writes.
func (w *worker) upload(purpose string, write func(io.Writer)) string {
	w.Helper()
	body, in := io.Pipe()
	form := multipart.NewWriter(in)
	go func() {
		form.WriteField("purpose", purpose)
		file, _ := form.CreateFormFile("file", "lines.jsonl")
		write(file)
		form.Close()
		in.Close()
	}()
	return w.post("files", form.FormDataContentType(), body)
}

// restart kills the proxy with SIGKILL and starts another one.
func (w *worker) restart() {
	w.Helper()
	w.kill()
	w.wire.noRequests.Store(false)
	w.wire.noAnswers.Store(false)
	w.start()
}

// agrees waits until the ledger has the money that the stand-in billed, and holds nothing.
func (w *worker) agrees() {
	w.Helper()
	for deadline := time.Now().Add(time.Minute); ; {
		booked, held := w.standingOf("money")
		billed := w.api.Counts().Units["money"]
		if booked == billed && billed > 0 && held == 0 {
			return
		} else if time.Now().After(deadline) {
			w.Fatalf("%d booked and %d held, %d were billed", booked, held, billed)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

const batchLine = `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":` +
	`{"model":"gpt-5-mini","max_completion_tokens":50,"messages":[{"role":"user","content":"%s"}]}}` + "\n"

// beginOpenAI begins work of each kind, and kills the proxy after each request.
func (w *worker) beginOpenAI() {
	w.Helper()
	file := w.upload("batch", func(to io.Writer) { fmt.Fprintf(to, batchLine+batchLine, "a", "b") })
	w.restart()
	w.post("batches", "application/json", strings.NewReader(`{"input_file_id":"`+file+`"}`))
	w.restart()
	w.post("responses", "application/json", strings.NewReader(
		`{"model":"gpt-5-mini","input":"a","background":true,"max_output_tokens":50}`))
	w.restart()
	file = w.upload("fine-tune", func(to io.Writer) {
		io.WriteString(to, strings.Repeat(`{"messages":[]}`+"\n", 40))
	})
	w.restart()
	w.post("fine_tuning/jobs", "application/json", strings.NewReader(
		`{"training_file":"`+file+`","model":"gpt-4.1-nano"}`))
}

func (w *worker) beginAnthropic() {
	w.Helper()
	const request = `{"custom_id":"a","params":{"model":"claude-sonnet-4-5","max_tokens":50,` +
		`"messages":[{"role":"user","content":"a"}]}}`
	w.post("messages/batches", "application/json",
		strings.NewReader(`{"requests":[`+request+`,`+request+`]}`))
	w.restart()
}

// TestKilledWork kills a proxy after the upload, after each creation, and when it knows the end.
// Later ones settle the billed units once.
func TestKilledWork(t *testing.T) {
	stops := map[string]func(w *worker){
		"before the settlement": func(w *worker) { w.wire.noRequests.Store(true) },
		"settled, before the answer of the ledger": func(w *worker) {
			w.wire.noAnswers.Store(true)
		},
	}
	for name, work := range map[string]struct {
		api   string
		begin func(*worker)
		end   string // in the response after which the proxy is killed
	}{
		"openai":                          {"openai", (*worker).beginOpenAI, `"status":"completed"`},
		"anthropic, ended":                {"anthropic", (*worker).beginAnthropic, `"ended"`},
		"anthropic, results of the batch": {"anthropic", (*worker).beginAnthropic, `"type":"succeeded"`},
	} {
		for when, stop := range stops {
			t.Run(name+"/"+when, func(t *testing.T) {
				t.Parallel()
				w := newWorker(t, work.api)
				work.begin(w)
				if booked, held := w.standingOf("money"); booked != 0 || held == 0 {
					t.Errorf("%d booked and %d held before the end", booked, held)
				}
				ended := make(chan bool, 10)
				sends := func(r *http.Request, response string) bool {
					if strings.Contains(response, work.end) && len(ended) == 0 {
						stop(w)
						ended <- true
					}
					return true
				}
				w.sends.Store(&sends)
				w.ahead.Store(int64(time.Hour))
				<-ended // by the proxy's own request
				<-w.wire.heldBack
				w.restart()
				w.agrees()
				w.kill()
			})
		}
	}
}

// TestLostCreation: if the ID of created work is lost, the maximum is held.
func TestLostCreation(t *testing.T) {
	t.Parallel()
	w := newWorker(t, "openai")
	file := w.upload("batch", func(to io.Writer) { fmt.Fprintf(to, batchLine, "a") })
	reached := make(chan bool)
	sends := func(*http.Request, string) bool { reached <- true; <-t.Context().Done(); return false }
	w.sends.Store(&sends)
	go http.Post(w.address+"openai/v1/batches", "application/json",
		strings.NewReader(`{"input_file_id":"`+file+`"}`))
	<-reached
	w.restart()
	if booked, held := w.standingOf("money"); booked != 0 || held == 0 {
		t.Errorf("%d booked and %d held", booked, held)
	}
	w.kill()
}

// peak returns the proxy's peak memory usage in kB.
func (w *worker) peak() int {
	w.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.process.Process.Pid))
	must(w.T, err)
	_, value, _ := strings.Cut(string(status), "VmHWM:")
	kilobytes, err := strconv.Atoi(strings.Fields(value)[0])
	must(w.T, err)
	return kilobytes
}

// TestHugeFile: the proxy does not keep a file of 100 MB in memory.
func TestHugeFile(t *testing.T) {
	t.Parallel()
	w := newWorker(t, "openai")
	const lines, length = 1000, 100_000 // bytes
	before := w.peak()
	file := w.upload("batch", func(to io.Writer) {
		long := strings.Repeat("word ", length/5)
		for range lines {
			fmt.Fprintf(to, batchLine, long)
		}
	})
	if more := w.peak() - before; more > lines*length/1024 {
		t.Errorf("the file took %d kB of the proxy's memory", more)
	}
	w.post("batches", "application/json", strings.NewReader(`{"input_file_id":"`+file+`"}`))
	// the prompt has at most one token per byte, at 0.25 millionths of a dollar, and half of that
	if _, held := w.standingOf("money"); held < lines*length/8 || held > lines*length/4 {
		t.Errorf("%d held", held)
	}
	w.kill()
}
