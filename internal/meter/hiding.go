package meter

import (
	"bytes"
	"io"
	"net/http"
	"strings"
)

// leastHidden is how long a key must be to be taken out of an answer that is no error: a shorter
// one could be a word.
const leastHidden = 12

// hiding is the body of an answer that does not tell the key, and neither do its trailers and its
// errors. In the body, which may be a stream of known length, the key is written over with
// asterisks. What could be the beginning of the key waits until more has come.
type hiding struct {
	io.ReadCloser
	resp *http.Response
	key  string
	all  []string // its spellings, the longest first; none where it is too short

	kept  []byte // read, and perhaps the beginning of the key
	ready []byte // to be passed on, before err
	err   error
}

func newHiding(resp *http.Response, key string) *hiding {
	h := &hiding{ReadCloser: resp.Body, resp: resp, key: key}
	if len(key) >= leastHidden {
		h.all = spellings(key)
	}
	return h
}

// Read reads on. The trailers are known at the end.
func (h *hiding) Read(p []byte) (n int, err error) {
	for len(p) > 0 && len(h.ready) == 0 && h.err == nil {
		into := p
		if len(h.all) > 0 && len(into) < 2*len(h.all[0]) { // too small to find it in
			into = make([]byte, 2*len(h.all[0]))
		}
		text := h.read(into)
		if len(into) == len(p) && len(text) > 0 {
			return len(text), nil
		}
		h.ready = text
	}
	n = copy(p, h.ready)
	if h.ready = h.ready[n:]; n == 0 && len(p) > 0 {
		err = h.err
	}
	return n, err
}

// read reads once, and returns the part of into that may be passed on.
func (h *hiding) read(into []byte) []byte {
	n := copy(into, h.kept)
	more, err := h.ReadCloser.Read(into[n:])
	text := into[:n+more]
	h.kept = h.kept[:0]
	begun := 0
	for _, spelling := range h.all {
		cover(text, spelling)
		begun = max(begun, beginning(text, spelling))
	}
	if begun > 0 && err == nil {
		h.kept = append(h.kept, text[len(text)-begun:]...)
		text = text[:len(text)-begun]
	}
	if err == io.EOF {
		hideKey(h.resp.Trailer, h.key)
	} else if err != nil {
		err = hideIn(err, h.key)
	}
	h.err = err
	return text
}

// cover writes over the key wherever the text has it.
func cover(text []byte, key string) {
	for {
		i := bytes.Index(text, []byte(key))
		if i < 0 {
			return
		}
		for j := range key {
			text[i+j] = '*'
		}
		text = text[i+len(key):]
	}
}

// beginning is how much of the end of the text could be the beginning of the key.
func beginning(text []byte, key string) int {
	for n := min(len(text), len(key)-1); n > 0; n-- {
		if strings.HasPrefix(key, string(text[len(text)-n:])) {
			return n
		}
	}
	return 0
}
