package serve

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
)

// Call sends a request to a handler of this process, as a program on this machine, and returns the
// status and the JSON of its response.
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
