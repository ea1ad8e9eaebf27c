package costs

import (
	"errors"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/quota"
	"quotabudget/internal/spell"
	"quotabudget/internal/yamlfile"
)

// Parse reads a price list. It is strict: an unknown or repeated key, a bucket that is not
// declared, a cost below 1, a route that two methods share and the like are errors, all of them
// reported at once, each with its line.
func Parse(data []byte) (*Table, error) {
	root, problem := yamlfile.Document(data)
	switch {
	case problem != nil:
		return nil, errors.New(problem.String())
	case root == nil:
		return nil, errors.New("line 1: the price list is empty")
	}
	r := &reader{sources: map[string]Source{}, metrics: map[string]string{},
		places: map[string]int{}, table: Table{
			profiles: map[string]profile{}, listed: map[string]Method{}, routes: &segment{},
		}}
	var methods, profiles, use *yaml.Node
	r.Fields(root, "the price list", yamlfile.Fields{
		"version":  func(n *yaml.Node) { r.table.Version = r.date(n, "version") },
		"profile":  func(n *yaml.Node) { use = n },
		"upstream": r.upstream,
		"buckets":  func(n *yaml.Node) { r.each(n, "buckets", r.bucket) },
		"sources":  func(n *yaml.Node) { r.each(n, "sources", r.source) },
		"methods":  func(n *yaml.Node) { methods = n },
		"profiles": func(n *yaml.Node) { profiles = n },
	}, "version", "profile", "upstream", "buckets", "sources", "methods", "profiles")
	// These refer to the others, in whatever order the file has them.
	r.each(methods, "methods", r.method)
	r.each(profiles, "profiles", r.profile)
	t := r.inUse(use)
	var errs []error
	for _, p := range r.Sorted() {
		errs = append(errs, errors.New(p.String()))
	}
	return t, errors.Join(errs...)
}

func (r *reader) inUse(use *yaml.Node) *Table {
	if use == nil || r.Full() {
		return nil
	}
	name, ok := r.Text(use, "profile")
	if !ok {
		return nil
	}
	t, err := r.table.Profile(name)
	if err != nil {
		r.Add(use, "%v", err)
	}
	if len(r.Problems) > 0 {
		return nil
	}
	return t
}

// each reads a mapping that holds at least one pair; a missing one is reported as such.
func (r *reader) each(n *yaml.Node, what string, read yamlfile.Pair) {
	if n != nil && r.Each(n, what, read) && len(n.Content) == 0 {
		r.Add(n, "%s: write at least one", what)
	}
}

// reader gathers a table and what is wrong with it.
type reader struct {
	yamlfile.Reader
	table   Table
	sources map[string]Source
	metrics map[string]string // buckets by their metrics
	places  map[string]int    // of the buckets in the table, by name
}

// maxUploads is how many prefixes a method's route may be repeated under.
const maxUploads = 16

func (r *reader) upstream(n *yaml.Node) {
	r.Fields(n, "upstream", yamlfile.Fields{
		"service": func(n *yaml.Node) { r.table.Service = r.text(n, "service") },
		"hosts":   func(n *yaml.Node) { r.table.Hosts = r.texts(n, "hosts") },
		"uploads": func(n *yaml.Node) {
			prefixes := r.texts(n, "uploads")
			if len(prefixes) > maxUploads {
				r.Add(n, "%d upload paths: %d at most", len(prefixes), maxUploads)
				return
			}
			for _, prefix := range prefixes {
				if !pathForm.MatchString(prefix) {
					r.Add(n, "upload path %q: write it as /upload", prefix)
				}
				r.table.uploads = append(r.table.uploads, prefix)
			}
		},
		"override": func(n *yaml.Node) { r.table.overrides = r.texts(n, "override") },
		"oauth":    func(n *yaml.Node) { r.table.oauth = r.Bool(n, "oauth") },
	}, "service", "hosts", "uploads")
}

func (r *reader) bucket(name string, key, n *yaml.Node) {
	if err := quota.CheckName(name); err != nil {
		r.Add(key, "bucket %v", err)
	}
	b := Bucket{Name: name}
	r.Fields(n, "bucket "+spell.Clip(name), yamlfile.Fields{
		"metric": func(n *yaml.Node) { b.Metric = r.text(n, "metric") },
		"daily":  func(n *yaml.Node) { b.Daily = r.Number(n, "daily", 0, quota.MaxUnits) },
		"timezone": func(n *yaml.Node) {
			var err error
			if b.Reset, err = quota.ParseWindow("day", r.text(n, "timezone")); err != nil {
				r.Add(n, "timezone: %v", err)
			}
		},
	}, "metric", "daily", "timezone")
	if other, ok := r.metrics[b.Metric]; ok {
		r.Add(n, "bucket %s has the metric of %s", name, other)
	}
	r.metrics[b.Metric], r.places[name] = name, len(r.table.buckets)
	r.table.buckets = append(r.table.buckets, b)
}

var statuses = [...]string{"official", "secondary", "unverified"}

