package youtubetest

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// maxForm is how many bytes of parameters are read from a body.
const maxForm = 1 << 20

// overridden turns a POST with X-HTTP-Method-Override: GET, which a client sends when the URL gets
// too long, into the GET that it stands for: the parameters of its form join those of the URL.
func overridden(r *http.Request) (*http.Request, error) {
	if r.Method != http.MethodPost || r.Header.Get("X-Http-Method-Override") != http.MethodGet {
		return r, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxForm))
	if err != nil {
		return nil, fmt.Errorf("form: %w", err)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, fmt.Errorf("form: %w", err)
	}
	get := r.Clone(r.Context())
	get.Method = http.MethodGet
	get.URL.RawQuery = strings.Trim(get.URL.RawQuery+"&"+form.Encode(), "&")
	return get, nil
}
