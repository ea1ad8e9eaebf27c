package config

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/costs"
	"quotabudget/internal/spell"
	"quotabudget/internal/textfile"
	"quotabudget/internal/yamlfile"
)

// Upstream is what the configuration says about an upstream of the price list.
type Upstream struct {
	Endpoint string `json:"endpoint"` // URL that ends in a slash
}

// usualUpstream is the one that the sections youtube and ingest are about.
const usualUpstream = "youtube"

// Table is the price list of the credential's upstream.
func (c *Config) Table(of Credential) *costs.Table {
	if t, err := c.Prices.Upstream(of.Upstream); err == nil {
		return t
	}
	return c.Costs // a credential that nobody configured
}

// Endpoint is where requests to an upstream are sent: the configured place, else the list's.
func (c *Config) Endpoint(upstream string) string {
	t, err := c.Prices.Upstream(upstream)
	switch {
	case err != nil:
		return ""
	case t.Upstream == usualUpstream:
		return c.YouTube.Endpoint
	}
	return cmp.Or(c.Upstreams[t.Upstream].Endpoint, t.Endpoint)
}

// upstreams reads {name: {endpoint: URL}}.
func (r *reader) upstreams(n *yaml.Node) {
	r.cfg.Upstreams = map[string]Upstream{}
	r.Each(n, "upstreams", func(name string, key, n *yaml.Node) {
		r.knownUpstream(name, key)
		r.Fields(n, "upstream "+spell.Clip(name), yamlfile.Fields{"endpoint": func(n *yaml.Node) {
			endpoint := withSlash(r.url(n, "endpoint", checkEndpoint))
			r.cfg.Upstreams[name] = Upstream{endpoint}
			if name == usualUpstream {
				r.cfg.YouTube.Endpoint = endpoint
			}
		}}, "endpoint")
	})
}

func (r *reader) knownUpstream(name string, at *yaml.Node) {
	if r.cfg.Prices == nil {
		return
	}
	if names := r.cfg.Prices.Upstreams(); !slices.Contains(names, name) {
		r.Add(at, "upstream: no upstream %q in the price list%s: it has %s", spell.Clip(name),
			spell.DidYouMean(name, names), strings.Join(names, ", "))
	}
}

// credentialUpstream reads the upstream of a credential, and its price list; nil where there is
// none to check against.
func (r *reader) credentialUpstream(n *yaml.Node, c *Credential) *costs.Table {
	if n != nil {
		if name, ok := r.Text(n, "upstream"); ok {
			r.knownUpstream(name, n)
			c.Upstream = name
		}
	}
	if r.cfg.Prices == nil {
		return nil
	}
	t, err := r.cfg.Prices.Upstream(c.Upstream)
	if err != nil {
		return nil
	}
	c.Upstream = t.Upstream
	return t
}

// prices reads a path, or {file: path, profile: name}.
func (r *reader) prices(ctx context.Context, n *yaml.Node) {
	if n.Kind == yaml.ScalarNode {
		r.pricesFrom(ctx, n)
		return
	}
	var profile *yaml.Node
	r.Fields(n, "costs", yamlfile.Fields{
		"file":    func(n *yaml.Node) { r.pricesFrom(ctx, n) },
		"profile": func(n *yaml.Node) { profile = n },
	})
	if profile == nil || r.cfg.Prices == nil {
		return
	}
	name, ok := r.Text(profile, "profile")
	if !ok {
		return
	}
	if table, err := r.cfg.Prices.Usual().Profile(name); err != nil {
		r.Add(profile, "costs: %v", err)
	} else {
		r.setPrices(r.cfg.Prices.With(table))
	}
}

func (r *reader) setPrices(list *costs.List) { r.cfg.Prices, r.cfg.Costs = list, list.Usual() }

// pricesFrom reads another price list. One that cannot be read leaves none: what refers to it is
// not checked then.
func (r *reader) pricesFrom(ctx context.Context, n *yaml.Node) {
	path, ok := r.Text(n, "costs")
	if !ok {
		return
	}
	path = r.path(path)
	r.cfg.Prices, r.cfg.Costs, r.cfg.CostsFile = nil, nil, path
	list, err := readPrices(ctx, path)
	if err != nil {
		for line := range strings.Lines(err.Error()) {
			r.Add(n, "costs: %s: %s", path, strings.TrimSpace(line))
		}
		return
	}
	r.setPrices(list)
}

// Prices reads the price list at path, and the files in its folder that it names. An error is an
// *Error with all that is wrong.
func Prices(ctx context.Context, path string) (*costs.List, error) {
	list, err := readPrices(ctx, path)
	if err == nil {
		return list, nil
	}
	all, ok := err.(interface{ Unwrap() []error })
	if !ok {
		return nil, fail(path, "%v", err)
	}
	var problems []Problem
	for _, err := range all.Unwrap() {
		problem, ok := errors.AsType[*costs.Problem](err)
		if !ok {
			return nil, fail(path, "%v", err)
		}
		where := path
		if problem.File != "" {
			where = filepath.Join(filepath.Dir(path), problem.File)
		}
		problems = append(problems, Problem{where, problem.Line, problem.Text})
	}
	return nil, &Error{problems}
}

func readPrices(ctx context.Context, path string) (*costs.List, error) {
	data, err := textfile.ReadPipe(ctx, path, costs.MaxFile)
	if err != nil {
		return nil, reason(err)
	}
	var files fs.FS
	if root, err := os.OpenRoot(filepath.Dir(path)); err == nil {
		defer root.Close()
		files = root.FS()
	}
	return costs.ParseList(filepath.Base(path), data, files)
}

// bucketsOf are the buckets of a price list by their names.
func (r *reader) bucketsOf(table *costs.Table) map[string]costs.Bucket {
	if table == nil {
		return nil
	}
	if known := r.buckets[table.Upstream]; known != nil { // a list does not change any more
		return known
	}
	known := map[string]costs.Bucket{}
	for _, b := range table.Buckets() {
		known[b.Name] = b
	}
	r.buckets[table.Upstream] = known
	return known
}

// names are the sorted keys.
func names[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
