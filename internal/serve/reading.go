package serve

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/singleflight"
)

const (
	// keptFor is how old an answer may be that is given again: a catalogue changes once in minutes,
	// and a page that thousands look at is made once a second.
	keptFor   = time.Second
	keptBytes = 32 << 20
	// longestKept is how long an address may be, in bytes, whose answer is kept.
	longestKept = 1024
	// leastCompressed is the size from which compressing pays.
	leastCompressed = 1024
)

// cost is about how much memory the answer takes, with its address.
func (a *answer) cost() int { return len(a.body) + len(a.compressed) + 4096 }

// reading answers GET and HEAD: each answer is made once a second for all who ask for it, has an
// ETag, and is compressed for those who take it so. What others do, and streams, pass through it.
//
// An answer is made of the address alone, and of whether the reader may see what is private:
// nothing else that one client sends can change what the next one gets.
type reading struct {
	next    http.Handler
	private func(*http.Request) bool
	flight  singleflight.Group

	mu   sync.Mutex
	kept map[string]*answer
	size int
}

// answer is one that can be given again.
type answer struct {
	until      time.Time
	status     int
	header     http.Header
	body       []byte
	compressed []byte // nil where that does not pay
	etag       string
}

func newReading(next http.Handler, private func(*http.Request) bool) *reading {
	return &reading{next: next, private: private, kept: make(map[string]*answer)}
}

// passes reports whether the request bypasses the cache: writes and event streams.
func passes(r *http.Request) bool {
	return r.Method != http.MethodGet && r.Method != http.MethodHead ||
		strings.HasSuffix(r.URL.Path, "/events")
}

func (h *reading) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if passes(r) {
		h.next.ServeHTTP(w, r)
		return
	}
	h.answer(r).write(w, r)
}

func (h *reading) answer(r *http.Request) *answer {
	key := r.URL.EscapedPath() + "?" + r.URL.RawQuery
	if h.private(r) {
		key = "private " + key
	}
	h.mu.Lock()
	a := h.kept[key]
	h.mu.Unlock()
	if a != nil && time.Now().Before(a.until) {
		return a
	}
	made, _, _ := h.flight.Do(key, func() (any, error) {
		// the first caller may disconnect while others wait for the response
		ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), 10*time.Second)
		defer cancel()
		get := r.Clone(ctx)
		get.Method, get.Body = http.MethodGet, http.NoBody
		get.Header = http.Header{"Authorization": r.Header["Authorization"]}
		rec := &recorder{answer{status: http.StatusOK, header: make(http.Header)}}
		h.next.ServeHTTP(rec, get)
		rec.finish()
		h.keep(key, &rec.answer)
		return &rec.answer, nil
	})
	return made.(*answer)
}

// keep keeps an answer, unless it is an error or there is no room.
func (h *reading) keep(key string, a *answer) {
	if a.status != http.StatusOK || len(key) > longestKept {
		return
	}
	now := time.Now()
	a.until = now.Add(keptFor)
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.size+a.cost() > keptBytes {
		maps.DeleteFunc(h.kept, func(_ string, old *answer) bool { return !now.Before(old.until) })
		h.size = 0
		for _, old := range h.kept {
			h.size += old.cost()
		}
	}
	if old := h.kept[key]; old != nil {
		h.size -= old.cost()
		delete(h.kept, key)
	}
	if h.size+a.cost() <= keptBytes {
		h.kept[key] = a
		h.size += a.cost()
	}
}

// recorder takes an answer down. It is an http.ResponseWriter.
type recorder struct{ answer }

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) { r.status = status }

func (r *recorder) Write(p []byte) (int, error) {
	r.body = append(r.body, p...)
	return len(p), nil
}

func (r *recorder) finish() {
	r.header.Add("Vary", "Accept-Encoding")
	if r.status == http.StatusOK {
		sum := sha256.Sum256(r.body)
		r.etag = `W/"` + hex.EncodeToString(sum[:12]) + `"`
		r.header.Set("ETag", r.etag)
	}
	if len(r.body) < leastCompressed {
		return
	}
	var out bytes.Buffer
	zip := gzip.NewWriter(&out)
	zip.Write(r.body)
	zip.Close()
	r.compressed = out.Bytes()
}

// write gives the answer to one who asked.
func (a *answer) write(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	maps.Copy(h, a.header)
	if a.status == http.StatusOK && matches(r.Header.Values("If-None-Match"), a.etag) {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	body := a.body
	if a.compressed != nil && takesGzip(r) {
		body = a.compressed
		h.Set("Content-Encoding", "gzip")
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(a.status)
	if r.Method != http.MethodHead {
		w.Write(body)
	}
}

func matches(sent []string, etag string) bool {
	for _, value := range sent {
		for one := range strings.SplitSeq(value, ",") {
			one = strings.TrimPrefix(strings.TrimSpace(one), "W/")
			if one == "*" || one == strings.TrimPrefix(etag, "W/") {
				return true
			}
		}
	}
	return false
}

// takesGzip reports whether the client takes gzip, which it may refuse by q=0.
func takesGzip(r *http.Request) bool {
	for _, value := range r.Header.Values("Accept-Encoding") {
		for one := range strings.SplitSeq(value, ",") {
			name, q, _ := strings.Cut(one, ";")
			if strings.EqualFold(strings.TrimSpace(name), "gzip") {
				q = strings.ReplaceAll(q, " ", "")
				return q != "q=0" && q != "q=0.0" && q != "q=0.00" && q != "q=0.000"
			}
		}
	}
	return false
}
