package main

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
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
	*shell
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
	g := &killable{ledger: l, wire: newWire(t, server.Addr), arrives: func() {},
		halfway: func() {}}
	if answer == nil {
		answer = g.answer
	}
	upstream := httptest.NewServer(answer)
	t.Cleanup(upstream.CloseClientConnections)
	g.shell = newShell(t, "redis://"+g.wire.at+"/0", fmt.Sprintf(
		"upstreams: {%s: {endpoint: %s/}}\ncredentials:\n"+
			"  - {name: o1, upstream: %[1]s, api_key: {env: KEY}, limits: "+
			"[{bucket: money, units: 100000000000, window: 24h}]}\n", api, upstream.URL))
	g.env = append(g.env, "KEY=a-key-of-the-upstream")
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
	g.process = exec.CommandContext(g.Context(), "quotactl", "proxy", "--listen", "127.0.0.1:0")
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
