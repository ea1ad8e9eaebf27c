package meter_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/standin"
)

func moment(t testing.TB, text string) time.Time {
	t.Helper()
	at, err := time.Parse(time.RFC3339Nano, text)
	must(t, err)
	return at
}

// TestSuspended: an exhausted bucket is suspended until its reset, on days of 24, 23 and 25 hours,
// and then usable again.
func TestSuspended(t *testing.T) {
	onLedgers(t, func(t *testing.T, open opener) {
		s := open(t, &standin.YouTube{}, append(units(1000), costs.Default().DefaultLimits()...))
		for _, test := range []struct{ now, fault, path, reset string }{
			{"2026-03-08T08:00:00Z", "403-quota", chart, "2026-03-09T07:00:00Z"}, // 23 h
			{"2026-06-01T19:00:00Z", "429-day", search, "2026-06-02T07:00:00Z"},
			{"2026-06-03T06:59:59Z", "403-daily", chart, "2026-06-03T07:00:00Z"},
			{"2026-11-01T07:00:00Z", "429-day", chart, "2026-11-02T08:00:00Z"}, // 25 h
			{"2026-11-03T12:00:00Z", "403-quota", search, "2026-11-04T08:00:00Z"},
		} {
			reset := moment(t, test.reset)
			s.SetNow(moment(t, test.now))
			s.Standin.SetFaults(test.fault)
			status, body, err := s.get(t, test.path)
			if err != nil || status != 403 && status != 429 || !strings.Contains(body, "xceeded") {
				t.Errorf("%s: the client reads %d %q %v", test.fault, status, body, err)
			}
			s.Standin.SetFaults()
			before := s.Served.Load()
			for _, now := range []time.Time{moment(t, test.now), reset.Add(-time.Microsecond)} {
				s.SetNow(now)
				_, _, err = s.get(t, test.path)
				refused(t, err, quota.ErrExhausted)
				if d := denialOf(t, err); d.Limit != quota.Suspended || !d.RetryAt.Equal(reset) {
					t.Errorf("%s at %s: %s until %s, want %s", test.fault, now, d.Limit,
						d.RetryAt, reset)
				}
			}
			if s.Served.Load() != before {
				t.Errorf("%s: asked again", test.fault)
			}
			other := map[string]string{chart: search, search: chart}[test.path]
			if _, _, err = s.get(t, other); err != nil {
				t.Errorf("%s: another bucket: %v", test.fault, err)
			}
			s.SetNow(reset)
			if _, _, err = s.get(t, test.path); err != nil {
				t.Errorf("%s after the reset: %v", test.fault, err)
			}
		}
	})
}

func denialOf(t testing.TB, err error) quota.Decision {
	t.Helper()
	denied, ok := errors.AsType[*quota.DeniedError](err)
	if !ok {
		t.Fatalf("no denial: %v", err)
	}
	return denied.Decision
}

// TestNotSuspended: throttles of a minute and errors that do not concern quota suspend nothing.
func TestNotSuspended(t *testing.T) {
	s := open(t, &standin.YouTube{}, units(100))
	for _, fault := range []string{"429", "429-bare", "500", "503", "500-html", "404-chart",
		"403-disabled"} {
		s.Standin.SetFaults(fault)
		if status, body, err := s.get(t, chart); err != nil || status < 400 || body == "" {
			t.Errorf("%s: the client reads %d %q %v", fault, status, body, err)
		}
		if until := s.usage(t, "default").SuspendedUntil; !until.IsZero() {
			t.Errorf("%s: suspended until %s", fault, until)
		}
	}
}

// TestLateAnswer: a response from yesterday neither suspends a bucket today nor resumes it.
func TestLateAnswer(t *testing.T) {
	s := open(t, &standin.YouTube{Faults: []string{"403-quota"}}, units(100))
	s.SetNow(moment(t, "2026-06-02T06:59:59.999Z"))
	today := moment(t, "2026-06-03T07:00:00Z")
	for _, closed := range []time.Time{{}, today} {
		s.Standin.Now = nil
		s.Answering(func(w http.ResponseWriter, r *http.Request) {
			s.SetNow(moment(t, "2026-06-02T07:00:00.001Z"))
			if err := s.Ledger.Suspend(r.Context(), quota.Suspension{Credential: "key1", Bucket: "default", Until: closed}); err != nil {
				t.Error(err)
			}
			s.Standin.ServeHTTP(w, r)
		})
		if status, _, err := s.get(t, chart); status != 403 || err != nil {
			t.Fatal(status, err)
		}
		if until := s.usage(t, "default").SuspendedUntil; !until.Equal(closed) {
			t.Errorf("suspended until %v, want %v", until, closed)
		}
		s.SetNow(moment(t, "2026-06-02T06:59:59.999Z"))
	}
}

