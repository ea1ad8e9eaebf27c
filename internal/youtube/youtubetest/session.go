package youtubetest

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
	// what is kept of a chunk, but for the last, is a multiple of it
	granule     = 256 << 10
	sessionLife = 7 * 24 * time.Hour // after which the upstream forgets a session
)

// sessionOf is the session that the request continues, or nil. One is forgotten when it expires.
func (s *Server) sessionOf(r *http.Request) *media {
	now := s.now()
	defer s.locked()()
	maps.DeleteFunc(s.sessions, func(_ string, up *media) bool {
		return now.Sub(up.begun) > sessionLife
	})
	return s.sessions[r.URL.Query().Get("upload_id")]
}

// begin starts a session and says where its media goes.
func (s *Server) begin(w http.ResponseWriter, r *http.Request, up *media) {
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

// continueUpload answers a request of a session: a chunk, a question how far it is, or its end. The
// upload_id is the credential of these, and they take no units.
func (s *Server) continueUpload(w http.ResponseWriter, r *http.Request, f Fault) {
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
	case up.gone:
		writeError(w, newError(http.StatusGone, "global", "gone", "The upload was cancelled."))
	case r.Method == http.MethodDelete:
		up.gone = true
		w.WriteHeader(499) // the upstream's own: client closed request
	case r.Method == http.MethodPut || r.Method == http.MethodPost:
		up.take(w, r, f)
	default:
		writeHTML(w, http.StatusMethodNotAllowed, "Method Not Allowed")
	}
}

// take takes a chunk, and answers how far the upload is or, once it is whole, with what it made.
func (u *media) take(w http.ResponseWriter, r *http.Request, f Fault) {
	if u.made == nil {
		if e := u.takeChunk(r); e != nil {
			writeError(w, e)
			return
		}
	}
	if u.length == u.size && u.made == nil {
		u.made = u.resource()
	}
	if u.made != nil {
		f.write(w, r, u.made)
		return
	}
	if u.length > 0 {
		w.Header().Set("Range", fmt.Sprintf("bytes=0-%d", u.length-1))
	}
	if r.Header.Get("X-GUploader-No-308") == "yes" { // for clients that take a 308 for a redirect
		w.Header().Set("X-Http-Status-Code-Override", "308")
		w.WriteHeader(http.StatusOK)
		return
	}
	w.WriteHeader(http.StatusPermanentRedirect) // which here means: resume incomplete
}

func (u *media) takeChunk(r *http.Request) *apiError {
	if r.Header.Get("Content-Range") == "" { // the whole in one request
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
		return nil // all of it was there before
	}
	return u.keep(r.Body, c.to-u.length, last)
}

// keep takes n bytes, in whole granules, and of the last chunk all: what broke off within a granule
// must be sent again.
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

// contentRange is which bytes a chunk has: from, and up to but not including to, of size.
type contentRange struct {
	from, to int64
	size     int64 // -1 when it is not known yet
	asks     bool  // no bytes: a question how far the upload is
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
