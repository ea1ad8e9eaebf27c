package youtube

import (
	"bytes"
	"io"
	"net/http"

	"quotabudget/internal/untrusted"
)

// keeper reads the responses for the official client, within bounds, and hands the body to
// callers that ask for it.
type keeper struct{ next http.RoundTripper }

// bodyKey is the context key of a *[]byte that receives the body.
type bodyKey struct{}

func (k keeper) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := k.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := untrusted.Read(res.StatusCode/100 == 2, res.Body)
	res.Body.Close()
	if err != nil {
		return nil, err
	}
	if into, ok := r.Context().Value(bodyKey{}).(*[]byte); ok {
		*into = body
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return res, nil
}
