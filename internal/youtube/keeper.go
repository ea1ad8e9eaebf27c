package youtube

import (
	"bytes"
	"io"
	"net/http"

	"quotabudget/internal/bounds"
)

// keeper reads the answers for the official client, within bounds, and leaves the body to a call
// that asks for it: the client's own types cannot tell a counter that is zero from one that is
// missing.
type keeper struct{ next http.RoundTripper }

// keptKey is the key of a *[]byte, in the context of a request, that receives the body.
type keptKey struct{}

func (k keeper) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := k.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	body, err := bounds.Read(res.StatusCode/100 == 2, res.Body)
	res.Body.Close()
	if err != nil {
		return nil, err
	}
	if kept, ok := r.Context().Value(keptKey{}).(*[]byte); ok {
		*kept = body
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return res, nil
}
