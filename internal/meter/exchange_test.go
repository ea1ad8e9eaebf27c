package meter_test

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/ledger"
	"quotabudget/internal/meter"
	"quotabudget/internal/quota"
	"quotabudget/internal/standin"
)

// ways lists the streaming APIs, and the buckets in which the ledger must agree with them.
var ways = map[string]struct {
	ask     func(*metered, context.Context, int, bool) *http.Request
	buckets []string
}{
	"openai":    {(*metered).chat, []string{"requests", "tokens"}},
	"anthropic": {(*metered).message, []string{"requests", "input", "output"}},
}

// TestCancelledBeforeTheAnswer: a caller that gives up while the upstream thinks gets an error at
// once, and the upstream's bill is booked nevertheless.
func TestCancelledBeforeTheAnswer(t *testing.T) {
	for name, way := range ways {
		m := openMetered(t, name)
		ctx, cancel := context.WithCancel(t.Context())
		answer := make(chan bool)
		m.server.Config.Handler = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			cancel()
			<-answer
			m.standin.ServeHTTP(w, r)
		})
		if _, err := m.RoundTrip(way.ask(m, ctx, 50, false)); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		close(answer)
		m.agrees(t, way.buckets...)
	}
}

// TestAnswersThatDoNotTell: if a response breaks off or lacks the usage, the hold is booked at
// once. An error of the upstream costs only the request.
func TestAnswersThatDoNotTell(t *testing.T) {
	for _, c := range []struct {
		fault, told string
		output      int64
	}{
		{"cut", "", 200}, {"truncated", "the end of the answer", 200},
		{"no-usage", "usage.output_tokens", 200},
		{"bomb", "the answer is longer", 200},
		{"500", "", 0}, {"429", "", 0}, {"html", "", 0}, {"nonsense", "", 50}, {"minus-one", "", 50},
		{"stale", "", 50}, {"no-headers", "", 50},
	} {
		t.Run(c.fault, func(t *testing.T) {
			t.Parallel()
			m := openMetered(t, "anthropic", limitOn("output", 100_000))
			m.standin.Limits["output"] = []standin.Limit{{Units: 100_000, Window: time.Minute}}
			m.faults(t, c.fault)
			calls := int64(2)
			if c.fault == "429" {
				calls = 1 // which holds the next one back
			}
			for i := range calls {
				resp, err := m.RoundTrip(m.message(t.Context(), 50, c.fault != "bomb"))
				if err == nil {
					err = discard(resp)
				}
				if (err != nil) != (c.fault == "cut") {
					t.Errorf("got %v", err)
				}
				m.settled(t)
				m.expectUnits(t, "output", 0, c.output*(i+1))
				m.expectUnits(t, "requests", 0, i+1)
			}
			if told := m.others(t, "output"); told != 0 {
				t.Errorf("%d units were learned from the upstream", told)
			}
			log := m.log.String()
			times := strings.Count(log, "does not report what the call used")
			if !strings.Contains(log, c.told) || times != min(1, len(c.told)) {
				t.Errorf("logged %d times:\n%s", times, log)
			}
			nonsense := strings.Count(log, "cannot read the rate-limit values")
			if (nonsense == 1) != (c.fault == "nonsense") || nonsense > 1 {
				t.Errorf("nonsense is logged %d times:\n%s", nonsense, log)
			}
		})
	}
}

// TestWithoutEnd: an endless response is read up to a bound on time and bytes. The hold stays and
// lapses into a charge.
func TestWithoutEnd(t *testing.T) {
	for fault, bounds := range map[string]meter.Drain{
		"endless": {Time: 50 * time.Millisecond}, "bomb": {Bytes: 1 << 20},
	} {
		m := openMetered(t, "anthropic", limitOn("output", 100_000))
		m.faults(t, fault)
		m.Drain = bounds
		resp, err := m.RoundTrip(m.message(t.Context(), 50, fault == "endless"))
		must(t, err)
		io.ReadFull(resp.Body, make([]byte, 100))
		resp.Body.Close()
		m.settled(t)
		m.expectUnits(t, "output", 200, 0)
		holds, err := m.Budget.Ledger.Reservations(t.Context(), "key1", "output/sonnet-4")
		if err != nil || len(holds) != 1 || holds[0].Lapse != quota.LapseCharge {
			t.Errorf("%s: %+v, %v", fault, holds, err)
		}
		if log := m.log.String(); !strings.Contains(log, "was not read") {
			t.Errorf("%s: log %s", fault, log)
		}
	}
}

// TestHeldBeforeSent: a call that does not fit is not sent, and the calls in flight always fit
// together.
func TestHeldBeforeSent(t *testing.T) {
	m := openMetered(t, "anthropic", limitOn("output", 500))
	var open sync.WaitGroup
	release := make(chan bool)
	for range 2 {
		resp, err := m.RoundTrip(m.message(t.Context(), 10, true))
		must(t, err)
		open.Go(func() {
			<-release
			if err := discard(resp); err != nil {
				t.Error(err)
			}
		})
	}
	_, err := m.RoundTrip(m.message(t.Context(), 10, true))
	refused(t, err, quota.ErrExhausted)
	close(release)
	open.Wait()
	m.expectStatus(t, 200, m.message(t.Context(), 10, false)) // after the others settle
	m.agrees(t, "requests", "output")
}

