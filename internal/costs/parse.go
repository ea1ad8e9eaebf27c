package costs

import (
	"cmp"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/costs/answer"
	"quotabudget/internal/costs/formula"
	"quotabudget/internal/spell"
	"quotabudget/internal/yamlfile"
)

// reader gathers the table of one upstream and what is wrong with it.
type reader struct {
	*parser
	yamlfile.Reader
	table   Table
	sources map[string]Source
	metrics map[string]string // buckets by their metrics
	places  map[string]int    // of the buckets in the table, by name
	scope   formula.Scope     // of the names that every expression may use
	failed  *yaml.Node        // what a failed call takes where its method does not say
	splits  []string          // names of the facts, those with a mistake too
	warned  []*yaml.Node      // that name facts of which tables warn
	names   []string          // of the upstreams of a front door
	old     bool              // the form of one upstream whose prices are all known
}

func newReader(p *parser, name string) *reader {
	return &reader{parser: p, sources: map[string]Source{}, metrics: map[string]string{},
		places: map[string]int{}, scope: formula.Scope{Tables: map[string]formula.Table{}},
		table: Table{Upstream: name, profiles: map[string]profile{}, listed: map[string]Method{},
			routes: &segment{}}}
}

// read reads the price list of an upstream.
func (r *reader) read(root *yaml.Node) *Table {
	held := map[string]*yaml.Node{}
	later := func(key string) func(*yaml.Node) {
		return func(n *yaml.Node) { held[key] = n }
	}
	known := r.upstreamFields()
	r.old = hasKey(root, "upstream")
	required := []string{"hosts", "buckets", "sources", "methods"}
	if r.old {
		required = []string{"version", "profile", "upstream", "buckets", "sources", "methods",
			"profiles"}
		known["upstream"] = r.upstreamSection
	}
	known["version"] = func(n *yaml.Node) { r.table.Version = r.date(n, "version") }
	known["note"] = func(n *yaml.Node) { r.text(n, "note") } // for who reads the file
	known["zeros"] = func(n *yaml.Node) { r.table.zeros = r.paths(n, "zeros") }
	known["environment"] = func(n *yaml.Node) { r.each(n, "environment", r.variable) }
	for _, key := range sections {
		known[key] = later(key)
	}
	r.fields(root, "the price list", "list", known, required...)
	// Each of these refers to those before it, in whatever order the file has them.
	read := map[string]func(*yaml.Node){
		"sources":  func(n *yaml.Node) { r.each(n, "sources", r.source) },
		"tables":   func(n *yaml.Node) { r.each(n, "tables", r.lookupTable) },
		"split":    func(n *yaml.Node) { r.each(n, "split", r.fact) },
		"numbers":  func(n *yaml.Node) { r.each(n, "numbers", r.number) },
		"buckets":  func(n *yaml.Node) { r.each(n, "buckets", r.bucket) },
		"failed":   func(n *yaml.Node) { r.failed = n },
		"methods":  func(n *yaml.Node) { r.each(n, "methods", r.method) },
		"errors":   r.errorForm,
		"learn":    func(n *yaml.Node) { r.List(n, "learn", r.learning) },
		"refusals": func(n *yaml.Node) { r.List(n, "refusals", r.refusing) },
		"profiles": func(n *yaml.Node) { r.each(n, "profiles", r.profile) },
	}
	for _, key := range sections {
		if n := held[key]; n != nil && read[key] != nil {
			read[key](n)
		}
	}
	for _, n := range r.warned {
		if !slices.Contains(r.splits, n.Value) {
			r.Add(n, "warn: %q is not a fact, which split lists", spell.Clip(n.Value))
		}
	}
	t := &r.table
	t.Version = cmp.Or(t.Version, t.Date)
	t.refusesSuccess = slices.ContainsFunc(t.refusals, refusing.ofSuccess)
	t.readsAnswers = t.refusesSuccess || slices.ContainsFunc(t.learn, learning.readsBody)
	t.answering = r.factsOfAnswers()
	return r.inUse(held["profile"])
}

