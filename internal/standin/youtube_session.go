package standin

import (
	"crypto/rand"
	"fmt"
	"io"
	"maps"
	"net/http"
	"strconv"
	"strings"
	"time"
)

const (
	// the server keeps multiples of it from all chunks but the last
	granule     = 256 << 10
	sessionLife = 7 * 24 * time.Hour // lifetime of a session
)

// sessionOf returns the session that the request continues, or nil. It deletes an expired one.
func (s *YouTube) sessionOf(r *http.Request) *media {
	now := s.now()
	defer s.locked()()
	maps.DeleteFunc(s.sessions, func(_ string, up *media) bool {
		return now.Sub(up.begun) > sessionLife
	})
	return s.sessions[r.URL.Query().Get("upload_id")]
}

// begin starts a session and returns its URL in Location.
func (s *YouTube) begin(w http.ResponseWriter, r *http.Request, up *media) {
	var err error
	up.size, err = strconv.ParseInt(r.Header.Get("X-Upload-Content-Length"), 10, 64)
	if err != nil || up.size < 0 {
		up.size = -1
	}
	id := rand.Text()
	up.begun = s.now()
	unlock := s.locked()
	s.sessions[id] = up
	unlock()
	to := *r.URL
	to.Scheme, to.Host = "http", r.Host
	if r.TLS != nil {
		to.Scheme = "https"
	}
	q := to.Query()
	q.Del("key")
	q.Del("access_token")
	q.Set("upload_id", id)
	to.RawQuery = q.Encode()
	w.Header().Set("Location", to.String())
	w.Header().Set("X-GUploader-UploadID", id)
	w.WriteHeader(http.StatusOK)
}

// continueUpload serves a request of a session: a chunk, a status query, or a cancellation. The
// upload_id is its credential, and it takes no units.
func (s *YouTube) continueUpload(w http.ResponseWriter, r *http.Request, f youTubeFault) {
	up := s.sessionOf(r)
	if up == nil {
		writeError(w, newError(http.StatusNotFound, "global", "notFound",
			"Upload session not found."))
		return
	}
	if f.effect() == replaces {
		f.replace(w, r, up.method)
		return
	}
	up.mu.Lock()
	defer up.mu.Unlock()
	switch {
	case up.cancelled:
		writeError(w, newError(http.StatusGone, "global", "gone", "The upload was cancelled."))
	case r.Method == http.MethodDelete:
		up.cancelled = true
		w.WriteHeader(499) // the upstream's own status: client closed request
	case r.Method == http.MethodPut || r.Method == http.MethodPost:
		up.take(w, r, f)
	default:
		writeHTML(w, http.StatusMethodNotAllowed, "Method Not Allowed")
	}
}

// take stores a chunk, and returns the progress or, when the upload is complete, the resource.
func (u *media) take(w http.ResponseWriter, r *http.Request, f youTubeFault) {
	if u.created == nil {
		if e := u.takeChunk(r); e != nil {
			writeError(w, e)
			return
		}
	}
	if u.length == u.size && u.created == nil {
		u.created = u.resource()
	}
	if u.created != nil {
		f.write(w, r, u.created)
		return
	}
	if u.length > 0 {
		w.Header().Set("Range", fmt.Sprintf("bytes=0-%d", u.length-1))
	}
	// for clients that would follow a 308 as a redirect
	if r.Header.Get("X-GUploader-No-308") == "yes" {
		w.Header().Set("X-Http-Status-Code-Override", "308")
		w.WriteHeader(http.StatusOK)
		return
	}
	w.WriteHeader(http.StatusPermanentRedirect) // in this protocol: resume incomplete
}

func (u *media) takeChunk(r *http.Request) *apiError {
	if r.Header.Get("Content-Range") == "" { // the whole upload in one request
		n, e := u.read(r.Body)
		if e == nil && (u.length != n || u.size >= 0 && u.size != n) {
			e = errUpload("Invalid request. The body is not the whole of the upload.")
		}
		u.size = u.length
		return e
	}
	c, ok := parseContentRange(r.Header.Get("Content-Range"))
	switch {
	case !ok:
		return errUpload("Failed to parse Content-Range header.")
	case c.size >= 0 && u.size >= 0 && c.size != u.size, c.from > u.length:
		return errUpload("Invalid request. The Content-Range does not go on where the upload is.")
	}
	if c.size >= 0 {
		u.size = c.size
	}
	if c.asks {
		return nil
	}
	last := c.to == u.size
	if !last && c.to-c.from < granule {
		return errUpload(fmt.Sprintf("Invalid request. The number of bytes uploaded is required "+
			"to be equal or greater than %d, except for the final request.", granule))
	}
	if _, err := io.CopyN(io.Discard, r.Body, u.length-c.from); err != nil {
		return nil // nothing in it is new
	}
	return u.keep(r.Body, c.to-u.length, last)
}

// keep stores n bytes in whole granules, or all of them in the last chunk. The client must send
// the rest of a granule again.
func (u *media) keep(body io.Reader, n int64, last bool) *apiError {
	buffer := make([]byte, granule)
	for n > 0 && (last || n >= granule) {
		piece := buffer[:min(n, granule)]
		if _, err := io.ReadFull(body, piece); err != nil {
			return errUpload("The request body is shorter than its Content-Range.")
		}
		u.digest.Write(piece)
		u.length += int64(len(piece))
		n -= int64(len(piece))
	}
	return nil
}

// contentRange is the range of a chunk: from, up to but not including to, of size bytes.
type contentRange struct {
	from, to int64
	size     int64 // -1 if not known yet
	asks     bool  // a status query without bytes
}

// parseContentRange reads "bytes 0-9/100", "bytes 0-9/*", "bytes */100" and "bytes */*".
func parseContentRange(text string) (c contentRange, ok bool) {
	span, size, ok := strings.Cut(strings.TrimPrefix(text, "bytes "), "/")
	number := func(text string) int64 {
		n, err := strconv.ParseInt(text, 10, 64)
		ok = ok && err == nil && n >= 0
		return n
	}
	if c.size = -1; size != "*" {
		c.size = number(size)
	}
	if c.asks = span == "*"; c.asks {
		return c, ok
	}
	from, to, _ := strings.Cut(span, "-")
	c.from, c.to = number(from), number(to)+1
	return c, ok && c.to > c.from && (c.size < 0 || c.to <= c.size)
}
