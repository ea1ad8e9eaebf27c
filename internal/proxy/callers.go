package proxy

import (
	"crypto/subtle"
	"net/http"
	"strings"

	"quotabudget/internal/limit"
)

// checkWord refuses a request to the proxy of one command unless its path has the secret word,
// because other users of this machine can reach the port.
func (x *exchange) checkWord() error {
	word := x.proxy.word
	if word == "" {
		return nil
	}
	if subtle.ConstantTimeCompare([]byte(x.firstPart()), []byte(word)) != 1 {
		return refusef(http.StatusForbidden, "callerUnknown", "caller is not known",
			"this proxy only serves the command that it was started with: send requests to the "+
				"address in $QUOTA_PROXY, including its path")
	}
	x.word = "/" + word
	x.takeOff(x.word)
	x.path = x.r.URL.EscapedPath()
	return nil
}

// notAllowed refuses a request that the caller's line in the token file does not allow.
func notAllowed(detail string) *refusal {
	return refusef(http.StatusForbidden, "callerNotAllowed", "caller is not allowed", "%s", detail)
}

// keysSent returns the values that the caller sent as the upstream's API key.
func (x *exchange) keysSent() (keys []string) {
	at := x.up.Table.Credential
	for _, name := range at.AllHeaders() {
		keys = append(keys, strings.TrimPrefix(x.r.Header.Get(name), at.Prefix))
	}
	query := x.r.URL.Query()
	for _, name := range x.up.keyParams() {
		keys = append(keys, query.Get(name))
	}
	return keys
}

// identify finds the caller by its token, if tokens are required. The token is in TokenHeader, in
// Authorization, or in place of the API key.
func (x *exchange) identify() error {
	callers, r := x.proxy.Callers, x.r
	if callers == nil {
		return nil
	}
	tokens := limit.SentTokens(r.Header.Get("Authorization"))
	_, x.ownToken = callers.Of(tokens...) // the upstream never gets the token
	if token := r.Header.Get(TokenHeader); token != "" {
		tokens = []string{token}
	} else {
		tokens = append(tokens, x.keysSent()...)
	}
	var ok bool
	if x.caller, ok = callers.Of(tokens...); ok {
		if !x.caller.May(limit.ScopeCharge, limit.ScopeCharge) {
			return notAllowed("its line in the token file lacks the scope charge")
		}
		return nil
	}
	return refusef(http.StatusUnauthorized, "callerUnknown", "caller is not known",
		"send the token that this proxy gave you as %s: TOKEN, as Authorization: Bearer TOKEN, "+
			"or as your API key", TokenHeader).
		with("Www-Authenticate", `Bearer realm="quotactl proxy"`)
}
