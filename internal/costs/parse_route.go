package costs

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/spell"
	"quotabudget/internal/yamlfile"
)

// route is a verb and a path.
type route struct{ verb, path string }

// pathForm is a path: words, {name} for one segment, {name}:word for one that ends so, and
// {name...} for the rest.
var (
	pathForm = regexp.MustCompile(`^(/[A-Za-z0-9_.:-]+|/\{[A-Za-z0-9_]+\}(:[A-Za-z0-9_.-]+)?)*` +
		`(/\{[A-Za-z0-9_]+\.\.\.\})?$`)
	verbs = [...]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"}
)

// maxRoutes is how many routes a method may have.
const maxRoutes = 64

// routes reads one route, or a list of them.
func (r *reader) routes(n *yaml.Node) (all []route) {
	if n.Kind != yaml.SequenceNode {
		return r.route(n, all)
	}
	r.List(n, "route", func(n *yaml.Node) { all = r.route(n, all) })
	if len(all) > maxRoutes {
		r.Add(n, "%d routes: %d at most", len(all), maxRoutes)
		return nil
	}
	return all
}

func (r *reader) route(n *yaml.Node, all []route) []route {
	text := r.text(n, "route")
	verb, path, _ := strings.Cut(text, " ")
	form := strings.TrimSuffix(path, "/")
	if !slices.Contains(verbs[:], verb) || form == "" || !pathForm.MatchString(form) {
		r.Add(n, "route %q: write a verb and a path, such as GET /v1/things/{id}", text)
		return all
	}
	for part := range strings.SplitSeq(form[1:], "/") {
		if strings.Trim(part, ".") == "" {
			r.Add(n, "route %q can never match: a part of dots is refused", text)
		}
	}
	return append(all, route{verb, path})
}

// addRoutes puts the routes of a method into the tree, below the upload paths, too.
func (r *reader) addRoutes(n *yaml.Node, m *Method) {
	if m.Upload {
		for _, at := range slices.Clone(m.routes) {
			for _, prefix := range r.table.uploads {
				m.routes = append(m.routes, route{at.verb, prefix + at.path})
			}
		}
	}
	for _, at := range m.routes {
		if other := r.table.routes.add(at.verb, at.path, m.ID); other != "" {
			r.Add(n, "methods %s and %s share the route %s %s", other, m.ID, at.verb, at.path)
		}
	}
}

func (r *reader) profile(name string, _, n *yaml.Node) {
	p := profile{prices: map[string]price{}}
	r.fields(n, "profile "+spell.Clip(name), "profile", yamlfile.Fields{
		"note": func(n *yaml.Node) { r.text(n, "note") }, // for who reads the file
		"methods": func(n *yaml.Node) {
			r.each(n, "methods", func(id string, key, n *yaml.Node) {
				m, ok := r.table.listed[id]
				if !ok {
					r.Add(key, "profile %s prices %q, which is not among the methods%s", name, id,
						didYouMean(id, r.table.listed))
				} else if !m.Known() {
					r.Add(key, "profile %s prices %s, whose price depends on the call", name, id)
				}
				p.prices[id] = r.replaced(id, n)
			})
		},
	})
	r.table.profiles[name] = p
}

// replaced reads a price of a profile.
func (r *reader) replaced(id string, n *yaml.Node) price {
	var p price
	r.fields(n, "method "+spell.Clip(id), "price", yamlfile.Fields{
		"cost":   func(n *yaml.Node) { p.costs = r.costs(n) },
		"source": func(n *yaml.Node) { p.source = r.sourceOf(n) },
	}, "cost", "source")
	return p
}
