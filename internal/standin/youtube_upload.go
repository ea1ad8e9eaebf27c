package standin

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"maps"
	"mime"
	"mime/multipart"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// media is the body of an upload, of which only digest and length are kept. It arrives with the
// metered request, or for a resumable upload in any number of later ones.
type media struct {
	method   method
	query    *query
	metadata object // the resource sent by the client
	digest   hash.Hash
	length   int64

	// For resumable uploads:
	mu        sync.Mutex
	size      int64 // total size; -1 while unknown
	begun     time.Time
	cancelled bool
	created   any // the resource, once the upload is complete
}

// isUpload reports whether the path accepts media.
func isUpload(r *http.Request) bool {
	return strings.HasPrefix(strings.TrimPrefix(r.URL.Path, "/resumable"), "/upload/")
}

// upload answers a metered request that begins an upload: a complete one, or the start of a
// session.
func (s *YouTube) upload(c *call, m method) {
	q := newQuery(c.r)
	up := &media{method: m, query: q, digest: sha256.New()}
	var e *apiError
	switch q.Get("uploadType") {
	case "resumable":
		if up.metadata, e = readMetadata(c.r.Body); e == nil {
			s.begin(c, up)
			return
		}
	case "multipart":
		e = up.readMultipart(c.r)
	default: // media: only the bytes
		_, e = up.read(c.r.Body)
	}
	if e != nil {
		c.apiError(e)
		return
	}
	c.youTube(up.resource())
}

// resource returns the created resource. Its ID is a digest of the bytes, so that a client can
// check that all arrived.
func (u *media) resource() any {
	resource, ok := u.method.emptyAnswer().(object)
	if !ok {
		return u.method.emptyAnswer()
	}
	resource["id"] = base64.RawURLEncoding.EncodeToString(u.digest.Sum(nil))[:11]
	if snippet, ok := u.metadata["snippet"]; ok && slices.Contains(u.query.parts, "snippet") {
		resource["snippet"] = snippet
	}
	if slices.Contains(u.query.parts, "status") {
		resource["status"] = object{"uploadStatus": "uploaded"}
	}
	resource["etag"] = etagOf(resource)
	return resource
}

// read reads a body sent in one request.
func (u *media) read(body io.Reader) (n int64, e *apiError) {
	n, err := io.Copy(u.digest, body)
	if u.length += n; err != nil {
		return n, errUpload("The request body could not be read.")
	}
	return n, nil
}

// readMultipart reads a body of two parts: the resource, then the media.
func (u *media) readMultipart(r *http.Request) *apiError {
	_, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil || params["boundary"] == "" {
		return errUpload("Missing end boundary in multipart body.")
	}
	body := multipart.NewReader(r.Body, params["boundary"])
	first, err := body.NextRawPart()
	if err != nil {
		return errUpload("Missing end boundary in multipart body.")
	}
	var e *apiError
	if u.metadata, e = readMetadata(first); e != nil {
		return e
	}
	second, err := body.NextRawPart()
	if err != nil {
		return googleError("mediaBodyRequired")
	}
	_, e = u.read(second)
	return e
}

// readMetadata reads the resource sent with an upload, which is optional.
func readMetadata(body io.Reader) (object, *apiError) {
	text, err := io.ReadAll(io.LimitReader(body, maxForm))
	if err != nil {
		return nil, errUpload("The request body could not be read.")
	}
	if len(text) == 0 {
		return nil, nil
	}
	var resource object
	if err := json.Unmarshal(text, &resource); err != nil {
		return nil, errUpload("Parse Error")
	}
	return resource, nil
}

const (
	// the server keeps multiples of it from all chunks but the last
	granule     = 256 << 10
	sessionLife = 7 * 24 * time.Hour // lifetime of a session
)

// sessionOf returns the session that the request continues, or nil. It deletes an expired one.
func (s *YouTube) sessionOf(c *call) *media {
	defer s.locked()()
	maps.DeleteFunc(s.sessions, func(_ string, up *media) bool {
		return c.now.Sub(up.begun) > sessionLife
	})
	return s.sessions[c.r.URL.Query().Get("upload_id")]
}

// begin starts a session and returns its URL in Location.
func (s *YouTube) begin(c *call, up *media) {
	var err error
	up.size, err = strconv.ParseInt(c.r.Header.Get("X-Upload-Content-Length"), 10, 64)
	if err != nil || up.size < 0 {
		up.size = -1
	}
	id := rand.Text()
	up.begun = c.now
	unlock := s.locked()
	s.sessions[id] = up
	unlock()
	to := *c.r.URL
	to.Scheme, to.Host = "http", c.r.Host
	if c.r.TLS != nil {
		to.Scheme = "https"
	}
	q := to.Query()
	q.Del("key")
	q.Del("access_token")
	q.Set("upload_id", id)
	to.RawQuery = q.Encode()
	c.header("Location", to.String())
	c.header("X-GUploader-UploadID", id)
	c.w.WriteHeader(http.StatusOK)
}

// continueUpload serves a request of a session: a chunk, a status query, or a cancellation. The
// upload_id is its credential, and it takes no units.
func (s *YouTube) continueUpload(c *call) {
	up := s.sessionOf(c)
	if up == nil {
		c.apiError(googleError("notFound"))
		return
	}
	if c.replaced(up.method) {
		return
	}
	up.mu.Lock()
	defer up.mu.Unlock()
	switch {
	case up.cancelled:
		c.apiError(googleError("gone"))
	case c.r.Method == http.MethodDelete:
		up.cancelled = true
		c.w.WriteHeader(499) // the upstream's own status: client closed request
	case c.r.Method == http.MethodPut || c.r.Method == http.MethodPost:
		up.take(c)
	default:
		c.html(http.StatusMethodNotAllowed, "Method Not Allowed")
	}
}

// take stores a chunk, and returns the progress or, when the upload is complete, the resource.
func (u *media) take(c *call) {
	if u.created == nil {
		if e := u.takeChunk(c.r); e != nil {
			c.apiError(e)
			return
		}
	}
	if u.length == u.size && u.created == nil {
		u.created = u.resource()
	}
	if u.created != nil {
		c.youTube(u.created)
		return
	}
	if u.length > 0 {
		c.header("Range", fmt.Sprintf("bytes=0-%d", u.length-1))
	}
	status := http.StatusPermanentRedirect // in this protocol: resume incomplete
	// for clients that would follow a 308 as a redirect
	if c.r.Header.Get("X-GUploader-No-308") == "yes" {
		c.header("X-Http-Status-Code-Override", "308")
		status = http.StatusOK
	}
	c.w.WriteHeader(status)
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

// keep stores n bytes: whole granules, or all of them in the last chunk. The client must send the
// rest of a granule again.
func (u *media) keep(body io.Reader, n int64, last bool) *apiError {
	if !last {
		n -= n % granule
	}
	stored, err := io.CopyN(u.digest, body, n)
	if u.length += stored; err != nil {
		return errUpload("The request body is shorter than its Content-Range.")
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
