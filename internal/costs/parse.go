package costs

import (
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/quota"
)

// Parse reads a price list. It is strict: an unknown or repeated key, a bucket that is not declared, a cost below 1, a route
// that two methods share and the like are errors, all of them reported at once, each with its line.
func Parse(data []byte) (*Table, error) {
	root, err := document(data)
	if err != nil {
		return nil, err
	}
	r := &reader{sources: map[string]Source{}, metrics: map[string]string{}, places: map[string]int{}, table: Table{
		profiles: map[string]profile{}, listed: map[string]Method{}, routes: &segment{},
	}}
	var methods, profiles, use *yaml.Node
	r.fields(root, "the price list", fields{
		"version":  func(n *yaml.Node) { r.table.Version = r.date(n) },
		"profile":  func(n *yaml.Node) { use = n },
		"upstream": r.upstream,
		"buckets":  func(n *yaml.Node) { r.each(n, "buckets", r.bucket) },
		"sources":  func(n *yaml.Node) { r.each(n, "sources", r.source) },
		"methods":  func(n *yaml.Node) { methods = n },
		"profiles": func(n *yaml.Node) { profiles = n },
	})
	// These refer to what the others declare, wherever it stands in the file.
	r.each(methods, "methods", r.method)
	r.each(profiles, "profiles", r.profile)
	var t *Table
	if use != nil && !r.full() {
		if t, err = r.table.Profile(r.text(use)); err != nil {
			r.add(use, "%v", err)
		}
	}
	if err := r.problems.err(); err != nil {
		return nil, err
	}
	return t, nil
}

// reader gathers a table and what is wrong with it.
type reader struct {
	problems
	table   Table
	sources map[string]Source
	metrics map[string]string // buckets by their metrics
	places  map[string]int    // of the buckets in the table, by name
}

// maxUploads is how many prefixes a method's route may be repeated under.
const maxUploads = 16

func (r *reader) upstream(n *yaml.Node) {
	r.fields(n, "upstream", fields{
		"service": func(n *yaml.Node) { r.table.Service = r.text(n) },
		"hosts":   func(n *yaml.Node) { r.table.Hosts = r.texts(n) },
		"uploads": func(n *yaml.Node) {
			prefixes := r.texts(n)
			if len(prefixes) > maxUploads {
				r.add(n, "%d upload paths: %d at most", len(prefixes), maxUploads)
				return
			}
			for _, prefix := range prefixes {
				if !pathForm.MatchString(prefix) {
					r.add(n, "upload path %q: write it as /upload", prefix)
				}
				r.table.uploads = append(r.table.uploads, prefix)
			}
		},
		"override": func(n *yaml.Node) { r.table.overrides = r.texts(n) },
		"oauth":    func(n *yaml.Node) { r.table.oauth = r.flag(n) },
	}, "override", "oauth")
}

func (r *reader) bucket(name string, key, n *yaml.Node) {
	if err := quota.CheckName(name); err != nil {
		r.add(key, "bucket %v", err)
	}
	b := Bucket{Name: name}
	r.fields(n, "bucket "+clip(name), fields{
		"metric": func(n *yaml.Node) { b.Metric = r.text(n) },
		"daily":  func(n *yaml.Node) { b.Daily = r.units(n, 0) },
		"timezone": func(n *yaml.Node) {
			var err error
			if b.Reset, err = quota.ParseWindow("day", r.text(n)); err != nil {
				r.add(n, "%v", err)
			}
		},
	})
	if other, ok := r.metrics[b.Metric]; ok {
		r.add(n, "bucket %s has the metric of %s", name, other)
	}
	r.metrics[b.Metric], r.places[name] = name, len(r.table.buckets)
	r.table.buckets = append(r.table.buckets, b)
}

var statuses = [...]string{"official", "secondary", "unverified"}

func (r *reader) source(name string, _, n *yaml.Node) {
	var s Source
	r.fields(n, "source "+clip(name), fields{
		"status": func(n *yaml.Node) {
			if s.Status = r.text(n); !slices.Contains(statuses[:], s.Status) {
				r.add(n, "status %q: it is official, secondary or unverified", s.Status)
			}
		},
		"date": func(n *yaml.Node) { s.Date = r.date(n) },
		"text": func(n *yaml.Node) { s.Text = r.text(n) },
	})
	r.sources[name] = s
}

