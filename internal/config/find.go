package config

import (
	"cmp"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"quotabudget/internal/grammar"
)

// maxFileBytes is far larger than any configuration: a longer file is the wrong one.
const maxFileBytes = 1 << 20

// SystemFile is the configuration of a whole machine.
const SystemFile = "/etc/quota/quota.yaml"

// Search finds the configuration file, the first of: Path, QUOTA_CONFIG, ./quota.yaml,
// quota/quota.yaml in XDG_CONFIG_HOME (~/.config), and System.
type Search struct {
	Getenv func(string) string
	Path   string // of --config; "" if the flag was not given
	System string // "" for SystemFile
	Text   []byte // if not nil, read instead of the content of Path
}

// open finds the file and parses it.
func (r *reader) open(ctx context.Context, s Search) error {
	var data []byte
	if path := r.find(s); path != "" {
		var err error
		if data = s.Text; data == nil {
			data, err = ReadPipe(ctx, path, maxFileBytes)
		}
		switch {
		case ctx.Err() != nil:
			return context.Cause(ctx)
		case errors.Is(err, fs.ErrNotExist):
			return fail(path, "no such file")
		case err != nil:
			return fail(path, "%v", reason(err))
		}
		r.cfg.File, r.dir = path, filepath.Dir(path)
	}
	file, problem := grammar.Parse(r.cfg.File, data)
	if problem != nil {
		return &Error{Problems: []Problem{*problem}}
	}
	r.file = file
	return nil
}

// find returns the path of the file to read, or "". A file that is named, or that cannot be
// examined, counts as found, so that no other file replaces it.
func (r *reader) find(s Search) string {
	if named := cmp.Or(s.Path, r.getenv("QUOTA_CONFIG")); named != "" {
		return named
	}
	places := []string{"quota.yaml"}
	if dir := r.xdg("XDG_CONFIG_HOME", ".config"); dir != "" {
		places = append(places, filepath.Join(dir, "quota", "quota.yaml"))
	}
	for _, path := range append(places, cmp.Or(s.System, SystemFile)) {
		if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
			return path
		}
	}
	return ""
}

// xdg returns a directory of the XDG base directory specification; "" if there is no home
// directory.
func (r *reader) xdg(variable, below string) string {
	if dir := r.getenv(variable); filepath.IsAbs(dir) { // the specification ignores relative paths
		return dir
	}
	if home := r.getenv("HOME"); filepath.IsAbs(home) {
		return filepath.Join(home, below)
	}
	return ""
}

// reason returns the error without the path, which begins the message.
func reason(err error) error {
	if about, ok := errors.AsType[*fs.PathError](err); ok {
		return about.Err
	}
	return err
}

// stateDefaults places a ledger or catalogue that is not configured in the state directory:
// QUOTA_STATE_DIR, or else quota below XDG_STATE_HOME (~/.local/state). It creates the directory
// only if it is needed.
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

// HidePassword returns a ledger URL in which *** replaces the user and the values of options that
// may be secret.
func HidePassword(ledgerURL string) string {
	scheme, address, ok := strings.Cut(ledgerURL, "://")
	if !ok || scheme == "sqlite" {
		return ledgerURL
	}
	// No valid ledger URL contains "#". It is part of a password, whose end cannot be determined.
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
