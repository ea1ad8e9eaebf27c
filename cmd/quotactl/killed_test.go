package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
	"quotabudget/internal/standin"
)

// wire forwards to a server, and can hold back requests or responses.
type wire struct {
	at                    string
	noRequests, noAnswers atomic.Bool
	heldBack              chan bool // one value for each part held back
}

func newWire(t *testing.T, server string) *wire {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	t.Cleanup(func() { l.Close() })
	w := &wire{at: l.Addr().String(), heldBack: make(chan bool, 1000)}
	go func() {
		for {
			client, err := l.Accept()
			if err != nil {
				return
			}
			to, err := net.Dial("tcp", server)
			if err != nil {
				client.Close()
				continue
			}
			go w.pass(client, to, &w.noRequests)
			go w.pass(to, client, &w.noAnswers)
		}
	}()
	return w
}

func (w *wire) pass(from, to net.Conn, stopped *atomic.Bool) {
	defer to.Close()
	part := make([]byte, 64<<10)
	for {
		n, err := from.Read(part)
		if err != nil {
			return
		}
		if stopped.Load() {
			w.heldBack <- true
			continue
		}
		if _, err := to.Write(part[:n]); err != nil {
			return
		}
	}
}

// killable is a quotactl proxy in its own process, before an upstream that bills 5 tokens per call.
type killable struct {
	*testing.T
	env    []string
	ledger *ledger.Ledger
	wire   *wire
	billed atomic.Int64
	// called when the upstream has a request, before its response and in the middle of it
	arrives, halfway func()
	process          *exec.Cmd
	address          string
}

const killedBucket = "tokens/gpt-5-mini"

func newKillable(t *testing.T) *killable { return newKillableBefore(t, "openai", nil) }

// newKillableBefore returns a proxy in front of another upstream of an API.
func newKillableBefore(t *testing.T, api string, answer http.HandlerFunc) *killable {
	t.Helper()
	server := redistest.Start(t, redistest.Options{})
	l, err := ledger.Open(t.Context(), server.URL())
	must(t, err)
	t.Cleanup(func() { l.Close() })
	g := &killable{T: t, ledger: l, wire: newWire(t, server.Addr), arrives: func() {},
		halfway: func() {}}
	if answer == nil {
		answer = g.answer
	}
	upstream := httptest.NewServer(answer)
	t.Cleanup(upstream.CloseClientConnections)
	dir := t.TempDir()
	must(t, os.WriteFile(filepath.Join(dir, "quota.yaml"), []byte(fmt.Sprintf(
		"ledger: redis://%s/0\nupstreams: {%s: {endpoint: %s/}}\ncredentials:\n"+
			"  - {name: o1, upstream: %[2]s, api_key: {env: KEY}, limits: "+
			"[{bucket: money, units: 100000000000, window: 24h}]}\n",
		g.wire.at, api, upstream.URL)), 0o600))
	g.env = append(os.Environ(), "KEY=a-key-of-the-upstream", "QUOTA_STATE_DIR="+dir,
		"QUOTA_CONFIG="+filepath.Join(dir, "quota.yaml"))
	return g
}

func (g *killable) answer(w http.ResponseWriter, r *http.Request) {
	io.Copy(io.Discard, r.Body)
	g.billed.Add(5)
	g.arrives()
	const text = `{"usage":{"prompt_tokens":2,"completion_tokens":3,"total_tokens":5}}`
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", fmt.Sprint(len(text)))
	io.WriteString(w, text[:20])
	http.NewResponseController(w).Flush()
	g.halfway()
	io.WriteString(w, text[20:])
}

// start starts the proxy, which first posts the entries that an earlier one has left.
func (g *killable) start() {
	g.Helper()
	binary, err := exec.LookPath("quotactl")
	if err != nil {
		g.Fatal(err)
	}
	g.process = exec.CommandContext(g.Context(), binary, "proxy", "--listen", "127.0.0.1:0")
	g.process.Env = g.env
	g.process.Stderr = os.Stderr
	out, err := g.process.StdoutPipe()
	must(g.T, err)
	must(g.T, g.process.Start())
	line, err := bufio.NewReader(out).ReadString('\n')
	must(g.T, err)
	g.address = strings.TrimSpace(line)
}

// call sends a call of at most 50 tokens, without waiting for it.
func (g *killable) call() (ended chan bool) {
	ended = make(chan bool)
	go func() {
		defer close(ended)
		resp, err := http.Post(g.address+"openai/v1/chat/completions", "application/json",
			strings.NewReader(`{"model":"gpt-5-mini","max_completion_tokens":50,"messages":[]}`))
		if err == nil {
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
		}
	}()
	return ended
}

