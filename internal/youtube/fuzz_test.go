package youtube_test

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode"

	"quotabudget/internal/youtube"
)

// FuzzClassify looks for an error whose meaning hangs on the words that it repeats, or on how its JSON is laid out, and for
// what a terminal would act upon.
func FuzzClassify(f *testing.F) {
	files, err := filepath.Glob(filepath.Join("testdata", "errors", "*"))
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		body, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		var short bytes.Buffer // go test takes long to shorten what it finds of long seeds
		if json.Compact(&short, body) != nil {
			short.Reset()
			short.Write(body[:min(len(body), 200)])
		}
		f.Add(403, short.Bytes(), "units per day")
	}
	f.Add(400, []byte(`{"error":{"errors":[{"reason":"invalidParameter"}]}}`), "API key not valid. quotaExceeded")
	f.Fuzz(func(t *testing.T, status int, body []byte, words string) {
		status = 300 + int(uint(status)%300)
		got := youtube.Classify(status, body)
		if len([]rune(got.Message)) > 301 || strings.ContainsFunc(got.Message+got.Reason, unicode.IsControl) || got.Kind.String() == "" {
			t.Errorf("%+v", got)
		}
		if got.Kind == youtube.Exhausted && status != 403 && status != 429 && !saysQuota(body) {
			t.Errorf("%d %s is %+v", status, body, got)
		}
		var tree map[string]any
		in := json.NewDecoder(bytes.NewReader(body))
		in.UseNumber()
		if in.Decode(&tree) != nil || !json.Valid(body) {
			return
		}
		if len(body) < 1<<16 && !strings.Contains(got.Message, "is there twice") {
			if again := youtube.Classify(status, marshal(tree)); again.Kind != got.Kind || again.Reason != got.Reason {
				t.Errorf("%s is %+v, and in another order %+v", body, got, again)
			}
		}
		said, ok := tree["error"].(map[string]any)
		if !ok || !specific(said) {
			return
		}
		said["message"] = ""
		before := youtube.Classify(status, marshal(tree))
		said["message"] = words
		if after := youtube.Classify(status, marshal(tree)); after.Kind != before.Kind {
			t.Errorf("%d %s is %v, with the words %q %v", status, body, before.Kind, words, after.Kind)
		}
	})
}

func marshal(tree any) []byte {
	data, err := json.Marshal(tree)
	if err != nil {
		panic(err) // it was JSON
	}
	return data
}

// saysQuota reports whether a body says in any other way than by a message that a quota is gone, however it is escaped.
func saysQuota(body []byte) bool {
	var tree any
	if json.Unmarshal(body, &tree) == nil {
		body = marshal(tree)
	}
	for _, word := range []string{"quotaexceeded", "dailylimitexceeded", "quota_unit"} {
		if strings.Contains(strings.ToLower(string(body)), word) {
			return true
		}
	}
	return false
}

// specific reports whether an error gives a reason that says more than that something was wrong, or too much.
func specific(said map[string]any) bool {
	errs, _ := said["errors"].([]any)
	for _, e := range errs {
		item, _ := e.(map[string]any)
		switch reason, _ := item["reason"].(string); reason {
		case "", "badRequest", "rateLimitExceeded", "RATE_LIMIT_EXCEEDED":
		default:
			return true
		}
	}
	return false
}

// page is a page of a chart with one of each thing that is read.
const page = `{"nextPageToken":"CAUQAA","pageInfo":{"totalResults":200},"items":[{"id":"-a","snippet":{"title":"t","description":"d","channelId":"c",` +
	`"channelTitle":"n","categoryId":"10","tags":["","x"],"publishedAt":"2026-11-01T00:00:00Z","thumbnails":{"high":{"url":"u"}}},` +
	`"contentDetails":{"duration":"PT1H2M3S"},"statistics":{"viewCount":"0","likeCount":"7"}},null]}`

// FuzzPage puts a text into a page in place of some of it, and looks for a page that is taken with too much in it, or that reads
// otherwise when it is laid out otherwise.
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
		got, err := read(t, body)
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
			if v.ID == "" || len(v.ID)+len(v.Title)+len(v.ChannelTitle) > 3*4096 || len(v.Description) > 1<<16 || len(v.Tags) > 1000 || v.Duration < 0 {
				t.Errorf("%+v", v)
			}
		}
		var tree any
		in := json.NewDecoder(bytes.NewReader(body))
		in.UseNumber()
		if err := in.Decode(&tree); err != nil {
			t.Fatal(err)
		}
		if again, err := read(t, marshal(tree)); err != nil || !reflect.DeepEqual(again, got) {
			t.Errorf("%s\nreads as %+v\nand laid out otherwise as %+v, %v", body, got, again, err)
		}
	})
}

func read(t *testing.T, body []byte) (youtube.Page, error) {
	t.Helper()
	client, err := youtube.New(t.Context(), "https://upstream.test", replay(body))
	if err != nil {
		t.Fatal(err)
	}
	client.Retry = youtube.Retry{}
	return client.Chart(t.Context(), youtube.ChartRequest{Region: "US"})
}
