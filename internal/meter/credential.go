package meter

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
)

// authorized reports whether the request has a user's credential, which is sent instead of ours. It
// returns false if the upstream takes our credential in Authorization.
func (t *Transport) authorized(r *http.Request) bool {
	const name = "Authorization"
	return r.Header.Get(name) != "" && !t.Table.Credential.InHeader(name)
}

// addCredential adds the credential where the upstream expects it, and replaces the caller's.
func (t *Transport) addCredential(out *http.Request, key string) {
	at, authorized := t.Table.Credential, t.authorized(out)
	for _, name := range at.AllHeaders() {
		out.Header.Del(name)
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

// checkQuery refuses a query that contains a credential, or that cannot be parsed and may contain
// one. Its error does not repeat any of the query.
func (t *Transport) checkQuery(raw string) error {
	query, err := url.ParseQuery(raw)
	if err != nil {
		return fmt.Errorf("%w, or might: write %%25 for %% and %%3B for ; in its query",
			ErrKeyInURL)
	}
	if slices.ContainsFunc(t.Table.Credential.AllParams(), query.Has) {
		return fmt.Errorf("%w: leave it out, it is added", ErrKeyInURL)
	}
	return nil
}

const hidden = "(not shown)"

// withoutKey removes the key from a text of the upstream, plain or escaped for a URL.
func withoutKey(text, key string) string {
	if key == "" {
		return text
	}
	for _, spelling := range []string{key, url.QueryEscape(key), url.PathEscape(key)} {
		text = strings.ReplaceAll(text, spelling, hidden)
	}
	return text
}

// hideKey removes the key from the headers of a response.
func hideKey(h http.Header, key string) {
	for _, values := range h {
		for i := range values {
			values[i] = withoutKey(values[i], key)
		}
	}
}

// hideIn removes the key from the text of an error, which may quote the response.
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

// hiding is a response body that removes the key from trailers and errors, but not from the data.
type hiding struct {
	io.ReadCloser
	resp *http.Response
	key  string
}

// Read reads the body, and hides the key in the trailers, which are complete at its end.
func (h hiding) Read(p []byte) (n int, err error) {
	n, err = h.ReadCloser.Read(p)
	if err == io.EOF {
		hideKey(h.resp.Trailer, h.key)
	} else if err != nil {
		err = hideIn(err, h.key)
	}
	return n, err
}
