package youtube_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"quotabudget/internal/youtube"
)

// answering returns a client of an upstream with the given handler, and a counter of its
// requests.
func answering(t *testing.T, answer http.HandlerFunc) (*youtube.Client, *atomic.Int64) {
	t.Helper()
	asked := new(atomic.Int64)
	client := start(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		answer(w, r)
	}))
	client.Retry = youtube.Retry{Transient: 3, TransientWait: time.Microsecond, Throttled: 3,
		ThrottledWait: time.Microsecond}
	return client, asked
}

// with answers every request with the text.
func with(text string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) }
}

// TestPackedBomb: a title of 300 MiB that arrives as 300 KB costs the memory of one bounded
// response, and one request.
func TestPackedBomb(t *testing.T) {
	const size = 300 << 20
	kibibyte := bytes.Repeat([]byte("a"), 1<<10)
	for _, status := range []int{200, 403, 500} {
		client, asked := answering(t, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Encoding", "gzip")
			w.WriteHeader(status)
			z, _ := gzip.NewWriterLevel(w, gzip.BestSpeed)
			io.WriteString(z, `{"items":[{"id":"a","snippet":{"title":"`)
			for range size >> 10 {
				z.Write(kibibyte)
			}
			io.WriteString(z, `"}}]}`)
			z.Close()
		})
		client.Retry.Transient = 0
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		page, err := ask(t, client)
		runtime.ReadMemStats(&after)
		if err == nil || page.Videos != nil || asked.Load() != 1 {
			t.Errorf("%d: %d videos, %v, %d requests", status, len(page.Videos), err, asked.Load())
		}
		if status == 200 && err != nil && !strings.Contains(err.Error(),
			"the answer cannot be used: it is longer than 16777216 bytes") {
			t.Error(err)
		}
		if spent := (after.TotalAlloc - before.TotalAlloc) >> 20; spent > 100 {
			t.Errorf("%d: %d MiB were allocated", status, spent)
		}
	}
}