// TestNeverLeftIsReleased: the hold of a request without a connection is released, also if its
// caller gave up before.
func TestNeverLeftIsReleased(t *testing.T) {
	m := openMetered(t, "openai")
	base := m.Base.(*http.Transport)
	for _, given := range []bool{false, true} {
		ctx, cancel := context.WithCancel(t.Context())
		base.DialContext = func(ctx context.Context, _, _ string) (net.Conn, error) {
			if m.held(t, "tokens") == 0 {
				t.Error("nothing is set aside before the connection is made")
			}
			if !given {
				return nil, errors.New("no route")
			}
			cancel()
			<-ctx.Done()
			return nil, ctx.Err()
		}
		var tally meter.Tally
		_, err := m.RoundTrip(m.chat(meter.WithTally(ctx, &tally), 10, false))
		if err == nil || errors.Is(err, context.Canceled) != given {
			t.Errorf("got %v", err)
		}
		m.agrees(t, "requests", "tokens")
		if tally.Sum() != 0 {
			t.Errorf("tally %v", tally.Units())
		}
		cancel()
	}
}

// TestFree: a 304 response costs nothing, also in the tally.
func TestFree(t *testing.T) {
	m := openMetered(t, "github", quota.Limit{Bucket: "concurrent", Units: 1,
		Window: quota.Window{Concurrent: true}})
	var tag string
	for i, want := range []int{200, 304, 304} {
		units := map[int]int64{200: 1}[want]
		var tally meter.Tally
		r := m.request(meter.WithTally(t.Context(), &tally), "GET", "/repos/a/b", nil)
		r.Header.Set("If-None-Match", tag)
		resp, err := m.RoundTrip(r)
		must(t, err)
		must(t, discard(resp))
		tag = resp.Header.Get("Etag")
		if resp.StatusCode != want || tally.Units()["core"] != units {
			t.Errorf("request %d: %d, tally %v", i+1, resp.StatusCode, tally.Units())
		}
	}
	m.agrees(t, "core", "points", "concurrent")
}

// TestPlaceIsFree: a call without a complete response frees its place at once. The most that it can
// have taken is booked.
func TestPlaceIsFree(t *testing.T) {
	m := openMetered(t, "github", limitOn("core", 100), quota.Limit{Bucket: "concurrent", Units: 1,
		Window: quota.Window{Concurrent: true}})
	m.Drain.Time = time.Nanosecond
	for i, fault := range []string{"drop", "endless", "cut"} {
		m.faults(t, fault)
		ctx, leave := context.WithCancel(t.Context())
		resp, err := m.RoundTrip(m.request(ctx, "GET", "/repos/a/b", nil))
		if err == nil {
			_, err = resp.Body.Read(make([]byte, 1))
			leave()
			resp.Body.Close()
		}
		leave()
		m.settled(t)
		if _, denied := errors.AsType[*quota.DeniedError](err); denied {
			t.Errorf("%s: %v", fault, err)
		}
		m.expectUnits(t, "core", 0, int64(i+1))
		m.expectUnits(t, "concurrent", 0, 0)
	}
}

// TestPlaceAndWindow: in a bucket that also has a window, a call keeps its place until its
// response ends, and a call that breaks off is booked, even if its price is known.
func TestPlaceAndWindow(t *testing.T) {
	for name, call := range map[string]func(*metered) *http.Request{
		"anthropic": func(m *metered) *http.Request { return m.message(t.Context(), 50, false) },
		"reddit": func(m *metered) *http.Request {
			return m.request(t.Context(), "GET", "/api/v1/me", nil)
		},
	} {
		m := openMetered(t, name, limitOn("requests", 100),
			quota.Limit{Bucket: "requests", Units: 1, Window: quota.Window{Concurrent: true}})
		resp, err := m.RoundTrip(call(m))
		must(t, err)
		_, _, err = m.send(call(m))
		refused(t, err, quota.ErrExhausted)
		must(t, discard(resp))
		m.settled(t)
		m.expectUnits(t, "requests", 0, 1)
		m.faults(t, "drop")
		if _, _, err := m.send(call(m)); err == nil {
			t.Errorf("%s: it is answered", name)
		}
		m.settled(t)
		m.expectUnits(t, "requests", 0, 2)
	}
}

// TestUnmeteredHold: without the ledger, only methods that may pass unmetered pass.
func TestUnmeteredHold(t *testing.T) {
	t.Parallel()
	m := openMetered(t, "anthropic")
	m.Budget.Ledger.(*ledger.Ledger).Close()
	_, _, err := m.send(m.message(t.Context(), 10, false))
	if !errors.Is(err, quota.ErrNotSent) {
		t.Errorf("got %v", err)
	}
	m.Budget.Open = []string{"anthropic.messages.create"}
	var tally meter.Tally
	m.expectStatus(t, 200, m.message(meter.WithTally(t.Context(), &tally), 10, true))
	if c := m.standin.Counts(); c.Requests != 1 || tally.Sum() != 0 {
		t.Errorf("the upstream saw %+v, tally %v", c, tally.Units())
	}
}