// TestWhichBucket: a response that names no bucket means the default one if the call was charged to
// it, and otherwise always the same one.
func TestWhichBucket(t *testing.T) {
	for _, test := range []struct{ charged, want string }{
		{"a default z", "default"},
		{"z search_list video_insert", "search_list"},
	} {
		var price []quota.Cost
		for bucket := range strings.FieldsSeq(test.charged) {
			price = append(price, quota.Cost{Bucket: bucket, Units: 1})
		}
		for range 8 { // a map's order would show
			var limits []quota.Limit
			for _, b := range []string{"a", "default", "search_list", "video_insert", "z"} {
				limits = append(limits, quota.Limit{Bucket: b, Units: 10,
					Window: quota.Sliding(time.Hour)})
			}
			s := open(t, &standin.YouTube{Faults: []string{"403-quota"}}, limits)
			s.Budget.Prices["youtube.videos.list"] = price
			if _, _, err := s.get(t, chart); err != nil {
				t.Fatal(err)
			}
			for _, l := range limits {
				closed := !s.usage(t, l.Bucket).SuspendedUntil.IsZero()
				if closed != (l.Bucket == test.want) {
					t.Errorf("charged %s: %s is suspended: %v", test.charged, l.Bucket, closed)
				}
			}
		}
	}
}

// status answers with a status and a body.
func status(code int, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(code)
		io.WriteString(w, body)
	}
}

// TestErrorBodies: the gate learns from error bodies, and the client still gets them whole, up to 1
// MiB. A body that breaks off is an error.
func TestErrorBodies(t *testing.T) {
	const gone = `{"error":{"code":403,"errors":[{"reason":"quotaExceeded"}]}}`
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	io.WriteString(z, gone)
	z.Close()
	large := strings.Repeat("x", 1<<20+5)
	for name, test := range map[string]struct {
		answer    http.HandlerFunc
		want      string
		suspended bool
	}{
		"plain": {status(403, gone), gone, true},
		"broken": {func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			w.WriteHeader(403)
			io.WriteString(w, gone[:20])
			http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}, "broke off", false},
		"packed": {func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
				w.Header().Set("Content-Encoding", "gzip")
				w.WriteHeader(403)
				w.Write(packed.Bytes())
			}
		}, gone, true},
		"in parts": {func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(403)
			for _, c := range gone {
				io.WriteString(w, string(c))
				http.NewResponseController(w).Flush()
			}
		}, gone, true},
		"large": {status(500, large), large[:1<<20], false},
		"none":  {status(503, ""), "", false},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t, &standin.YouTube{}, units(100))
			s.Answering(test.answer)
			r := s.request(t.Context(), "GET", chart, nil)
			r.Header.Set("Accept-Encoding", "gzip") // as a program behind the proxy may ask
			resp, err := s.RoundTrip(r)
			if name == "broken" {
				if err == nil || resp != nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v, %v", resp, err)
				}
				s.Counted(t, 0, 1) // the request was sent, though not to the stand-in
				return
			}
			must(t, err)
			n := resp.ContentLength
			_, body, err := read(resp, err)
			if body != test.want || err != nil || n != int64(len(body)) {
				t.Errorf("%d bytes of %d, %v", len(body), n, err)
			}
			if got := !s.usage(t, "default").SuspendedUntil.IsZero(); got != test.suspended {
				t.Errorf("suspended: %v", got)
			}
		})
	}
}

// TestSuspendFails: if the ledger cannot be reached, the client gets its response, and the failure
// is logged.
func TestSuspendFails(t *testing.T) {
	s := open(t, &standin.YouTube{Faults: []string{"403-quota"}}, units(100))
	s.Answering(func(w http.ResponseWriter, r *http.Request) {
		s.Ledger.Close()
		s.Standin.ServeHTTP(w, r)
	})
	if status, body, err := s.get(t, chart); status != 403 || body == "" || err != nil {
		t.Errorf("got %d %q %v", status, body, err)
	}
	if !strings.Contains(s.Log.String(), "level=ERROR") {
		t.Errorf("log: %s", s.Log)
	}
}
