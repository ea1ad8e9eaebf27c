package meter

import (
	"io"
	"net/http"
)

// hiding is a response body that removes the key from trailers and errors. The body itself is not
// changed.
type hiding struct {
	io.ReadCloser
	resp *http.Response
	key  string
}

// Read reads the body, and hides the key in the trailers, which are complete at its end.
func (h hiding) Read(p []byte) (n int, err error) {
	n, err = h.ReadCloser.Read(p)
	if err == io.EOF {
		hideKey(h.resp.Trailer, h.key)
	} else if err != nil {
		err = hideIn(err, h.key)
	}
	return n, err
}