func (r *reader) source(name string, _, n *yaml.Node) {
	var s Source
	r.Fields(n, "source "+spell.Clip(name), yamlfile.Fields{
		"status": func(n *yaml.Node) {
			if s.Status = r.text(n, "status"); !slices.Contains(statuses[:], s.Status) {
				r.Add(n, "status %q: it is official, secondary or unverified", s.Status)
			}
		},
		"date": func(n *yaml.Node) { s.Date = r.date(n, "date") },
		"text": func(n *yaml.Node) { s.Text = r.text(n, "text") },
	}, "status", "date", "text")
	r.sources[name] = s
}

var idForm = regexp.MustCompile(`^[a-zA-Z0-9]+(\.[a-zA-Z0-9]+)+$`)

func (r *reader) method(id string, key, n *yaml.Node) {
	if !idForm.MatchString(id) {
		r.Add(key, "%q is not the ID of a method, such as youtube.videos.list", id)
	}
	m := Method{ID: id, OAuth: r.table.oauth}
	r.Fields(n, "method "+spell.Clip(id), yamlfile.Fields{
		"route":  func(n *yaml.Node) { m.Verb, m.Path = r.route(n) },
		"cost":   func(n *yaml.Node) { m.Costs = r.costs(n) },
		"source": func(n *yaml.Node) { m.Source = r.sourceOf(n) },
		"upload": func(n *yaml.Node) { m.Upload = r.Bool(n, "upload") },
		"oauth":  func(n *yaml.Node) { m.OAuth = r.Bool(n, "oauth") },
		"note":   func(n *yaml.Node) { m.Note = r.text(n, "note") },
	}, "route", "cost", "source")
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
			r.Add(n, "methods %s and %s share the route %s %s", other, id, m.Verb, path)
		}
	}
}

var (
	pathForm = regexp.MustCompile(`^(/[A-Za-z0-9_.:-]+|/\{[A-Za-z0-9_]+\})+$`)
	verbs    = [...]string{"GET", "POST", "PUT", "PATCH", "DELETE"}
)

func (r *reader) route(n *yaml.Node) (verb, path string) {
	text := r.text(n, "route")
	verb, path, _ = strings.Cut(text, " ")
	if !slices.Contains(verbs[:], verb) || !pathForm.MatchString(path) {
		r.Add(n, "route %q: write a verb and a path, such as GET /youtube/v3/videos", text)
		return "", ""
	}
	return verb, path
}

// costs reads the units by bucket and puts them in the order of the buckets.
func (r *reader) costs(n *yaml.Node) []quota.Cost {
	var costs []quota.Cost
	r.each(n, "cost", func(bucket string, key, n *yaml.Node) {
		if _, ok := r.places[bucket]; !ok {
			r.Add(key, "bucket %q is not among the buckets", bucket)
		}
		costs = append(costs, quota.Cost{Bucket: bucket,
			Units: r.Number(n, "cost of "+spell.Clip(bucket), 1, quota.MaxUnits)})
	})
	slices.SortFunc(costs, func(a, b quota.Cost) int {
		return r.places[a.Bucket] - r.places[b.Bucket]
	})
	return costs
}

func (r *reader) sourceOf(n *yaml.Node) Source {
	s, ok := r.sources[r.text(n, "source")]
	if !ok {
		r.Add(n, "source %q is not among the sources", n.Value)
	}
	return s
}

func (r *reader) profile(name string, _, n *yaml.Node) {
	p := profile{prices: map[string]price{}}
	r.Fields(n, "profile "+spell.Clip(name), yamlfile.Fields{
		"note": func(n *yaml.Node) { r.text(n, "note") }, // for who reads the file
		"methods": func(n *yaml.Node) {
			r.each(n, "methods", func(id string, key, n *yaml.Node) {
				if _, ok := r.table.listed[id]; !ok {
					r.Add(key, "profile %s prices %q, which is not among the methods%s", name, id,
						didYouMean(id, r.table.listed))
				}
				p.prices[id] = r.price(id, n)
			})
		},
	})
	r.table.profiles[name] = p
}

func (r *reader) price(id string, n *yaml.Node) price {
	var p price
	r.Fields(n, "method "+spell.Clip(id), yamlfile.Fields{
		"cost":   func(n *yaml.Node) { p.costs = r.costs(n) },
		"source": func(n *yaml.Node) { p.source = r.sourceOf(n) },
	}, "cost", "source")
	return p
}

// text is Text, "" where there is none.
func (r *reader) text(n *yaml.Node, what string) string {
	text, _ := r.Text(n, what)
	return text
}

func (r *reader) texts(n *yaml.Node, what string) (all []string) {
	r.List(n, what, func(n *yaml.Node) { all = append(all, r.text(n, what)) })
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		r.Add(n, "%s: the list is empty", what)
	}
	return all
}

var dateForm = regexp.MustCompile(`^\d{4}-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?$`)

func (r *reader) date(n *yaml.Node, what string) string {
	if !dateForm.MatchString(n.Value) {
		r.Add(n, "%s: %q is not a day such as 2026-06-01 or a month such as 2026-11", what,
			spell.Clip(n.Value))
	}
	return n.Value
}