func (g *killable) kill() {
	g.Helper()
	must(g.T, g.process.Process.Kill())
	g.process.Wait()
}

// standing is the booked units of the ledger, and the most that it holds.
func (g *killable) standing() (booked, held int64) { return g.standingOf(killedBucket) }

func (g *killable) standingOf(bucket string) (booked, held int64) {
	g.Helper()
	entries, err := g.ledger.Entries(g.Context(), quota.Query{Credential: "o1", Bucket: bucket})
	must(g.T, err)
	for _, e := range entries {
		booked += e.Units
	}
	holds, err := g.ledger.Reservations(g.Context(), "o1", bucket)
	must(g.T, err)
	for _, h := range holds {
		held += max(h.Left, h.Most)
	}
	return booked, held
}

// TestKilledAtEachStep kills a proxy at each step of a held call. Once it has restarted, the ledger
// has the billed units. Before the response these are unknown: the hold stands, and lapses into the
// maximum of the call.
func TestKilledAtEachStep(t *testing.T) {
	for _, step := range []struct {
		name  string
		until func(g *killable, reached chan bool) // arranges for the kill
		holds bool                                 // the hold stands
	}{
		{"priced, before the hold", func(g *killable, reached chan bool) {
			g.wire.noRequests.Store(true)
			go func() { reached <- <-g.wire.heldBack }()
		}, false},
		{"held, before the answer of the ledger", func(g *killable, reached chan bool) {
			g.wire.noAnswers.Store(true)
			go func() { reached <- <-g.wire.heldBack }()
		}, true},
		{"sent", func(g *killable, reached chan bool) {
			g.arrives = func() { reached <- true; <-g.Context().Done() }
		}, true},
		{"answered in part", func(g *killable, reached chan bool) {
			g.halfway = func() { reached <- true; <-g.Context().Done() }
		}, true},
		{"answered, before the settlement", func(g *killable, reached chan bool) {
			g.halfway = func() {
				g.wire.noRequests.Store(true)
				go func() { reached <- <-g.wire.heldBack }()
			}
		}, false},
		{"settled, before the answer of the ledger", func(g *killable, reached chan bool) {
			g.halfway = func() {
				g.wire.noAnswers.Store(true)
				go func() { reached <- <-g.wire.heldBack }()
			}
		}, false},
		{"settled", nil, false},
	} {
		t.Run(step.name, func(t *testing.T) {
			t.Parallel()
			g := newKillable(t)
			g.start()
			<-g.call() // so that the connection exists, and the scripts are loaded
			for deadline := time.Now().Add(time.Minute); ; {
				if booked, _ := g.standing(); booked == 5 {
					break
				} else if time.Now().After(deadline) {
					t.Fatalf("%d of the first call are booked", booked)
				}
			}
			if step.until != nil {
				reached := make(chan bool, 1)
				step.until(g, reached)
				ended := g.call()
				<-reached
				defer func() { <-ended }()
			}
			g.kill()
			g.wire.noRequests.Store(false)
			g.wire.noAnswers.Store(false)
			g.start()
			booked, held := g.standing()
			billed := g.billed.Load()
			if step.holds {
				if booked != 5 || booked+held < billed {
					t.Errorf("%d booked and %d held, %d were billed", booked, held, billed)
				}
			} else if booked != billed || held != 0 {
				t.Errorf("%d booked and %d held, want %d booked", booked, held, billed)
			}
			g.kill()
		})
	}
}

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

// TestHugeFile: the proxy needs little memory for a file of 200 MB.
func TestHugeFile(t *testing.T) {
	t.Parallel()
	w := newWorker(t, "openai")
	const lines, length = 2000, 100_000 // bytes
	file := w.upload("batch", func(to io.Writer) {
		long := strings.Repeat("word ", length/5)
		for range lines {
			fmt.Fprintf(to, batchLine, long)
		}
	})
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", w.process.Process.Pid))
	must(t, err)
	_, most, _ := strings.Cut(string(status), "VmHWM:")
	kilobytes, err := strconv.Atoi(strings.Fields(most)[0])
	must(t, err)
	if kilobytes > 150_000 {
		t.Errorf("the proxy took %d kB", kilobytes)
	}
	w.post("batches", "application/json", strings.NewReader(`{"input_file_id":"`+file+`"}`))
	// the prompt has at most one token per byte, at 0.25 millionths of a dollar, and half of that
	if _, held := w.standingOf("money"); held < lines*length/8 || held > lines*length/4 {
		t.Errorf("%d held", held)
	}
	w.kill()
}
