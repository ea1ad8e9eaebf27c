package proxy

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"quotabudget/internal/costs"
	"quotabudget/internal/words"
)

// TokenHeader is the header for a caller's token.
const TokenHeader = "X-Quota-Token"

// checkForm refuses a request in an unusual form.
func (x *exchange) checkForm() error {
	r := x.r
	switch {
	case r.Method == http.MethodConnect, r.Method == http.MethodTrace:
		return ambiguous("%s is not forwarded", r.Method)
	case !strings.HasPrefix(r.RequestURI, "/"), r.URL.Host != "":
		return ambiguous("send a path without a host: the proxy's address replaces the " +
			"upstream's, and does not work as http_proxy")
	case !onlyTokens(r.Header["Upgrade"], "h2c"):
		return ambiguous("Upgrade is not forwarded: what follows it could not be metered")
	case !onlyTokens(r.Header["Expect"], "100-continue"):
		return ambiguous("the only Expect that is accepted is 100-continue")
	case !onlyTokens(r.Header["Connection"], "close", "keep-alive", "upgrade", "http2-settings",
		"te"):
		return ambiguous("Connection names other headers: remove them from it")
	case len(r.Trailer) > 0:
		return ambiguous("trailers are not forwarded")
	case len(r.Header["X-Http-Method"])+len(r.Header["X-Method-Override"]) > 0:
		return ambiguous("X-HTTP-Method and X-Method-Override are not forwarded")
	case len(r.Header.Values("X-Goog-User-Project")) > 0:
		return ambiguous("X-Goog-User-Project bills another project: leave it out")
	}
	for name := range r.Header {
		if strings.Contains(name, "_") { // some servers read X_Api_Key as X-Api-Key
			return ambiguous("its header %s has an underscore: some servers take it for -",
				words.Clip(name))
		}
	}
	for _, name := range []string{"Authorization", "Content-Type", "Content-Encoding",
		TokenHeader} {
		if len(r.Header.Values(name)) > 1 {
			return ambiguous("send one %s header at most", name)
		}
	}
	return nil
}

// onlyTokens reports whether a header lists only allowed words.
func onlyTokens(values []string, allowed ...string) bool {
	for _, value := range values {
		for word := range strings.SplitSeq(value, ",") {
			if word = strings.ToLower(strings.TrimSpace(word)); word != "" &&
				!slices.Contains(allowed, word) {
				return false
			}
		}
	}
	return true
}

// checkAuthorization refuses a credential that the proxy would have to drop, because the caller
// expects it to be used.
func (x *exchange) checkAuthorization() error {
	if err := x.up.checkParameters(x.r.URL.Query()); err != nil {
		return err
	}
	value, why := x.r.Header.Get("Authorization"), ""
	switch scheme, token, _ := strings.Cut(value, " "); {
	case value == "" || x.ownToken || x.up.Table.Credential.InHeader("Authorization"):
		return nil
	case !strings.EqualFold(scheme, "Bearer") || token == "":
		why = "Authorization must be an OAuth token: Authorization: Bearer TOKEN"
	case !x.method.OAuth:
		why = x.method.ID + " takes no OAuth token: leave Authorization out, the proxy adds its " +
			"own key"
	default:
		return nil
	}
	return refusef(http.StatusBadRequest, "authorizationNotTaken",
		"authorization is not forwarded", "%s", why)
}

// checkParameters refuses a query with an OAuth token, with another project to bill than the key's,
// or with a verb or headers that Google would use instead of the request's.
func (u *Upstream) checkParameters(query url.Values) error {
	for _, name := range []string{"$httpMethod", "$httpHeaders"} {
		if query.Has(name) {
			return ambiguous("the parameter %s changes the request: leave it out", name)
		}
	}
	if query.Has("userProject") || query.Has("$userProject") {
		return ambiguous("the parameter userProject bills another project: leave it out")
	}
	for _, name := range u.Table.Credential.AllParams() {
		if isToken(name) && query.Has(name) {
			return refusef(http.StatusBadRequest, "tokenInURL", "a token is among the parameters",
				"the parameter %s is not forwarded: send the token as Authorization: Bearer", name)
		}
	}
	return nil
}

// withoutKeys removes the parameters with a program's own API key from a query, and changes no
// others.
func (u *Upstream) withoutKeys(raw string) string {
	keys := u.keyParams()
	pairs := slices.DeleteFunc(strings.Split(raw, "&"), func(pair string) bool {
		name, _, _ := strings.Cut(pair, "=")
		plain, err := url.QueryUnescape(name)
		return err != nil || slices.Contains(keys, plain)
	})
	return strings.Join(pairs, "&")
}

// dropHeaders removes headers that are meant for the proxy or that describe the caller's browser.
// The transport replaces the headers of the upstream's credential.
func (x *exchange) dropHeaders(h http.Header) {
	drop(h, "Sec-", "Access-Control-", "Origin", "Referer", "Cookie", "Expect", TokenHeader,
		"X-Api-Key", "Api-Key") // a caller's key is never for the upstream
	if !x.method.Known() { // a part of the response may lack the usage
		drop(h, "Range", "If-Range")
	}
	if x.ownToken {
		drop(h, "Authorization")
	}
}

// drop removes headers by their canonical names. A name that ends in "-" matches all names that
// begin with it.
func drop(h http.Header, names ...string) {
	for name := range h {
		if slices.ContainsFunc(names, func(n string) bool {
			return name == n || strings.HasSuffix(n, "-") && strings.HasPrefix(name, n)
		}) {
			delete(h, name)
		}
	}
}

// keepUnshared keeps a response to a caller with a token out of shared caches, which would send it
// to callers without one. The caller's own cache may revalidate it.
func keepUnshared(h http.Header) {
	set := strings.ToLower(strings.Join(h.Values("Cache-Control"), ","))
	if !strings.Contains(set, "private") && !strings.Contains(set, "no-store") {
		h.Set("Cache-Control", "private, no-cache")
	}
}

// keepUpload replaces the upstream in a Location by the proxy, so that clients continue an upload
// through the proxy.
func (x *exchange) keepUpload(resp *http.Response) {
	r := x.r
	to, err := url.Parse(resp.Header.Get("Location"))
	if err != nil || to.Host != x.up.Endpoint.Host {
		return
	}
	to.Scheme, to.Host = "http", r.Host
	if r.TLS != nil || r.Header.Get("X-Forwarded-Proto") == "https" {
		to.Scheme = "https"
	}
	if to.Path = x.word + x.prefix + to.Path; to.RawPath != "" {
		to.RawPath = x.word + x.prefix + to.RawPath
	}
	resp.Header.Set("Location", to.String())
}

// checkOverride reads a query that was sent as a form because it was too long for a URL, and
// returns it without keys.
func (u *Upstream) checkOverride(r *http.Request, form string) (string, error) {
	kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), ";")
	if !strings.EqualFold(strings.TrimSpace(kind), formType) ||
		r.Header.Get("Content-Encoding") != "" {
		return "", ambiguous("with %s the body must be %s, without a Content-Encoding",
			costs.Override, formType)
	}
	if err := costs.CheckQuery(form); err != nil {
		return "", err
	}
	query, err := url.ParseQuery(form)
	if err != nil {
		return "", err
	}
	return u.withoutKeys(form), u.checkParameters(query)
}

const formType = "application/x-www-form-urlencoded"
