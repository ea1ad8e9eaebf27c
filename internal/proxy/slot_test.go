package proxy_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"quotabudget/internal/proxy"
)

// TestSlotOfCallerGone: a caller that disconnects before the response frees its slot at once,
// though the proxy may still read the response. It reads a bounded number of them; the holds of
// others stay.
func TestSlotOfCallerGone(t *testing.T) {
	t.Parallel()
	const reads = 2
	const usage = `{"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`
	var came, gone atomic.Int64
	answer := make(chan bool)
	m := openMetered(t, answering(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		came.Add(1)
		select {
		case <-answer:
			w.Header().Set("Content-Type", "application/json")
			io.WriteString(w, usage)
		case <-r.Context().Done():
			gone.Add(1)
		}
	}), func(m *metered) { m.openai.Drain.Calls, m.proxy.Limits.Requests = reads, 1 })
	for i := range int64(5) {
		verb, path, body := "POST", chatPath, chat(1, 1)
		if i == 0 {
			verb, path, body = "GET", "/openai/v1/models", "" // its price is known, nothing is read for it
		}
		ctx, leave := context.WithCancel(t.Context())
		left := make(chan error)
		go func() {
			_, err := m.send(ctx, verb, path, body, "Content-Type", "application/json")
			left <- err
		}()
		await(t, func() bool { return came.Load() == i+1 })
		leave()
		if err := <-left; err == nil {
			t.Errorf("%s was answered", path)
		}
		await(t, func() bool { return m.proxy.UnderWay() == 0 })
	}
	await(t, func() bool { return gone.Load() == 1+4-reads })
	close(answer)
	m.awaitSettled(t)
	booked, held := m.openai.booked(t)
	if booked["tokens/gpt-4.1"] != 3*reads || held < (4-reads)*400 {
		t.Errorf("%v are booked, %d held", booked, held)
	}
}

// TestEndsDuringStream ends a proxy while one caller reads a stream without end, one has left such
// a stream, and one waits for a response that never comes. It logs the outcome of each request, and
// how many holds lapse: each call counts once.
func TestEndsDuringStream(t *testing.T) {
	t.Parallel()
	var requests atomic.Int64
	hangs := make(chan struct{})
	m := openMetered(t, answering(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		if requests.Add(1) == 3 {
			close(hangs)
			<-r.Context().Done()
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		for r.Context().Err() == nil {
			io.WriteString(w, ": thinking\n\n")
			http.NewResponseController(w).Flush()
			time.Sleep(time.Millisecond)
		}
	}), func(m *metered) {
		// a quarter of it is for the handlers to log their outcomes on a busy machine
		m.proxy.Limits.Ending = 4 * time.Second
	})
	listener, err := proxy.Listen("127.0.0.1:0")
	must(t, err)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	served := make(chan error, 1)
	go func() { served <- m.proxy.Serve(ctx, listener) }()
	m.URL = "http://" + listener.Addr().String()
	for leaves := range 2 {
		resp, err := m.post(t.Context(), chatPath, chat(1, 9))
		must(t, err)
		defer resp.Body.Close()
		_, err = io.ReadFull(resp.Body, make([]byte, 1))
		must(t, err)
		if leaves == 1 {
			resp.Body.Close()
		}
	}
	ctx3, leave := context.WithCancel(t.Context())
	var waiting sync.WaitGroup
	defer waiting.Wait()
	defer leave()
	waiting.Go(func() {
		if resp, err := m.post(ctx3, chatPath, chat(1, 9)); err == nil {
			resp.Body.Close()
		}
	})
	<-hangs
	stop()
	must(t, <-served)
	log := m.log.String()
	for _, want := range []string{`outcome="broken off"`, "held.tokens/gpt-4.1=",
		"the proxy ends before the usage of all calls is booked", "calls=3"} {
		if !strings.Contains(log, want) {
			t.Errorf("no %s in the log: %s", want, log)
		}
	}
}
