package config

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"quotabudget/internal/costs"
	"quotabudget/internal/grammar"
)

// Upstream configures an upstream of the price list.
type Upstream struct {
	Endpoint string `json:"endpoint"` // URL that ends in a slash
}

// usualUpstream is the upstream of the sections youtube and ingest.
const usualUpstream = "youtube"

// Table returns the price list of the credential's upstream.
func (c *Config) Table(of Credential) *costs.Table {
	if t, err := c.Prices.Upstream(of.Upstream); err == nil {
		return t
	}
	return c.Costs // a credential that is not configured
}

// Endpoint returns where to send requests to an upstream: the configured URL, otherwise the price
// list's.
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

// upstreams sets the endpoints of upstreams.
func (r *reader) upstreams(all map[string]Upstream, at grammar.Place) {
	if all == nil {
		return
	}
	r.cfg.Upstreams = map[string]Upstream{}
	for _, name := range at.Keys() {
		r.table(name, at.Key(name))
		r.cfg.Upstreams[name] = Upstream{withSlash(all[name].Endpoint)}
		if name == usualUpstream {
			r.cfg.YouTube.Endpoint = all[name].Endpoint
		}
	}
}

// table returns the price list of an upstream, or nil if there is none. If the upstream is unknown,
// it adds a problem.
func (r *reader) table(upstream string, at grammar.Place) *costs.Table {
	if r.cfg.Prices == nil {
		return nil
	}
	t, err := r.cfg.Prices.Upstream(upstream)
	if err != nil {
		at.Add("%v", err)
		return nil
	}
	return t
}

// prices reads another price list, and selects a profile. If the list cannot be read, references to
// it are not checked.
func (r *reader) prices(ctx context.Context, f filePrices, at grammar.Place) {
	if f.File != "" {
		path := r.path(f.File)
		r.cfg.Prices, r.cfg.Costs, r.cfg.CostsFile = nil, nil, path
		list, err := readPrices(ctx, path)
		if err != nil {
			for line := range strings.Lines(err.Error()) {
				at.Add("%s: %s", path, strings.TrimSpace(line))
			}
			return
		}
		r.setPrices(list)
	}
	if f.Profile == "" {
		return
	}
	if table, err := r.cfg.Prices.Usual().Profile(f.Profile); err != nil {
		at.Key("profile").Add("%v", err)
	} else {
		r.setPrices(r.cfg.Prices.With(table))
	}
}

func (r *reader) setPrices(list *costs.List) { r.cfg.Prices, r.cfg.Costs = list, list.Usual() }

// Prices reads the price list at path, and the files in its folder that it names. An error is an
// *Error with all problems.
func Prices(ctx context.Context, path string) (*costs.List, error) {
	list, err := readPrices(ctx, path)
	if err == nil {
		return list, nil
	}
	invalid, ok := errors.AsType[*Error](err)
	if !ok {
		return nil, fail(path, "%v", err)
	}
	for i, problem := range invalid.Problems {
		invalid.Problems[i].Where = path
		if problem.Where != "" {
			invalid.Problems[i].Where = filepath.Join(filepath.Dir(path), problem.Where)
		}
	}
	return nil, invalid
}

func readPrices(ctx context.Context, path string) (*costs.List, error) {
	data, err := ReadPipe(ctx, path, costs.MaxFile)
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
