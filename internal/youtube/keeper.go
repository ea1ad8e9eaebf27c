package youtube

import (
	"bytes"
	"context"
	"io"
	"net/http"

	"quotabudget/internal/youtube/bounds"
)

// keeper reads the answers for the official client, within bounds, and keeps the body for a call
// that asks for it: the client's own types cannot tell a counter that is zero from one that is
// missing.
type keeper struct{ next http.RoundTripper }

type keptKey struct{}

// kept is the body of an answer.
type kept struct{ body []byte }

// keep returns a context whose one request leaves its body in kept.
func keep(ctx context.Context) (context.Context, *kept) {
	k := new(kept)
	return context.WithValue(ctx, keptKey{}, k), k
}

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
	if kept, ok := r.Context().Value(keptKey{}).(*kept); ok {
		kept.body = body
	}
	res.Body, res.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return res, nil
}
