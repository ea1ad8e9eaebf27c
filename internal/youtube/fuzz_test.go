package youtube_test

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"quotabudget/internal/standin"
	"quotabudget/internal/youtube"
)

// page is a chart page that contains each field the client reads.
const page = `{"nextPageToken":"CAUQAA","pageInfo":{"totalResults":200},"items":[{"id":"-a",` +
	`"snippet":{"title":"t","description":"d","channelId":"c","channelTitle":"n",` +
	`"categoryId":"10","tags":["","x"],"publishedAt":"2026-11-01T00:00:00Z",` +
	`"thumbnails":{"high":{"url":"u"}}},"contentDetails":{"duration":"PT1H2M3S"},"statistics":{"viewCount":"0","likeCount":"7"}},null]}`

// FuzzPage replaces part of a page by a text, and looks for pages that are accepted although they
// are too large, or whose meaning depends on their layout.
func FuzzPage(f *testing.F) {
	for _, seed := range []struct{ at, cut, text string }{
		{`"id"`, `"id":"-a",`, ``},
		{`"t"`, `"t"`, `"\ud800\u0000\u202e"`},
		{`"t"`, `"t"`, `{"t":["t"]}`},
		{`"0"`, `"0"`, `-9223372036854775809`},
		{`null`, `null`, `{"id":"-a"},{"ID":"b"},{"id":null}`},
		{`PT1H`, `PT1H2M3S`, `P9W999999DT`},
		{`"snippet"`, ``, `"snippet":{},`},
		{`]}`, `]}`, ``},
	} {
		f.Add(uint16(strings.Index(page, seed.at)), uint16(len(seed.cut)), seed.text)
	}
	f.Add(uint16(0), uint16(len(page)), "[]")
	f.Fuzz(func(t *testing.T, at, cut uint16, text string) {
		from := min(int(at), len(page))
		body := []byte(page[:from] + text + page[min(from+int(cut), len(page)):])
		got, err := ask(t, connect(t, "https://upstream.test", replay(body)))
		if err != nil {
			if _, ok := youtube.KindOf(err); !ok {
				t.Errorf("%s: %v", body, err)
			}
			return
		}
		if len(got.Videos) > youtube.MaxPage || len(got.Next) > 4096 {
			t.Errorf("%d videos, next %d bytes", len(got.Videos), len(got.Next))
		}
		for _, v := range got.Videos {
			if v.ID == "" || len(v.ID)+len(v.Title)+len(v.ChannelTitle) > 3*4096 ||
				len(v.Description) > 1<<16 || len(v.Tags) > 1000 || v.Duration < 0 {
				t.Errorf("%+v", v)
			}
		}
		var tree any
		in := json.NewDecoder(bytes.NewReader(body))
		in.UseNumber()
		must(t, in.Decode(&tree))
		laid, err := json.Marshal(tree)
		must(t, err)
		again, err := ask(t, connect(t, "https://upstream.test", replay(laid)))
		if err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%s\nreads as %+v\nand laid out otherwise as %+v, %v", body, got, again, err)
		}
	})
}

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