// TestTooMuch: a response with too much of anything is one clear error, and is not requested
// again.
func TestTooMuch(t *testing.T) {
	long := func(n int) string { return strings.Repeat("x", n) }
	video := func(fields string) string {
		return `{"items":[{"id":"a"},{"id":"b",` + fields + `}]}`
	}
	for _, c := range []struct{ name, body, want string }{
		{"description", video(`"snippet":{"description":"` + long(65537) + `"}`),
			"items.1.snippet.description is 65537 bytes long, 65536 at most"},
		{"tags", video(`"snippet":{"tags":["a"` + strings.Repeat(`,"a"`, 1000) + `]}`),
			"tags.1000 is in a list of more than 1000 items"},
		{"key", `{"` + long(65537) + `":1}`, "is 65537 bytes long, 65536 at most"},
		{"key that acts", `{"\u001b[31m":{"items":[],"items":[]}}`,
			"cannot be used: [31m.items appears twice"},
		{"unread", `{"etag":"` + long(65537) + `"}`, "etag is 65537 bytes long"},
		{"items", `{"items":[{"id":"a"}` + strings.Repeat(`,{"id":"a"}`, 50) + `]}`,
			"items is a list of 51, 50 at most"},
		{"many items", `{"items":[{}` + strings.Repeat(`,{}`, 1<<20) + `]}`,
			"items.1000 is in a list of more than 1000 items"},
		{"values", `{"items":[{}` + strings.Repeat(`,{"a":[1`+strings.Repeat(",1", 998)+`]}`, 200) +
			`]}`, "is past the maximum of 100000 values"},
		{"keys twice", `{"items":[{"id":"a","id":"b"}]}`, "items.0.id appears twice"},
		{"deep", `{"items":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `}`,
			"is nested more than 64 deep"},
		{"very deep", strings.Repeat("[", 1<<20), "is nested more than 64 deep"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			client, asked := answering(t, with(c.body))
			page, err := ask(t, client)
			if kind, ok := youtube.KindOf(err); !ok || kind != youtube.Permanent ||
				!strings.Contains(err.Error(), c.want) || len(err.Error()) > 10000 {
				t.Errorf("%.300v, want %s", err, c.want)
			}
			if asked.Load() != 1 || page.Videos != nil {
				t.Errorf("%d requests, %d videos", asked.Load(), len(page.Videos))
			}
		})
	}
}

// TestNoList: a response from something else on the way is not an empty list, which would replace
// a chart.
func TestNoList(t *testing.T) {
	for body, ok := range map[string]bool{
		`{}`: false, `{"status":"ok"}`: false, `{"error":{"code":403}}`: false,
		`{"items":null}`: false, `null`: false, `{"items":[null]}`: false,
		`{"kind":"youtube#list","items":[{},{"id":""}]}`: false, `[]`: false,
		`{"kind":"youtube#list","items":"x"}`: false, `{"items":[{"id":7}]}`: false,
		`{"items":[{"id":"a"}],"nextPageToken":7}`: false,
		`{"items":[]}`: true, `{"kind":"youtube#list"}`: true,
	} {
		client, asked := answering(t, with(body))
		_, err := ask(t, client)
		if kind, _ := youtube.KindOf(err); (err == nil) != ok || !ok && kind != youtube.Permanent {
			t.Errorf("%s: %v", body, err)
		}
		if asked.Load() != 1 {
			t.Errorf("%s: %d requests", body, asked.Load())
		}
	}
}

// TestAsMuchAsAllowed: a response just within the bounds is read completely.
func TestAsMuchAsAllowed(t *testing.T) {
	title, tags := strings.Repeat("x", 4096), strings.TrimSuffix(strings.Repeat(`"a",`, 1000), ",")
	item := fmt.Sprintf(`{"id":"a","snippet":{"title":%q,"description":%q,"tags":[%s]}}`, title,
		strings.Repeat("y", 65536), tags)
	body := `{"items":[` + item + strings.Repeat(","+item, 49) + `]}`
	client, _ := answering(t, with(body))
	page, err := ask(t, client)
	if err != nil || len(page.Videos) != 50 || page.Videos[49].Title != title ||
		len(page.Videos[49].Tags) != 1000 {
		t.Errorf("%d videos, %v", len(page.Videos), err)
	}
}

// TestCutShort: a response that ends early may have been cut on the way, and is requested again.
func TestCutShort(t *testing.T) {
	whole := `{"items":[{"id":"a","snippet":{"title":"t"}}]}`
	for n := range len(whole) {
		client, asked := answering(t, with(whole[:n]))
		client.Retry.Transient = 1
		_, err := ask(t, client)
		if kind, ok := youtube.KindOf(err); !ok || kind != youtube.Transient || asked.Load() != 2 {
			t.Errorf("%s: %v, %d requests", whole[:n], err, asked.Load())
		}
	}
}

// TestMistyped: a value of the wrong type counts as missing; the rest of the page is read.
func TestMistyped(t *testing.T) {
	for _, item := range []string{
		`"statistics":{"viewCount":"many","likeCount":"-1","commentCount":"7"}`,
		`"statistics":{"viewCount":true,"likeCount":99999999999999999999,"commentCount":7}`,
		`"statistics":{"viewCount":[],"likeCount":"99999999999999999999","commentCount":"7"},
		 "contentDetails":{"duration":5}`,
		`"statistics":{"commentCount":"7"},"contentDetails":"x"`,
		`"statistics":{"commentCount":"7"},"snippet":{"title":"t","tags":"x","publishedAt":1,
		 "thumbnails":{"default":{"width":"wide"}}}`,
	} {
		client, asked := answering(t, with(`{"items":[{"id":"a"},{"id":7},"x",{"id":"b",`+item+`}]}`))
		page, err := ask(t, client)
		if err != nil || asked.Load() != 1 || len(page.Videos) != 2 {
			t.Errorf("%s: %+v, %v, %d requests", item, page, err, asked.Load())
			continue
		}
		v := page.Videos[1]
		if v.ID != "b" || v.Views != nil || v.Likes != nil || written(v.Comments) != "7" ||
			v.Tags != nil || v.Duration != "" || !v.PublishedAt.IsZero() {
			t.Errorf("%s: %+v", item, v)
		}
	}
}

// TestCutConnection requires that the error of a cut connection contains the status, if one was
// received.
func TestCutConnection(t *testing.T) {
	for answer, want := range map[string]string{
		"": "youtube: transient: the connection ended before an answer: EOF",
		"HTTP/1.1 503 Away\r\nContent-Length: 99\r\n\r\n{": "youtube: transient (HTTP 503): " +
			"the answer is garbled: unexpected EOF",
	} {
		client, _ := answering(t, func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err == nil {
				_, err = io.WriteString(conn, answer)
				conn.Close()
			}
			if err != nil {
				t.Error(err)
			}
		})
		client.Retry.Transient = 0
		_, err := ask(t, client)
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%q: %v, want %s", answer, err, want)
		}
	}
}
