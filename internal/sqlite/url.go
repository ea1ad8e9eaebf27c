package sqlite

import (
	"errors"
	"net/url"
	"strings"
	"unicode"
)

// ParseURL returns the path in a URL: sqlite:///var/lib/quota/ledger.db is absolute,
// sqlite:ledger.db relative to the working directory. In both, %3F stands for "?", %23 for "#"
// and %25 for "%"; spaces need no escape. Errors do not repeat the URL, which may be of another
// kind and contain a password.
func ParseURL(rawURL string) (path string, err error) {
	const want = "want sqlite:///path/to/file.db or sqlite:file.db"
	rest, ok := strings.CutPrefix(rawURL, "sqlite:")
	if !ok {
		return "", errors.New(want)
	}
	if strings.ContainsAny(rest, "?#") {
		return "", errors.New("a SQLite URL has no options; in a name, write ? as %3F and # as %23")
	}
	if after, two := strings.CutPrefix(rest, "//"); two {
		if !strings.HasPrefix(after, "/") {
			return "", errors.New("two slashes name a host; " + want)
		}
		rest = after
	}
	if path, err = url.PathUnescape(rest); err != nil {
		return "", errors.New("in a file name, write % as %25")
	}
	if strings.ContainsFunc(path, unicode.IsControl) {
		return "", errors.New("the name contains a line break or another control character")
	}
	if path == "" || strings.HasSuffix(path, "/") || path == ":memory:" {
		return "", errors.New("no file is named; " + want)
	}
	return path, nil
}
