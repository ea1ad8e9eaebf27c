package costs

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"quotabudget/internal/costs/formula"
)

// reads are what of a request the prices of a method go by.
type reads struct {
	body  [][]string // paths into the body, * for every key or place
	query []string   // parameters
}

// note adds what a formula looks at.
func (r *reads) note(f *formula.Formula) {
	for _, path := range f.Reads() {
		root, rest, _ := strings.Cut(path, ".")
		switch {
		case root == "query" && !slices.Contains(r.query, rest):
			r.query = append(r.query, rest)
		case root == "body":
			r.body = append(r.body, strings.Split(rest, "."))
		}
	}
}

// check refuses a request in which a name that its price goes by is there in another spelling, or a
// parameter twice: the upstream may go by the other one.
func (r *reads) check(query url.Values, doc any) error {
	for _, want := range r.query {
		for name, values := range query {
			switch {
			case name == want && len(values) > 1:
				return ambiguous("its parameter %s appears %d times", want, len(values))
			case name != want && alike(name, want):
				return ambiguous("its parameter %.40q may be taken for %s", name, want)
			}
		}
	}
	for _, path := range r.body {
		for name := range query { // which some servers put into the body
			if alike(name, path[0]) && !slices.Contains(r.query, name) {
				return ambiguous("its parameter %.40q may be taken for what is in its body", name)
			}
		}
		if err := checkNames(doc, path); err != nil {
			return err
		}
	}
	return nil
}

// alike reports whether a server may take one name for the other: maxResults for max_results, and
// ids[0] for ids.
func alike(name, want string) bool {
	name, _, _ = strings.Cut(name, "[")
	plain := func(s string) string { return strings.ReplaceAll(s, "_", "") }
	return strings.EqualFold(name, want) || strings.EqualFold(plain(name), plain(want))
}

// checkNames follows a path, and refuses a key that some servers take for one of its steps.
func checkNames(value any, path []string) error {
	if len(path) == 0 {
		return nil
	}
	if list, ok := value.([]any); ok {
		for i, item := range list {
			if path[0] != "*" && path[0] != strconv.Itoa(i) {
				continue
			}
			if err := checkNames(item, path[1:]); err != nil {
				return err
			}
		}
		return nil
	}
	object, _ := value.(map[string]any)
	for key, next := range object {
		switch {
		case key == path[0] || path[0] == "*":
			if err := checkNames(next, path[1:]); err != nil {
				return err
			}
		case alike(key, path[0]):
			return ambiguous("its key %.40q may be taken for %s", key, path[0])
		}
	}
	return nil
}
