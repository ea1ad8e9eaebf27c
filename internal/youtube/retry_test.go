package youtube_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/youtube"
)

// script answers requests in turn with the named fixtures: "" is an empty list, "drop" and "hang"
// do not answer, and "deny" is a denial of the gate. It records when each was sent.
type script struct {
	t       *testing.T
	answers []string
	began   time.Time
	at      []time.Duration
}

func (s *script) RoundTrip(r *http.Request) (*http.Response, error) {
	i := len(s.at)
	s.at = append(s.at, time.Since(s.began))
	if i >= len(s.answers) {
		s.t.Fatalf("request %d was not expected", i+1)
	}
	switch name := s.answers[i]; name {
	case "":
		return answer(r, 200, `{"items":[]}`), nil
	case "half":
		return answer(r, 200, `{"items":[{"id":`), nil
	case "drop":
		return nil, io.ErrUnexpectedEOF
	case "deny":
		return nil, &quota.DeniedError{}
	case "hang":
		<-r.Context().Done()
		return nil, r.Context().Err()
	default:
		body, err := os.ReadFile(filepath.Join("testdata", "errors", name))
		if err != nil {
			s.t.Fatal(err)
		}
		return answer(r, statusOf(name), string(body)), nil
	}
}

func TestRetries(t *testing.T) {
	const second, minute = time.Second, time.Minute
	type span struct{ least, most time.Duration } // between two attempts
	half, one, two := span{second / 4, second * 3 / 4}, span{second / 2, second * 3 / 2},
		span{second, 3 * second}
	slow := span{minute, minute * 3 / 2}
	for _, c := range []struct {
		name    string
		answers []string
		waits   []span
		want    youtube.Kind
		ok      bool
	}{
		{"at once", []string{""}, nil, youtube.Permanent, true},
		{"the second time", []string{"503_backendError.json", ""}, []span{half}, youtube.Permanent, true},
		{"after every stumble", []string{"drop", "half", "500_page.html", ""},
			[]span{half, one, two}, youtube.Permanent, true},
		{"no more than three", []string{"500_null.json", "drop", "503_backendError.json",
			"500_page.html"}, []span{half, one, two}, youtube.Transient, false},
		{"a minute when throttled", []string{"429_minute.json", "429_bare.json", ""},
			[]span{slow, slow}, youtube.Permanent, true},
		{"throttled for good", []string{"429_bare.json", "429_bare.json", "429_bare.json"},
			[]span{slow, slow}, youtube.Throttled, false},
		{"both", []string{"drop", "429_bare.json", "drop", "429_bare.json", ""},
			[]span{half, slow, one, slow}, youtube.Permanent, true},
		{"a hang is cut off", []string{"hang", ""}, []span{{30*second + second/4, 31 * second}},
			youtube.Permanent, true},
		{"exhausted 403", []string{"403_quotaExceeded.json"}, nil, youtube.Exhausted, false},
		{"exhausted 429", []string{"429_day.json"}, nil, youtube.Exhausted, false},
		{"exhausted on the second attempt", []string{"drop", "429_day_words_only.json"},
			[]span{half}, youtube.Exhausted, false},
		{"denied on the second attempt", []string{"503_backendError.json", "deny"},
			[]span{half}, youtube.Permanent, false},
		{"bad key", []string{"400_API_KEY_INVALID.json"}, nil, youtube.BadCredential, false},
		{"bad region", []string{"400_invalidRegionCode.json"}, nil, youtube.BadRegion, false},
		{"no chart", []string{"404_notFound.json"}, nil, youtube.NoChart, false},
		{"bad page token", []string{"400_invalidPageToken.json"}, nil, youtube.BadPageToken, false},
		{"permanent", []string{"403_resource_forbidden.json"}, nil, youtube.Permanent, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				rt := &script{t: t, answers: c.answers, began: time.Now()}
				client := connect(t, "https://upstream.test/", rt)
				client.Retry = youtube.DefaultRetry()
				_, err := ask(t, client)
				if kind, _ := youtube.KindOf(err); (err == nil) != c.ok || kind != c.want {
					t.Errorf("got %v, want %v", err, c.want)
				}
				if len(rt.at) != len(c.answers) {
					t.Fatalf("%d requests, want %d", len(rt.at), len(c.answers))
				}
				for i, span := range c.waits {
					if wait := rt.at[i+1] - rt.at[i]; wait < span.least || wait > span.most {
						t.Errorf("wait %d is %v, want %v to %v", i+1, wait, span.least, span.most)
					}
				}
			})
		})
	}
}

func TestCancelledWhileWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cause := errors.New("stop now")
		for _, answer := range []string{"429_bare.json", "hang"} {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(time.Second, func() { cancel(cause) })
			rt := &script{t: t, answers: []string{answer}, began: time.Now()}
			client := connect(t, "https://upstream.test/", rt)
			client.Retry = youtube.DefaultRetry()
			_, err := client.Chart(ctx, youtube.ChartRequest{Region: "US"})
			if !errors.Is(err, cause) || !errors.Is(err, context.Canceled) ||
				time.Since(rt.began) != time.Second {
				t.Errorf("%s: %v after %v", answer, err, time.Since(rt.began))
			}
			if _, ours := youtube.KindOf(err); ours {
				t.Errorf("%s: the caller's own end was taken for an error of the upstream", answer)
			}
		}
	})
}
