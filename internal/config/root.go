package config

import (
	"context"
	"errors"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/costs"
	"quotabudget/internal/endpoint"
	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
	"quotabudget/internal/regions"
	"quotabudget/internal/sqlite"
	"quotabudget/internal/textfile"
	"quotabudget/internal/yamlfile"
)

type reader struct {
	yamlfile.Reader
	cfg     *Config
	getenv  func(string) string
	dir     string    // of the file
	outside []Problem // of the environment

	// What has been read already, by name.
	buckets     map[string]map[string]costs.Bucket // by upstream
	table       *costs.Table                       // of the credential that is read
	credentials map[string]bool
	jobNames    map[string]bool
	jobOf       map[regions.Region]string
	jobs        *yaml.Node // to be read when the credentials are complete; nil for none
}

const rotate = "delete it here, make a new key to replace it, and name the variable or file that " +
	"holds that one: api_key: {env: " + KeyVariable + "}"

// allProblems are those of the environment and the file. No text that looks like a key is repeated.
func (r *reader) allProblems() []Problem {
	all := r.outside
	for _, p := range r.Sorted() {
		if quota.LooksSecret(p.Text) {
			p.Text = "this looks like an API key (it is not repeated): " + rotate
		}
		all = append(all, Problem{r.cfg.File, p.Line, p.Text})
	}
	return all
}

// root reads the top of the file; nil is an empty one.
func (r *reader) root(ctx context.Context, n *yaml.Node) {
	c := r.cfg
	var prices, upstreams, credentials, ingest, jobs, serve *yaml.Node
	if n != nil && yamlfile.Section(n) {
		r.Fields(n, "the configuration", yamlfile.Fields{
			"ledger":      func(n *yaml.Node) { c.Ledger = r.fileURL(n, "ledger", ledger.CheckURL) },
			"catalog":     func(n *yaml.Node) { c.Catalog = r.fileURL(n, "catalog", checkCatalog) },
			"costs":       func(n *yaml.Node) { prices = n },
			"upstreams":   func(n *yaml.Node) { upstreams = n },
			"credentials": func(n *yaml.Node) { credentials = n },
			"youtube":     r.youtube,
			"ingest":      func(n *yaml.Node) { ingest = n },
			"jobs":        func(n *yaml.Node) { jobs = n },
			"serve":       func(n *yaml.Node) { serve = n },
		})
	}
	// Each of these refers to those before it, in whatever order the file has them.
	r.setPrices(costs.Shipped())
	if prices != nil && yamlfile.Section(prices) {
		r.prices(ctx, prices)
	}
	if upstreams != nil && yamlfile.Section(upstreams) {
		r.upstreams(upstreams)
	}
	if credentials != nil && yamlfile.Section(credentials) {
		r.List(credentials, "credentials", r.credential)
	}
	if jobs != nil && yamlfile.Section(jobs) {
		r.jobs = jobs
	}
	switch {
	case ingest != nil && yamlfile.Section(ingest):
		r.cfg.Ingest.Scheduled = true
		r.ingest(ingest)
	case r.jobs != nil && runsAny(r.jobs): // a file without ingest: has jobs alone
		r.cfg.Ingest.Regions = nil
	}
	if serve != nil && yamlfile.Section(serve) {
		r.serve(serve)
	}
}

// url reads a URL and never repeats it: it may hold a password.
func (r *reader) url(n *yaml.Node, what string, check func(string) error) string {
	text, ok := r.Text(n, what)
	if !ok {
		return ""
	}
	if err := check(text); err != nil {
		r.Add(n, "%s: %v", what, err)
	}
	return text
}

// fileURL reads a URL, and makes the path of a SQLite file absolute: it is relative to the
// configuration, so that a crontab and a shell name the same file. That of a pipe is left alone.
func (r *reader) fileURL(n *yaml.Node, what string, check func(string) error) string {
	text := r.url(n, what, check)
	path, err := sqlite.ParseURL(text)
	if err != nil || filepath.IsAbs(path) || textfile.IsPipe(r.cfg.File) {
		return text
	}
	if path, err = filepath.Abs(r.path(path)); err != nil {
		r.Add(n, "%s: %v", what, err)
	}
	return sqliteURL(path)
}

func checkCatalog(text string) error {
	if !strings.HasPrefix(text, "sqlite:") {
		return errors.New("write sqlite:///path/catalog.db")
	}
	_, err := sqlite.ParseURL(text)
	return err
}

// path is relative to the directory of the file.
func (r *reader) path(path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(r.dir, path)
}

func (r *reader) youtube(n *yaml.Node) {
	if !yamlfile.Section(n) {
		return
	}
	r.Fields(n, "youtube", yamlfile.Fields{"endpoint": func(n *yaml.Node) {
		r.cfg.YouTube.Endpoint = withSlash(r.url(n, "endpoint", checkEndpoint))
	}})
}

func checkEndpoint(text string) error {
	_, err := endpoint.Parse(text)
	return err
}

func withSlash(endpoint string) string {
	return strings.TrimSuffix(endpoint, "/") + "/"
}
