package standin

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"hash"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// media is the body of an upload. Only its digest and length are stored. It arrives with the
// metered request or, in a resumable upload, with any number of later ones.
type media struct {
	method   method
	query    *query
	metadata object // the resource sent by the client
	digest   hash.Hash
	length   int64

	// For resumable uploads:
	mu        sync.Mutex
	size      int64 // total size; -1 while unknown
	cancelled bool
	created   any // the resource, once the upload is complete
}

// isUpload reports whether the path accepts media.
func isUpload(r *http.Request) bool {
	return strings.HasPrefix(strings.TrimPrefix(r.URL.Path, "/resumable"), "/upload/")
}

// upload serves a metered request that begins an upload: a complete upload, or the start of a
// session.
func (s *YouTube) upload(c *call, m method, q *query) {
	up := &media{method: m, query: q, digest: sha256.New()}
	switch q.Get("uploadType") {
	case "resumable":
		up.readMetadata(c, c.r.Body)
		s.begin(c, up)
		return
	case "multipart": // the resource, then the media
		_, params, _ := mime.ParseMediaType(c.r.Header.Get("Content-Type"))
		body := multipart.NewReader(c.r.Body, params["boundary"])
		first, err := body.NextRawPart()
		if err != nil {
			c.failUpload("Missing end boundary in multipart body.")
		}
		up.readMetadata(c, first)
		second, err := body.NextRawPart()
		if err != nil {
			c.fail("mediaBodyRequired", nil)
		}
		up.read(c, second)
	default: // media: only the bytes
		up.read(c, c.r.Body)
	}
	c.youTube(up.resource())
}

// failUpload sends a 400 of the upload endpoints.
func (c *call) failUpload(format string, args ...any) {
	c.fail("badRequest", object{"what": fmt.Sprintf(format, args...)})
}

// resource returns the created resource. Its ID is a digest of the bytes, so that a client can
// check that all of them arrived.
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
func (u *media) read(c *call, body io.Reader) (n int64) {
	n, err := io.Copy(u.digest, body)
	if u.length += n; err != nil {
		c.failUpload("The request body could not be read.")
	}
	return n
}

// readMetadata reads the resource sent with an upload, which is optional.
func (u *media) readMetadata(c *call, body io.Reader) {
	text, err := io.ReadAll(io.LimitReader(body, maxForm))
	switch {
	case err != nil:
		c.failUpload("The request body could not be read.")
	case len(bytes.TrimSpace(text)) > 0 && json.Unmarshal(text, &u.metadata) != nil:
		c.failUpload("Parse Error")
	}
}

// granule is a number of bytes: from every chunk but the last, the server stores a multiple of it.
const granule = 256 << 10

// begin starts a session and returns its URL in Location.
func (s *YouTube) begin(c *call, up *media) {
	up.size = -1
	size, err := strconv.ParseInt(c.r.Header.Get("X-Upload-Content-Length"), 10, 64)
	if err == nil && size >= 0 {
		up.size = size
	}
	id := rand.Text()
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
	up := lookUp(c, s.sessions, c.r.URL.Query().Get("upload_id"), "notFound", nil)
	c.replace(up.method)
	up.mu.Lock()
	defer up.mu.Unlock()
	switch {
	case up.cancelled:
		c.fail("gone", nil)
	case c.r.Method == http.MethodDelete:
		up.cancelled = true
		c.w.WriteHeader(499) // the upstream's nonstandard status: client closed request
	case c.r.Method == http.MethodPut || c.r.Method == http.MethodPost:
		up.take(c)
	default:
		c.html(http.StatusMethodNotAllowed, "Method Not Allowed")
	}
}

// take stores a chunk, and sends the progress or, when the upload is complete, the resource.
func (u *media) take(c *call) {
	if u.created == nil {
		u.takeChunk(c)
		if u.length == u.size {
			u.created = u.resource()
		}
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

// contentRange matches "bytes 0-9/100", "bytes 0-9/*", "bytes */100" and "bytes */*".
var contentRange = regexp.MustCompile(`^bytes (?:(\d{1,18})-(\d{1,18})|\*)/(?:(\d{1,18})|\*)$`)

// takeChunk stores whole granules of a chunk, or all of the last one. The client must send the rest
// of a granule again.
func (u *media) takeChunk(c *call) {
	header := c.r.Header.Get("Content-Range")
	if header == "" { // the whole upload in one request
		n := u.read(c, c.r.Body)
		if u.length != n || u.size >= 0 && u.size != n {
			c.failUpload("Invalid request. The body is not the whole of the upload.")
		}
		u.size = u.length
		return
	}
	m := contentRange.FindStringSubmatch(header)
	if m == nil {
		c.failUpload("Failed to parse Content-Range header.")
	}
	number := func(text string) int64 {
		n, _ := strconv.ParseInt(text, 10, 64)
		return n
	}
	from, to := number(m[1]), number(m[2])+1
	if size := number(m[3]); m[3] != "" && u.size < 0 {
		u.size = size
	} else if m[3] != "" && size != u.size {
		c.failUpload("Invalid request. The upload has another size.")
	}
	isLast := to == u.size
	switch {
	case m[1] == "": // a status query
		return
	case to <= from, u.size >= 0 && to > u.size, from > u.length:
		c.failUpload("Invalid request. The Content-Range does not go on where the upload is.")
	case !isLast && to-from < granule:
		c.failUpload("Invalid request. The number of bytes uploaded is required to be equal or "+
			"greater than %d, except for the final request.", granule)
	}
	n := to - u.length
	if !isLast {
		n -= n % granule
	}
	if _, err := io.CopyN(io.Discard, c.r.Body, u.length-from); err != nil {
		return // the body ends before its first new byte
	}
	stored, err := io.CopyN(u.digest, c.r.Body, n)
	if u.length += stored; err != nil {
		c.failUpload("The request body is shorter than its Content-Range.")
	}
}
