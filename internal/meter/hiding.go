package meter

import (
	"io"
	"net/http"
)

// hiding is the body of a response whose trailers and errors are without the key. The body itself
// passes as it is.
type hiding struct {
	io.ReadCloser
	resp *http.Response
	key  string
}

// Read reads on. The trailers are known at the end.
func (h hiding) Read(p []byte) (n int, err error) {
	n, err = h.ReadCloser.Read(p)
	if err == io.EOF {
		hideKey(h.resp.Trailer, h.key)
	} else if err != nil {
		err = hideIn(err, h.key)
	}
	return n, err
}
