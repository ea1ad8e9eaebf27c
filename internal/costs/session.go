package costs

import (
	"net/http"
	"slices"
	"strings"
)

// Session reports whether a request continues a resumable upload, and names the method that the
// upload is a call of. The rules:
//
//   - It is a PUT, POST or DELETE below one of the upload paths, whatever verb started it.
//   - It has one upload_id, and no other type or protocol than resumable, however their names are
//     written ($uploadType): with another, the upstream might take it for a new upload.
//   - Where several methods upload to the path, it counts as the dearest of them.
func (t *Table) Session(r *http.Request) (method string, ok bool) {
	if !slices.Contains([]string{http.MethodPut, http.MethodPost, http.MethodDelete}, r.Method) {
		return "", false
	}
	query := r.URL.Query()
	if ids := query["upload_id"]; len(ids) != 1 || ids[0] == "" {
		return "", false
	}
	for name, kinds := range query {
		if namesUpload(name) && (name != "uploadType" && name != "upload_protocol" ||
			slices.ContainsFunc(kinds, func(kind string) bool { return kind != "resumable" })) {
			return "", false
		}
	}
	for name := range r.Header {
		if strings.HasPrefix(http.CanonicalHeaderKey(name), "X-Goog-Upload-") {
			return "", false
		}
	}
	return t.dearestUpload(r.URL.EscapedPath())
}

// namesUpload reports whether a parameter could be the type or the protocol of an upload.
func namesUpload(name string) bool {
	name = strings.ReplaceAll(strings.TrimPrefix(strings.ToLower(name), "$"), "_", "")
	return name == "uploadtype" || name == "uploadprotocol"
}

// Resumable reports whether a request says that its upload is resumable.
func Resumable(r *http.Request) bool {
	query := r.URL.Query()
	return query.Has("uploadType") || query.Has("upload_protocol")
}

// dearestUpload is the method that takes the most units of those that upload to a path.
func (t *Table) dearestUpload(path string) (id string, ok bool) {
	below := func(prefix string) bool { return strings.HasPrefix(path, prefix+"/") }
	if !slices.ContainsFunc(t.uploads, below) {
		return "", false
	}
	byVerb := t.routes.find(path)
	for _, verb := range sorted(byVerb) {
		if other := byVerb[verb]; id == "" || t.units(other) > t.units(id) {
			id = other
		}
	}
	return id, id != ""
}

func (t *Table) units(id string) (sum int64) {
	for _, c := range t.methods[id].Costs {
		sum += c.Units
	}
	return sum
}
