package meter

import (
	"cmp"
	"fmt"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
)

// authorized reports whether the request carries a credential of a user, and so goes without ours.
// Where the upstream takes its credential in Authorization, what a caller has there is replaced.
func (t *Transport) authorized(r *http.Request) bool {
	const name = "Authorization"
	at := t.Table.Credential
	return r.Header.Get(name) != "" && !strings.EqualFold(at.Header, name) &&
		!slices.ContainsFunc(at.Headers, func(h string) bool { return strings.EqualFold(h, name) })
}

// addCredential puts the credential where the upstream takes it, in place of any that the caller
// sent.
func (t *Transport) addCredential(out *http.Request, key string) {
	at, authorized := t.Table.Credential, t.authorized(out)
	for _, name := range at.Headers {
		out.Header.Del(name)
	}
	if at.Header != "" {
		out.Header.Del(at.Header)
	}
	switch {
	case authorized:
	case at.Query != "":
		pair := url.QueryEscape(at.Query) + "=" + url.QueryEscape(key)
		if out.URL.RawQuery != "" {
			pair = out.URL.RawQuery + "&" + pair
		}
		out.URL.RawQuery = pair
	default:
		out.Header.Set(at.Header, at.Prefix+key)
	}
}

// secretParams are the parameters of a URL in which the upstream takes a credential.
func (t *Transport) secretParams() []string {
	at := t.Table.Credential
	if at.Query == "" {
		return at.Params
	}
	return append(slices.Clone(at.Params), at.Query)
}

// checkQuery refuses a credential, and what cannot be read and might hold one. It repeats nothing
// of the query.
func (t *Transport) checkQuery(raw string) error {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return fmt.Errorf("%w, or might: write %%25 for %% and %%3B for ; in its query",
			ErrKeyInURL)
	}
	if slices.ContainsFunc(t.secretParams(), query.Has) {
		return fmt.Errorf("%w: leave it out, it is added", ErrKeyInURL)
	}
	return nil
}

// spellings are the key as it may stand in an answer: as it is, and escaped as in a URL or in JSON.
func spellings(key string) []string {
	if key == "" {
		return nil
	}
	if !strings.ContainsFunc(key, escaped) {
		return []string{key}
	}
	query, path := url.QueryEscape(key), url.PathEscape(key)
	lower := func(s string) string {
		return escape.ReplaceAllStringFunc(s, strings.ToLower)
	}
	all := []string{query, path, lower(query), lower(path)}
	all = append(all, inJSON(key)...)
	slices.SortFunc(all, func(a, b string) int {
		return cmp.Or(len(b)-len(a), strings.Compare(a, b))
	})
	return slices.Compact(all)
}

// inJSON is the key as it may stand in JSON, where any letter may be escaped: those are that often
// are, each in all of its places or in none.
func inJSON(key string) []string {
	all := []string{key}
	for _, c := range "/+=&<>" {
		forms := []string{string(c), fmt.Sprintf(`\u%04x`, c), fmt.Sprintf(`\u%04X`, c)}
		if c == '/' {
			forms = append(forms, `\/`)
		}
		var next []string
		for _, text := range all {
			for _, form := range forms {
				next = append(next, strings.ReplaceAll(text, string(c), form))
			}
		}
		slices.Sort(next)
		all = slices.Compact(next)
	}
	return all
}

// escaped reports whether a URL or JSON may write a letter of a key in another way.
func escaped(c rune) bool {
	return !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' ||
		strings.ContainsRune("_.~-", c))
}

var escape = regexp.MustCompile(`%[0-9A-F]{2}`)

const hidden = "(not shown)"

func withoutKey(text, key string) string {
	for _, spelling := range spellings(key) {
		text = strings.ReplaceAll(text, spelling, hidden)
	}
	return text
}

// hideKey takes the key out of the headers of an answer that repeats it.
func hideKey(h http.Header, key string) {
	all := spellings(key)
	for _, values := range h {
		for i := range values {
			for _, spelling := range all {
				values[i] = strings.ReplaceAll(values[i], spelling, hidden)
			}
		}
	}
}

// hideIn takes the key out of the text of an error, in which the answer may be repeated.
func hideIn(err error, key string) error {
	text := err.Error()
	if without := withoutKey(text, key); without != text {
		return &hiddenError{without, err}
	}
	return err
}

type hiddenError struct {
	text string
	err  error
}

func (e *hiddenError) Error() string { return e.text }
func (e *hiddenError) Unwrap() error { return e.err }
