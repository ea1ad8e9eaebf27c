package sqlite

import (
	"fmt"
	"net/url"
	"strings"
)

// ParseURL returns the path that a URL names: sqlite:///var/lib/quota/ledger.db is absolute, sqlite:ledger.db relative to
// the working directory. In either, %3F stands for "?", %23 for "#" and %25 for "%"; a space may stand for itself.
func ParseURL(rawURL string) (path string, err error) {
	rest, ok := strings.CutPrefix(rawURL, "sqlite:")
	if !ok {
		return "", fmt.Errorf("%q: want sqlite:///path/to/file.db or sqlite:file.db", rawURL)
	}
	if strings.ContainsAny(rest, "?#") {
		return "", fmt.Errorf("%q: options are not known here; a file name's own ? is written %%3F, its # %%23", rawURL)
	}
	if after, two := strings.CutPrefix(rest, "//"); two {
		if !strings.HasPrefix(after, "/") {
			return "", fmt.Errorf("%q: two slashes name a host; want sqlite:///%s or, relative, sqlite:%s", rawURL, after, after)
		}
		rest = after
	}
	if path, err = url.PathUnescape(rest); err != nil {
		return "", fmt.Errorf("%q: a file name's own %% is written %%25: %w", rawURL, err)
	}
	if path == "" || strings.HasSuffix(path, "/") || path == ":memory:" || strings.ContainsRune(path, 0) {
		return "", fmt.Errorf("%q: no file is named; want sqlite:///path/to/file.db or sqlite:file.db", rawURL)
	}
	return path, nil
}
