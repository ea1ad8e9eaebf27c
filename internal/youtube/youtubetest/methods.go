package youtubetest

import (
	_ "embed"
	"net/http"
	"strconv"
	"strings"
	"sync"
)

// methodsTSV holds id, HTTP method, path, bucket and units of every method in the discovery
// document.
//
//go:embed methods.tsv
var methodsTSV string

// method is a priced operation of the API.
type method struct {
	id     string
	verb   string
	path   string
	bucket string
	units  int64
}

var methods = sync.OnceValue(func() []method {
	var all []method
	for line := range strings.Lines(methodsTSV) {
		f := strings.Split(strings.TrimSpace(line), "\t")
		units, err := strconv.ParseInt(f[4], 10, 64)
		if err != nil {
			panic(err) // it is embedded
		}
		all = append(all, method{id: f[0], verb: f[1], path: f[2], bucket: f[3], units: units})
	}
	return all
})

// methodOf names the method that a request calls; media uploads go by the paths of their methods.
func methodOf(r *http.Request) (method, bool) {
	path := strings.TrimPrefix(r.URL.Path, "/resumable")
	path = strings.TrimPrefix(path, "/upload")
	for _, m := range methods() {
		if m.verb == r.Method && m.matches(path) {
			return m, true
		}
	}
	return method{}, false
}

func (m method) matches(path string) bool {
	stem, variable := strings.CutSuffix(m.path, "{id}")
	if !variable {
		return path == m.path
	}
	id, ok := strings.CutPrefix(path, stem)
	return ok && id != "" && !strings.Contains(id, "/")
}

// emptyAnswer is what a method that is priced but not served answers: nothing, a bare resource, or
// an empty list.
func (m method) emptyAnswer() any {
	resource := strings.TrimSuffix(strings.Split(m.id, ".")[1], "s")
	switch m.verb {
	case http.MethodDelete:
		return nil
	case http.MethodGet:
		return newList(resource+"List", []item{})
	}
	return item{Kind: "youtube#" + resource, Etag: etagOf(m.id), ID: "standin"}
}
