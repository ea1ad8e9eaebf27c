package serve

import (
	"hash/maphash"
	"net/http"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"quotabudget/internal/limit"
)

// guesses limits how many wrong tokens an address can try. While it may not try any more, the right
// one does not open anything either.
//
// Its memory is bounded: addresses share slots, which no caller can foresee. So somebody who sends
// a token may be kept out by the guesses of another address, and nobody else is.
type guesses struct {
	policy limit.Policy
	counts *limit.Memory
	seed   maphash.Seed
}

const wrongTokens = 10 // a minute

func newGuesses() *guesses {
	return &guesses{counts: limit.NewMemory(), seed: maphash.MakeSeed(),
		policy: limit.Policy{Name: "wrong-tokens", Units: wrongTokens, Window: time.Minute,
			Algorithm: limit.Counter}}
}

// try counts a wrong token, and returns the denial of any token if there were too many.
func (g *guesses) try(network string, right bool) []limit.Ask {
	slot := maphash.String(g.seed, network)
	asks := []limit.Ask{{Policy: &g.policy, Key: limit.Key{byte(slot), byte(slot >> 8)}}}
	if right {
		if g.counts.TakeAt(g.counts.Now(), asks); asks[0].Remaining > 0 {
			return nil
		}
	}
	if asks[0].Cost = 1; g.counts.TakeAt(g.counts.Now(), asks) {
		return nil
	}
	return asks
}

// guessing refuses clients that try one token after another.
func (s *Server) guessing(next http.Handler, takesToken func(*http.Request) bool,
	refuse func(http.ResponseWriter, *http.Request, limit.Problem)) http.Handler {
	if !s.Public || s.Tokens == nil {
		return next
	}
	known, tried := s.callers(), newGuesses()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		sent := r.Header.Get("Authorization")
		if sent != "" && takesToken(r) {
			c, right := known(r), s.mayReadPrivate(sent)
			if right || !isKey(c, sent) {
				if asks := tried.try(c.Network, right); asks != nil {
					refuse(w, r, limit.TooMany(w.Header(), asks))
					return
				}
			}
		}
		next.ServeHTTP(w, r)
	})
}

// isKey reports whether a caller's API key is what it sent as Authorization.
func isKey(c limit.Caller, authorization string) bool {
	scheme, _, _ := strings.Cut(authorization, " ")
	return c.Key != "" && strings.EqualFold(scheme, "Bearer")
}

// callers returns a function that names the sender of a request.
func (s *Server) callers() func(*http.Request) limit.Caller {
	if s.Guard != nil {
		return s.Guard.Caller
	}
	return (&limit.Known{}).Of
}

// tokenRoutes reports which requests take a token: of the API, those that the document says may be
// answered 401, and of the rest, all but those that everybody may send, however often.
func tokenRoutes(document *huma.OpenAPI,
	route func(*http.Request) string) func(*http.Request) bool {
	private := make(map[string]bool)
	for path, item := range document.Paths {
		for method, o := range map[string]*huma.Operation{
			http.MethodGet: item.Get, http.MethodPost: item.Post} {
			if o != nil && o.Responses["401"] != nil {
				private[method+" "+path] = true
			}
		}
	}
	return func(r *http.Request) bool {
		path := r.URL.Path
		if strings.HasPrefix(path, "/v1/") {
			return private[route(r)]
		}
		return !strings.HasPrefix(path, "/s/") && path != "/healthz"
	}
}