// sections are the parts of a list that refer to one another, in the order in which they are read.
var sections = [...]string{"sources", "tables", "split", "numbers", "buckets", "failed",
	"methods", "errors", "learn", "refusals", "profiles", "profile"}

// usualProfile is the profile of a list that names none.
const usualProfile = "current"

func (r *reader) inUse(use *yaml.Node) *Table {
	if r.Full() {
		return nil
	}
	name := usualProfile
	if len(r.table.profiles) == 0 && !r.old {
		r.table.profiles[name] = profile{}
	}
	if use != nil {
		name = r.text(use, "profile")
	} else if r.old {
		return nil
	}
	t, err := r.table.Profile(name)
	if err != nil && use != nil && name != "" {
		r.Add(use, "%v", err)
	}
	if len(r.Problems) > 0 || err != nil {
		return nil
	}
	return t
}

// fields is Fields, of a section of the list's schema.
func (r *reader) fields(n *yaml.Node, what, section string, known yamlfile.Fields,
	required ...string) {
	if r.keys != nil {
		if r.keys[section] == nil {
			r.keys[section] = map[string]bool{}
		}
		for key := range known {
			r.keys[section][key] = true
		}
	}
	r.Fields(n, what, known, required...)
}

// each reads a mapping that holds at least one pair.
func (r *reader) each(n *yaml.Node, what string, read yamlfile.Pair) {
	if n != nil && r.Each(n, what, read) && len(n.Content) == 0 {
		r.Add(n, "%s: write at least one", what)
	}
}

// maxUploads is how many prefixes a method's route may be repeated under.
const maxUploads = 16

// upstreamSection is where the old form has these fields.
func (r *reader) upstreamSection(n *yaml.Node) {
	r.fields(n, "upstream", "upstream", r.upstreamFields(), "service", "hosts", "uploads")
	r.table.Upstream, _, _ = strings.Cut(r.table.Service, ".")
}

// upstreamFields say where the upstream is, and how it takes requests.
func (r *reader) upstreamFields() yamlfile.Fields {
	return yamlfile.Fields{
		"service": func(n *yaml.Node) { r.table.Service = r.text(n, "service") },
		"hosts": func(n *yaml.Node) {
			r.table.Hosts = r.texts(n, "hosts")
			for _, host := range r.table.Hosts {
				if !hostForm.MatchString(host) {
					r.Add(n, "hosts: %q is not a host such as api.example.com", spell.Clip(host))
				}
				r.table.Endpoint = cmp.Or(r.table.Endpoint, "https://"+host+"/")
			}
		},
		"endpoint": func(n *yaml.Node) {
			text := r.text(n, "endpoint")
			if !endpointForm.MatchString(text) {
				r.Add(n, "endpoint: %q is not an address such as https://api.example.com/",
					spell.Clip(text))
			}
			r.table.Endpoint = strings.TrimSuffix(text, "/") + "/"
		},
		"credential": r.credential,
		"uploads":    r.uploads,
		"override":   func(n *yaml.Node) { r.table.overrides = r.texts(n, "override") },
		"oauth":      func(n *yaml.Node) { r.table.oauth = r.Bool(n, "oauth") },
	}
}

var (
	hostForm     = regexp.MustCompile(`^[a-z0-9.-]+(:\d+)?$`)
	endpointForm = regexp.MustCompile(`^https?://[a-z0-9.:\[\]-]+(/[A-Za-z0-9_.~-]+)*/?$`)
	headerForm   = regexp.MustCompile(`^[A-Za-z0-9-]+$`)
	paramForm    = regexp.MustCompile(`^[$A-Za-z0-9_.-]+$`)
)

// variableForm is what a variable may be called that holds an address: not PATH, and not what a
// loader obeys.
var variableForm = regexp.MustCompile(`^[A-Z][A-Z0-9_]{0,60}_(URL|HOST|BASE|ENDPOINT)$`)

