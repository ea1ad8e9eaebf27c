package ingest_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"path/filepath"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"quotabudget/internal/ledger"
	"quotabudget/internal/standin"
	"quotabudget/internal/youtube"
)

// bubble is a transport to the stand-in for use in a testing/synctest bubble, where a socket
// would keep time from passing. Its pages have three places.
type bubble struct {
	standin *standin.YouTube
	latency func(request string) time.Duration

	mu       sync.Mutex
	asked    []string         // one "US1" for each request
	answered int              // chart pages served
	arrived  func(number int) // called with the number of each request; may be nil
}

// inBubble runs a test at nine o'clock in a bubble. It creates the folder outside, where the
// cleanup can remove it.
func inBubble(t *testing.T, standin *standin.YouTube, most int64,
	test func(*testing.T, *env)) {
	t.Helper()
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		time.Sleep(time.Until(nine))
		ledger, err := ledger.OpenFile(t.Context(), filepath.Join(dir, "ledger.db"))
		must(t, err)
		s := &env{standin: standin, inside: &bubble{standin: standin}}
		ledger.Now = time.Now
		s.wireIn(t, dir, ledger, units(most))
		s.client.Retry = youtube.DefaultRetry()
		s.client.Retry.Transient = 3
		test(t, s)
	})
}

var pageOfThree = map[string]int{"": 1, "CAMQAA": 2, "CAYQAA": 3, "CAkQAA": 4}

// RoundTrip serves a request after the configured latency.
func (b *bubble) RoundTrip(r *http.Request) (resp *http.Response, err error) {
	if trace := httptrace.ContextClientTrace(r.Context()); trace != nil {
		trace.GotConn(httptrace.GotConnInfo{}) // counts as sent from here on
	}
	query := r.URL.Query()
	request := fmt.Sprintf("%s%d", query.Get("regionCode"), pageOfThree[query.Get("pageToken")])
	b.mu.Lock()
	b.asked = append(b.asked, request)
	number, arrived := len(b.asked), b.arrived
	b.mu.Unlock()
	if arrived != nil {
		arrived(number)
	}
	if b.latency != nil {
		time.Sleep(b.latency(request))
	}
	defer func() {
		if value := recover(); value == http.ErrAbortHandler {
			resp, err = nil, io.ErrUnexpectedEOF
		}
	}()
	query.Set("maxResults", "3")
	short := r.Clone(r.Context())
	short.URL.RawQuery = query.Encode()
	answer := httptest.NewRecorder()
	b.standin.ServeHTTP(answer, short)
	if err := r.Context().Err(); err != nil {
		return nil, errors.Join(err, errors.New("hung up"))
	}
	if answer.Code == http.StatusOK {
		b.mu.Lock()
		b.answered++
		b.mu.Unlock()
	}
	return answer.Result(), nil
}

// taken returns the requests since its last call.
func (b *bubble) taken() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	asked := b.asked
	b.asked = nil
	return asked
}
