package serve

import (
	"maps"
	"net"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"quotabudget/internal/limit"
)

// securityHeaders are sent with every response, pageHeaders with every response outside the API. A
// page loads only files of this server, and no other page may frame it. Each further header costs
// about a microsecond.
var (
	securityHeaders = http.Header{
		"Content-Security-Policy": {"default-src 'none'; script-src 'self'; style-src 'self'; " +
			"img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; " +
			"frame-ancestors 'none'"},
		"X-Content-Type-Options": {"nosniff"},
	}
	pageHeaders = http.Header{
		"Referrer-Policy":            {"same-origin"},
		"Cross-Origin-Opener-Policy": {"same-origin"},
	}
)

// checked refuses requests to foreign hosts, and sets the security headers.
func (s *Server) checked(next http.Handler) http.Handler {
	browsers := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		maps.Copy(w.Header(), securityHeaders)
		if !strings.HasPrefix(r.URL.Path, "/v1/") {
			maps.Copy(w.Header(), pageHeaders)
		}
		if !s.named(r) {
			writeProblem(w, huma.NewError(http.StatusMisdirectedRequest,
				"this server does not have that name: add it to hosts: under serve:"))
			return
		}
		if browsers.Check(r) != nil {
			writeProblem(w, huma.Error403Forbidden("a page of another site can only read here"))
			return
		}
		if s.Public { // public data may be fetched by any web page
			w.Header().Set("Access-Control-Allow-Origin", "*")
			w.Header().Set("Access-Control-Expose-Headers", "ETag, Retry-After, RateLimit, "+
				"RateLimit-Policy, X-RateLimit-Limit, X-RateLimit-Remaining, X-RateLimit-Reset")
			if preflight(r) {
				maps.Copy(w.Header(), mayRead)
				w.WriteHeader(http.StatusNoContent)
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// mayRead sets which headers a page of another site may send: an API key or a token. Browsers may
// cache that for two hours, the longest that all of them accept.
var mayRead = http.Header{
	"Access-Control-Allow-Methods": {"GET, HEAD"},
	"Access-Control-Allow-Headers": {"Authorization, X-API-Key, If-None-Match"},
	"Access-Control-Max-Age":       {"7200"},
	"Vary":                         {"Access-Control-Request-Method"},
}

// preflight reports whether the request is a browser's CORS preflight for reading the API.
func preflight(r *http.Request) bool {
	method := r.Header.Get("Access-Control-Request-Method")
	return r.Method == http.MethodOptions && r.Header.Get("Origin") != "" &&
		(method == http.MethodGet || method == http.MethodHead) &&
		(strings.HasPrefix(r.URL.Path, "/v1/") || r.URL.Path == "/openapi.json")
}

// named reports whether the request's host is a name of this server. In a DNS rebinding attack, a
// foreign name points here, and the browser sends that name. Public data needs no such check.
func (s *Server) named(r *http.Request) bool {
	host, _, err := net.SplitHostPort(r.Host)
	if err != nil {
		host = r.Host
	}
	host = strings.TrimSuffix(strings.ToLower(strings.Trim(host, "[]")), ".")
	switch host {
	case "localhost", "127.0.0.1", "::1":
		return true
	}
	local, _ := r.Context().Value(http.LocalAddrContextKey).(*net.TCPAddr)
	return s.Public || slices.Contains(s.Hosts, host) || local != nil && host == local.IP.String()
}

// mayReadPrivate reports whether a request with this Authorization may read budgets, forecast, plan
// and log. A browser that prompts for a name and a password sends the token as the password.
func (s *Server) mayReadPrivate(authorization string) bool {
	if !s.Public {
		return true
	}
	caller, isKnown := s.Tokens.Of(limit.SentTokens(authorization)...)
	return isKnown && caller.May(limit.ScopeRead, limit.ScopeRead)
}

// tokenRefusal returns why the server does not take the Authorization header of a caller.
func (s *Server) tokenRefusal(authorization string) string {
	sent := limit.SentTokens(authorization)
	switch _, known := s.Tokens.Of(sent...); {
	case known:
		return "this token may not read: its line in the token file lacks the scope read"
	case len(sent) > 0:
		return "the token is not in token_file"
	}
	return "send a token of token_file as Authorization: Bearer TOKEN"
}

// private makes an operation require a token if the server is public.
func (s *Server) private(api huma.API) func(*huma.Operation) {
	return func(o *huma.Operation) {
		o.Errors = append(o.Errors, http.StatusUnauthorized)
		o.Middlewares = append(o.Middlewares, func(ctx huma.Context, next func(huma.Context)) {
			ctx.SetHeader("Cache-Control", unshared)
			ctx.AppendHeader("Vary", "Authorization")
			if s.mayReadPrivate(ctx.Header("Authorization")) {
				next(ctx)
				return
			}
			ctx.SetHeader("WWW-Authenticate", "Bearer")
			huma.WriteErr(api, ctx, http.StatusUnauthorized,
				s.tokenRefusal(ctx.Header("Authorization")))
		})
	}
}
