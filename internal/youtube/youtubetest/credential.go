package youtubetest

import (
	"net/http"
	"slices"
	"strings"
)

// credentialError is why the request has no right to call the method, or nil. An API key, a user's
// token, or both may come with it; what comes must be good.
func (s *Server) credentialError(r *http.Request, m method) *apiError {
	key := r.Header.Get("X-Goog-Api-Key")
	if key == "" {
		key = r.URL.Query().Get("key")
	}
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case token != "" && len(s.Tokens) > 0 && !slices.Contains(s.Tokens, token):
		return errLogin("authError", "Request had invalid authentication credentials.")
	case token == "" && len(s.Tokens) > 0 && m.verb != http.MethodGet:
		return errLogin("required",
			"API keys are not supported by this API. Expected OAuth2 access token.")
	case key == "" && token == "":
		return errKeyMissing()
	case key != "" && len(s.Keys) > 0 && !slices.Contains(s.Keys, key):
		return errKeyInvalid()
	}
	return nil
}

func errLogin(reason, message string) *apiError {
	return &apiError{Code: http.StatusUnauthorized, Domain: "global", Reason: reason,
		Status: "UNAUTHENTICATED", Message: message}
}
