package costs

import (
	"net/http"
	"slices"
	"strings"
)

// Session reports whether a request continues a resumable upload, and returns the upload's method:
// the dearest one that uploads to the path. Such a request is a PUT, POST or DELETE below an upload
// path with an upload_id, whatever verb started the upload.
func (t *Table) Session(r *http.Request) (method string, ok bool) {
	verbs := []string{http.MethodPut, http.MethodPost, http.MethodDelete}
	if !slices.Contains(verbs, r.Method) || r.URL.Query().Get("upload_id") == "" {
		return "", false
	}
	return t.dearestUpload(r.URL.EscapedPath())
}

// Resumable reports whether a request says that its upload is resumable.
func Resumable(r *http.Request) bool {
	query := r.URL.Query()
	return query.Has("uploadType") || query.Has("upload_protocol")
}

// dearestUpload returns the method with the highest cost among those that upload to a path.
func (t *Table) dearestUpload(path string) (id string, ok bool) {
	below := func(prefix string) bool { return strings.HasPrefix(path, prefix+"/") }
	if !slices.ContainsFunc(t.Uploads, below) {
		return "", false
	}
	byVerb := t.routesAt(path)
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
