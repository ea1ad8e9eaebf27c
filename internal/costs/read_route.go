package costs

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"quotabudget/internal/words"
)

// route is a verb and the segments of a path.
type route struct {
	verb   string
	words  []string
	method string
}

func newRoute(verb, path, method string) route {
	return route{verb, strings.Split(path[1:], "/"), method}
}

// pathForm matches a path of words, {name} for one segment, {name}:word for a segment that ends in
// :word, and {name...} for the rest.
var (
	pathForm = regexp.MustCompile(`^(/[A-Za-z0-9_.:-]+|/\{[A-Za-z0-9_]+\}(:[A-Za-z0-9_.-]+)?)*` +
		`(/\{[A-Za-z0-9_]+\.\.\.\})?$`)
	verbs = [...]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}
)

// checkRoute checks the text of a route.
func checkRoute(text string) error {
	verb, path, _ := strings.Cut(text, " ")
	form := strings.TrimSuffix(path, "/")
	if !slices.Contains(verbs[:], verb) || form == "" || !pathForm.MatchString(form) {
		return fmt.Errorf("%q: write a verb and a path, such as GET /v1/things/{id}",
			words.Clip(text))
	}
	for part := range strings.SplitSeq(form[1:], "/") {
		if strings.Trim(part, ".") == "" {
			return fmt.Errorf("%q can never match: a part of dots is refused", words.Clip(text))
		}
	}
	return nil
}