var idForm = regexp.MustCompile(`^[a-zA-Z0-9]+(\.[a-zA-Z0-9]+)+$`)

func (r *reader) method(id string, key, n *yaml.Node) {
	if !idForm.MatchString(id) {
		r.add(key, "%q is not the ID of a method, such as youtube.videos.list", id)
	}
	m := Method{ID: id, OAuth: r.table.oauth}
	r.fields(n, "method "+clip(id), fields{
		"route":  func(n *yaml.Node) { m.Verb, m.Path = r.route(n) },
		"cost":   func(n *yaml.Node) { m.Costs = r.costs(n) },
		"source": func(n *yaml.Node) { m.Source = r.sourceOf(n) },
		"upload": func(n *yaml.Node) { m.Upload = r.flag(n) },
		"oauth":  func(n *yaml.Node) { m.OAuth = r.flag(n) },
		"note":   func(n *yaml.Node) { m.Note = r.text(n) },
	}, "upload", "oauth", "note")
	r.table.listed[id] = m
	if m.Path == "" {
		return
	}
	paths := []string{m.Path}
	if m.Upload {
		for _, prefix := range r.table.uploads {
			paths = append(paths, prefix+m.Path)
		}
	}
	for _, path := range paths {
		if other := r.table.routes.add(m.Verb, path, id); other != "" {
			r.add(n, "methods %s and %s share the route %s %s", other, id, m.Verb, path)
		}
	}
}

var (
	pathForm = regexp.MustCompile(`^(/[A-Za-z0-9_.:-]+|/\{[A-Za-z0-9_]+\})+$`)
	verbs    = [...]string{"GET", "POST", "PUT", "PATCH", "DELETE"}
)

func (r *reader) route(n *yaml.Node) (verb, path string) {
	text := r.text(n)
	verb, path, _ = strings.Cut(text, " ")
	if !slices.Contains(verbs[:], verb) || !pathForm.MatchString(path) {
		r.add(n, "route %q: write a verb and a path, such as GET /youtube/v3/videos", text)
		return "", ""
	}
	return verb, path
}

// costs reads the units by bucket and puts them in the order of the buckets.
func (r *reader) costs(n *yaml.Node) []quota.Cost {
	var costs []quota.Cost
	r.each(n, "cost", func(bucket string, key, n *yaml.Node) {
		if _, ok := r.places[bucket]; !ok {
			r.add(key, "bucket %q is not among the buckets", bucket)
		}
		costs = append(costs, quota.Cost{Bucket: bucket, Units: r.units(n, 1)})
	})
	slices.SortFunc(costs, func(a, b quota.Cost) int { return r.places[a.Bucket] - r.places[b.Bucket] })
	return costs
}

func (r *reader) sourceOf(n *yaml.Node) Source {
	s, ok := r.sources[r.text(n)]
	if !ok {
		r.add(n, "source %q is not among the sources", n.Value)
	}
	return s
}

func (r *reader) profile(name string, _, n *yaml.Node) {
	p := profile{prices: map[string]price{}}
	r.fields(n, "profile "+clip(name), fields{
		"note": func(n *yaml.Node) { r.text(n) }, // for who reads the file
		"methods": func(n *yaml.Node) {
			r.each(n, "methods", func(id string, key, n *yaml.Node) {
				if _, ok := r.table.listed[id]; !ok {
					r.add(key, "profile %s prices %q, which is not among the methods%s", name, id, didYouMean(id, r.table.listed))
				}
				p.prices[id] = r.price(id, n)
			})
		},
	}, "note", "methods")
	r.table.profiles[name] = p
}

func (r *reader) price(id string, n *yaml.Node) price {
	var p price
	r.fields(n, "method "+clip(id), fields{
		"cost":   func(n *yaml.Node) { p.costs = r.costs(n) },
		"source": func(n *yaml.Node) { p.source = r.sourceOf(n) },
	})
	return p
}
