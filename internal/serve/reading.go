package serve

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strconv"
	"strings"
)

// leastCompressed is the size in bytes from which compressing pays.
const leastCompressed = 1024

// reading answers GET and HEAD: each response has an ETag, and is compressed for clients that accept
// gzip. Other requests, and event streams, pass through it.
func reading(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead ||
			strings.HasSuffix(r.URL.Path, "/events") {
			next.ServeHTTP(w, r)
			return
		}
		get := r.Clone(r.Context())
		get.Method, get.Body = http.MethodGet, http.NoBody
		// caches in front of the server give a response to other clients: only what Vary names
		// may change it
		get.Header = http.Header{"Authorization": r.Header["Authorization"]}
		response := &recorder{header: w.Header(), status: http.StatusOK}
		next.ServeHTTP(response, get)
		response.send(w, r)
	})
}

// recorder is an http.ResponseWriter that buffers the response.
type recorder struct {
	header http.Header
	status int
	body   []byte
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) { r.status = status }

func (r *recorder) Write(p []byte) (int, error) {
	r.body = append(r.body, p...)
	return len(p), nil
}

// send sends the response to the client, or 304 if the client has it.
func (r *recorder) send(w http.ResponseWriter, request *http.Request) {
	r.header.Add("Vary", "Accept-Encoding")
	if r.status == http.StatusOK {
		sum := sha256.Sum256(r.body)
		etag := `W/"` + hex.EncodeToString(sum[:12]) + `"`
		r.header.Set("ETag", etag)
		if matches(request.Header.Values("If-None-Match"), etag) {
			w.WriteHeader(http.StatusNotModified)
			return
		}
	}
	compress := len(r.body) >= leastCompressed && takesGzip(request)
	if compress {
		r.header.Set("Content-Encoding", "gzip")
	} else {
		r.header.Set("Content-Length", strconv.Itoa(len(r.body)))
	}
	w.WriteHeader(r.status)
	switch {
	case request.Method == http.MethodHead:
	case compress:
		zip := gzip.NewWriter(w)
		zip.Write(r.body)
		zip.Close()
	default:
		w.Write(r.body)
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
