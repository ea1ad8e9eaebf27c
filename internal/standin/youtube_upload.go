package standin

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"hash"
	"io"
	"mime"
	"mime/multipart"
	"net/http"
	"strings"
	"sync"
	"time"
)

// media is the body of an upload, of which only digest and length are kept. It arrives with the
// metered request, or for a resumable upload in any number of later ones.
type media struct {
	method   method
	query    *query
	metadata map[string]any // the resource sent by the client
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
func (s *YouTube) upload(w http.ResponseWriter, r *http.Request, m method, f youTubeFault) {
	q := newQuery(r)
	up := &media{method: m, query: q, digest: sha256.New()}
	var e *apiError
	switch q.Get("uploadType") {
	case "resumable":
		if up.metadata, e = readMetadata(r.Body); e == nil {
			s.begin(w, r, up)
			return
		}
	case "multipart":
		e = up.readMultipart(r)
	default: // media: only the bytes
		_, e = up.read(r.Body)
	}
	if e != nil {
		writeError(w, e)
		return
	}
	f.write(w, r, up.resource())
}

// resource returns the created resource. Its ID is a digest of the bytes, so that a client can
// check that all arrived.
func (u *media) resource() any {
	resource, ok := u.method.emptyAnswer().(item)
	if !ok {
		return u.method.emptyAnswer()
	}
	resource.ID = base64.RawURLEncoding.EncodeToString(u.digest.Sum(nil))[:11]
	resource.Snippet = u.query.part("snippet", u.metadata["snippet"])
	resource.Status = u.query.part("status", map[string]any{"uploadStatus": "uploaded"})
	resource.Etag = etagOf(resource)
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
		return newError(http.StatusBadRequest, "youtube.video", "mediaBodyRequired",
			"The request does not include the video content.")
	}
	_, e = u.read(second)
	return e
}

// readMetadata reads the resource sent with an upload, which is optional.
func readMetadata(body io.Reader) (map[string]any, *apiError) {
	text, err := io.ReadAll(io.LimitReader(body, maxForm))
	if err != nil {
		return nil, errUpload("The request body could not be read.")
	}
	if len(text) == 0 {
		return nil, nil
	}
	var resource map[string]any
	if err := json.Unmarshal(text, &resource); err != nil {
		return nil, errUpload("Parse Error")
	}
	return resource, nil
}
