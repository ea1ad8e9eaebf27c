package youtube

import (
	"bytes"
	"context"
	"io"
	"net/http"
)

// keeper keeps a copy of the body that the official client reads, for a call that asks for it. The client's own types
// cannot tell a counter that is zero from one that is missing.
type keeper struct{ next http.RoundTripper }

type keptKey struct{}

// keep returns a context whose one request leaves its body in the buffer.
func keep(ctx context.Context) (context.Context, *bytes.Buffer) {
	kept := new(bytes.Buffer)
	return context.WithValue(ctx, keptKey{}, kept), kept
}

func (k keeper) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := k.next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	if kept, ok := r.Context().Value(keptKey{}).(*bytes.Buffer); ok {
		res.Body = tee{io.TeeReader(res.Body, kept), res.Body}
	}
	return res, nil
}

type tee struct {
	io.Reader
	io.Closer
}
