package youtube_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"testing"

	"quotabudget/internal/standin"
)

// replay answers every request with one body.
type replay []byte

func (b replay) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{
		StatusCode: 200, Header: http.Header{"Content-Type": {"application/json"}},
		Body: io.NopCloser(bytes.NewReader(b)), Request: r,
	}, nil
}

// TestRecordedPages: every recorded page of videos reads as its JSON says, counters and texts
// included.
func TestRecordedPages(t *testing.T) {
	pages, _ := filepath.Glob(standin.SharedData(os.Getenv("QUOTA_SHARED_DATA"), "recorded",
		"ok", "videos_*.json"))
	for _, name := range pages {
		body, err := os.ReadFile(name)
		must(t, err)
		comparePage(t, filepath.Base(name), body)
	}
}

func comparePage(t *testing.T, name string, body []byte) {
	t.Helper()
	page, err := ask(t, connect(t, "https://upstream.test", replay(body)))
	if err != nil {
		t.Errorf("%s: %v", name, err)
		return
	}
	var plain struct {
		NextPageToken string
		Items         []struct {
			ID         string
			Snippet    struct{ Title, Description, ChannelTitle string }
			Statistics map[string]string
		}
	}
	must(t, json.Unmarshal(body, &plain))
	if len(page.Videos) != len(plain.Items) || page.Next != plain.NextPageToken {
		t.Errorf("%s: %d videos, next %q; want %d, %q", name, len(page.Videos), page.Next,
			len(plain.Items), plain.NextPageToken)
		return
	}
	for i, item := range plain.Items {
		v := page.Videos[i]
		if v.ID != item.ID || v.Title != item.Snippet.Title ||
			v.Description != item.Snippet.Description ||
			v.ChannelTitle != item.Snippet.ChannelTitle {
			t.Errorf("%s: video %d is %+v, want %+v", name, i, v, item)
		}
		for key, got := range map[string]*int64{"viewCount": v.Views, "likeCount": v.Likes,
			"commentCount": v.Comments} {
			if want, ok := item.Statistics[key]; written(got) != want || (got != nil) != ok {
				t.Errorf("%s: video %s has %s %s, want %q", name, v.ID, key, written(got), want)
			}
		}
	}
}
