package config

import (
	"path/filepath"
	"strings"
)

// stateDefaults puts the ledger and the catalogue into the state directory: QUOTA_STATE_DIR, else quota below XDG_STATE_HOME
// (~/.local/state). The directory is needed, and made, only where one of the two is not configured.
func (r *reader) stateDefaults() {
	c := r.cfg
	if c.Ledger != "" && c.Catalog != "" {
		return
	}
	dir := r.getenv("QUOTA_STATE_DIR")
	if dir == "" {
		dir = r.xdg("XDG_STATE_HOME", filepath.Join(".local", "state"))
		if dir == "" {
			r.problems = append(r.problems, Problem{Where: "environment",
				Text: "neither QUOTA_STATE_DIR nor HOME says where to keep the ledger and the catalogue"})
			return
		}
		dir = filepath.Join(dir, "quota")
	}
	dir, err := filepath.Abs(dir)
	if err != nil {
		r.problems = append(r.problems, Problem{Where: "QUOTA_STATE_DIR", Text: err.Error()})
		return
	}
	if c.Ledger == "" {
		c.Ledger = sqliteURL(filepath.Join(dir, "ledger.db"))
	}
	if c.Catalog == "" {
		c.Catalog = sqliteURL(filepath.Join(dir, "catalog.db"))
	}
}

// sqliteURL writes an absolute path as sqlite.ParseURL reads it.
func sqliteURL(path string) string {
	return "sqlite://" + strings.NewReplacer("%", "%25", "?", "%3F", "#", "%23").Replace(filepath.ToSlash(path))
}

// HidePassword is a ledger's URL without what may be a password: the user, and the values of parameters.
func HidePassword(ledgerURL string) string {
	scheme, rest, ok := strings.Cut(ledgerURL, "://")
	if !ok || scheme == "sqlite" {
		return ledgerURL
	}
	if at := strings.LastIndex(rest, "@"); at >= 0 {
		rest = "***@" + rest[at+1:]
	}
	if rest, query, ok := strings.Cut(rest, "?"); ok {
		params := strings.Split(query, "&")
		for i, p := range params {
			name, _, _ := strings.Cut(p, "=")
			params[i] = name + "=***"
		}
		return scheme + "://" + rest + "?" + strings.Join(params, "&")
	}
	return scheme + "://" + rest
}
