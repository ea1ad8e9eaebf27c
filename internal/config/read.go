package config

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"quotabudget/internal/costs"
	"quotabudget/internal/grammar"
	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
	"quotabudget/internal/regions"
	"quotabudget/internal/sqlite"
)

// reader builds a configuration from a file. It checks what the schema cannot, such as references
// to names.
type reader struct {
	cfg     *Config
	getenv  func(string) string
	dir     string // directory of the file
	file    *grammar.File
	outside []Problem // problems with the environment

	credentials map[string]bool // names
	jobNames    map[string]bool
	jobOf       map[regions.Region]string
}

// Error lists all problems of a configuration.
type Error = grammar.Error

// Problem is one problem and its place.
type Problem = grammar.Problem

func fail(where, format string, args ...any) *Error {
	return &Error{Problems: []Problem{{Where: where, Text: fmt.Sprintf(format, args...)}}}
}

const rotate = "delete it here, make a new key to replace it, and name the variable or file that " +
	"holds that one: api_key: {env: " + KeyVariable + "}"

// allProblems returns the problems of the environment and of the file. It never repeats text that
// looks like a key.
func (r *reader) allProblems() []Problem {
	all := r.outside
	for _, p := range r.file.Problems() {
		if quota.LooksSecret(p.Text) {
			p.Text = "this looks like an API key (it is not repeated): " + rotate
		}
		all = append(all, p)
	}
	return all
}

// configure applies the content of the file. Each section may refer to earlier ones. It returns the
// jobs, which refer to defaults, too.
func (r *reader) configure(ctx context.Context) []fileJob {
	f := file{Ingest: &fileIngest{Ingest: r.cfg.Ingest, Daemon: r.cfg.Daemon},
		Serve: &fileServe{Serve: r.cfg.Serve}}
	if !r.file.Decode(schema(), &f) {
		return nil
	}
	c, top := r.cfg, r.file.Top()
	c.Ledger = r.fileURL(f.Ledger, top.Key("ledger"))
	c.Catalog = r.fileURL(f.Catalog, top.Key("catalog"))
	r.setPrices(costs.Shipped())
	r.prices(ctx, f.Costs, top.Key("costs"))
	c.YouTube.Endpoint = cmp.Or(f.YouTube.Endpoint, c.YouTube.Endpoint)
	r.upstreams(f.Upstreams, top.Key("upstreams"))
	for i, cred := range f.Credentials {
		if r.file.Full() {
			return nil
		}
		c.Credentials = append(c.Credentials, r.credential(cred, top.Key("credentials").Item(i)))
	}
	switch {
	case top.Has("ingest"):
		c.Ingest.Scheduled = true
		r.ingest(f.Ingest, top.Key("ingest"))
	case top.Has("jobs"): // the file has no sweeps
		runs := func(j fileJob) bool { return j.Elsewhere == "" }
		if len(f.Jobs) == 0 || slices.ContainsFunc(f.Jobs, runs) {
			c.Ingest.Regions = nil
		}
	}
	if top.Has("serve") {
		r.serve(f.Serve, top.Key("serve"))
	}
	if f.Notify != nil {
		r.notify(*f.Notify, top.Key("notify"))
	}
	return f.Jobs
}

// environment applies the variables that override the file. It does not read keys, which are read
// when needed.
func (r *reader) environment() {
	for _, v := range []struct {
		name  string
		field *string
		check func(string) error
	}{
		{"QUOTA_LEDGER", &r.cfg.Ledger, ledger.CheckURL},
		{"QUOTA_CATALOG", &r.cfg.Catalog, checkCatalog},
		{"YOUTUBE_ENDPOINT", &r.cfg.YouTube.Endpoint, discard(costs.ParseEndpoint)},
	} {
		text := r.getenv(v.name)
		if text == "" {
			continue
		}
		if err := v.check(text); err != nil {
			r.outside = append(r.outside, Problem{Where: v.name, Text: err.Error()})
		}
		*v.field = text
		r.cfg.Environment = append(r.cfg.Environment, v.name)
	}
	r.cfg.YouTube.Endpoint = withSlash(r.cfg.YouTube.Endpoint)
}

// fileURL makes the path of a SQLite file absolute. It is relative to the configuration, so that a
// crontab and a shell name the same file. A pipe's configuration keeps its path.
func (r *reader) fileURL(text string, at grammar.Place) string {
	path, err := sqlite.ParseURL(text)
	if err != nil || filepath.IsAbs(path) || IsPipe(r.cfg.File) {
		return text
	}
	if path, err = filepath.Abs(r.path(path)); err != nil {
		at.Add("%v", err)
	}
	return sqliteURL(path)
}

// path resolves a path relative to the file's directory.
func (r *reader) path(path string) string {
	if path == "" || filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(r.dir, path)
}

func withSlash(endpoint string) string { return strings.TrimSuffix(endpoint, "/") + "/" }

// firstNew adds a name to its kind, and reports whether it was new.
func firstNew(names map[string]bool, name string) bool {
	if name == "" || names[name] {
		return name == ""
	}
	names[name] = true
	return true
}