var basePathForm = regexp.MustCompile(`^/([A-Za-z0-9_.~-]+(/[A-Za-z0-9_.~-]+)*)?$`)

func (r *reader) variable(name string, key, n *yaml.Node) {
	path := r.text(n, "environment")
	switch {
	case !variableForm.MatchString(name):
		r.Add(key, "environment: %q is not a variable with an address, such as API_BASE_URL",
			spell.Clip(name))
	case path != "" && !basePathForm.MatchString(path):
		r.Add(n, "environment: %q is not a path such as / or /v1", spell.Clip(path))
	default:
		if r.table.Environment == nil {
			r.table.Environment = map[string]string{}
		}
		r.table.Environment[name] = path
	}
}

func (r *reader) uploads(n *yaml.Node) {
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
}

// credential reads the place of the credential: {header: x-api-key}, {query: key} or bearer.
func (r *reader) credential(n *yaml.Node) {
	var p Place
	if n.Kind == yaml.ScalarNode {
		if r.text(n, "credential") != "bearer" {
			r.Add(n, "credential: write bearer, {header: NAME} or {query: NAME}")
		}
		r.table.Credential = bearer()
		return
	}
	r.fields(n, "credential", "credential", yamlfile.Fields{
		"header":  func(n *yaml.Node) { p.Header = r.form(n, "header", headerForm) },
		"prefix":  func(n *yaml.Node) { p.Prefix = r.text(n, "prefix") },
		"query":   func(n *yaml.Node) { p.Query = r.form(n, "query", paramForm) },
		"params":  func(n *yaml.Node) { p.Params = r.forms(n, "params", paramForm) },
		"headers": func(n *yaml.Node) { p.Headers = r.forms(n, "headers", headerForm) },
	})
	if (p.Header == "") == (p.Query == "") {
		r.Add(n, "credential: write header or query, one of them")
	}
	r.table.Credential = p
}

func bearer() Place { return Place{Header: "Authorization", Prefix: "Bearer "} }

// form is a text of a form, "" where it has another.
func (r *reader) form(n *yaml.Node, what string, form *regexp.Regexp) string {
	text, ok := r.Text(n, what)
	if ok && !form.MatchString(text) {
		r.Add(n, "%s: %q is not a name", what, spell.Clip(text))
		return ""
	}
	return text
}

func (r *reader) forms(n *yaml.Node, what string, form *regexp.Regexp) (all []string) {
	r.List(n, what, func(n *yaml.Node) { all = append(all, r.form(n, what, form)) })
	return all
}

var statuses = [...]string{"official", "secondary", "unverified", "verified"}

func (r *reader) source(name string, _, n *yaml.Node) {
	var s Source
	r.fields(n, "source "+spell.Clip(name), "source", yamlfile.Fields{
		"status": func(n *yaml.Node) {
			if s.Status = r.text(n, "status"); !slices.Contains(statuses[:], s.Status) {
				r.Add(n, "status %q: it is official, secondary, verified or unverified", s.Status)
			}
		},
		"date": func(n *yaml.Node) { s.Date = r.date(n, "date") },
		"text": func(n *yaml.Node) { s.Text = r.text(n, "text") },
	}, "status", "date", "text")
	r.sources[name] = s
	r.table.Date = max(r.table.Date, s.Date)
}

func (r *reader) sourceOf(n *yaml.Node) Source {
	s, ok := r.sources[r.text(n, "source")]
	if !ok {
		r.Add(n, "source %q is not among the sources", n.Value)
	}
	return s
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

// path reads a path into JSON.
func (r *reader) path(n *yaml.Node, what string) string {
	path := r.text(n, what)
	if err := answer.CheckPath(path); err != nil && path != "" {
		r.Add(n, "%s: %v", what, err)
	}
	return path
}

func (r *reader) paths(n *yaml.Node, what string) (all []string) {
	for _, path := range r.texts(n, what) {
		if err := answer.CheckPath(path); err != nil && path != "" {
			r.Add(n, "%s: %v", what, err)
		}
		all = append(all, path)
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
