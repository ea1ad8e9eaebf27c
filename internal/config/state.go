package config

import (
	"cmp"
	"path/filepath"
	"slices"
	"strings"
)

// stateDefaults puts the ledger and the catalogue into the state directory: QUOTA_STATE_DIR,
// otherwise quota below XDG_STATE_HOME (~/.local/state). It creates the directory only if one of
// the two is not configured.
func (r *reader) stateDefaults() {
	c := r.cfg
	dir := r.getenv("QUOTA_STATE_DIR")
	if dir == "" {
		if dir = r.xdg("XDG_STATE_HOME", filepath.Join(".local", "state")); dir != "" {
			dir = filepath.Join(dir, "quota")
		}
	}
	if dir == "" {
		if c.Ledger == "" || c.Catalog == "" {
			r.outside = append(r.outside, Problem{Where: "environment",
				Text: "neither QUOTA_STATE_DIR nor HOME names a folder for the ledger and the " +
					"catalogue"})
		}
		return
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		r.outside = append(r.outside, Problem{Where: "QUOTA_STATE_DIR", Text: err.Error()})
		return
	}
	c.StateDir = dir
	c.Ledger = cmp.Or(c.Ledger, sqliteURL(filepath.Join(dir, "ledger.db")))
	c.Catalog = cmp.Or(c.Catalog, sqliteURL(filepath.Join(dir, "catalog.db")))
}

// sqliteURL returns the URL of an absolute path, for sqlite.ParseURL.
func sqliteURL(path string) string {
	return "sqlite://" + strings.NewReplacer("%", "%25", "?", "%3F", "#",
		"%23").Replace(filepath.ToSlash(path))
}

// shownOptions are the options of a ledger URL that contain no secret.
var shownOptions = []string{"ca", "cert", "key", "server_name", "dial_timeout", "read_timeout",
	"pool_size", "wait_replicas"}

// HidePassword returns a ledger URL without its possible secrets: the user, and the values of
// options.
func HidePassword(ledgerURL string) string {
	scheme, address, ok := strings.Cut(ledgerURL, "://")
	if !ok || scheme == "sqlite" {
		return ledgerURL
	}
	// no ledger URL contains one, so it belongs to a password whose end is unknown
	if strings.Contains(address, "#") {
		return scheme + "://***"
	}
	if at := strings.LastIndex(address, "@"); at >= 0 {
		address = "***@" + address[at+1:]
	}
	address, query, ok := strings.Cut(address, "?")
	if !ok {
		return scheme + "://" + address
	}
	params := strings.Split(query, "&")
	for i, p := range params {
		if name, _, _ := strings.Cut(p, "="); !slices.Contains(shownOptions, name) {
			params[i] = name + "=***"
		}
	}
	return scheme + "://" + address + "?" + strings.Join(params, "&")
}
