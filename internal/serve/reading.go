package serve

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net"
	"net/http"
	"time"

	"github.com/klauspost/compress/gzhttp"
)

// reading answers GET and HEAD: each response has an ETag, and is compressed for clients that
// accept gzip.
func reading(next http.Handler) http.Handler {
	return gzhttp.GzipHandler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Method != http.MethodGet && r.Method != http.MethodHead {
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
		if body := response.body.Bytes(); response.status == http.StatusOK {
			sum := sha256.Sum256(body)
			w.Header().Set("ETag", `W/"`+hex.EncodeToString(sum[:12])+`"`)
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(body))
			return
		}
		w.WriteHeader(response.status)
		w.Write(response.body.Bytes())
	}))
}

// recorder is an http.ResponseWriter that buffers the response.
type recorder struct {
	header http.Header
	status int
	body   bytes.Buffer
}

func (r *recorder) Header() http.Header { return r.header }

func (r *recorder) WriteHeader(status int) { r.status = status }

func (r *recorder) Write(p []byte) (int, error) { return r.body.Write(p) }

// Call sends a POST request to a handler of this process, as if from a program on this machine. It
// returns the status and the JSON of the response. key is the idempotency key; "" for none.
func Call(ctx context.Context, handler http.Handler, path, key string, body any) (
	status int, text []byte, err error) {
	if text, err = json.Marshal(body); err != nil {
		return 0, nil, err
	}
	ctx = context.WithValue(ctx, http.LocalAddrContextKey, &net.TCPAddr{IP: net.IPv6loopback})
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://localhost"+path,
		bytes.NewReader(text))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	if key != "" {
		r.Header.Set("Idempotency-Key", key)
	}
	response := &recorder{header: make(http.Header), status: http.StatusOK}
	handler.ServeHTTP(response, r)
	return response.status, response.body.Bytes(), nil
}
