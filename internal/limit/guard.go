package limit

import (
	"context"
	"fmt"
	"net/http"
	"slices"
)

// By names the callers that share a limit.
type By string

// A client is an API key or, without one, an address (see Network). A limit by key or by
// organisation applies only to requests with an API key. A limit by decision applies to no request:
// only Decide uses it.
const (
	ByClient       By = "client"
	ByRoute        By = "route"
	ByKey          By = "key"
	ByOrganisation By = "organisation"
	Global         By = "global"
	ByDecision     By = "decision"
)

// Rule is a policy for some requests.
type Rule struct {
	Policy
	Tiers   map[string]*Policy // used instead for API keys of a tier
	Routes  []string           // patterns of http.ServeMux; none means all requests
	By      By
	Cost    int64 // units of a request; 0 counts as 1
	Observe bool  // counts denials, but lets requests pass
	Open    bool  // lets undecided requests pass
}

// Guard is HTTP middleware that passes a request on to a handler if its limits allow it. Its fields
// are set once. A server wraps its handler:
//
//	mux := http.NewServeMux() // with the routes
//	g := &limit.Guard{
//		Limits: cfg.Serve.Limits,
//		Store:  limit.NewMemory(), // or limit.NewRedis(client)
//		Route:  func(r *http.Request) string { _, pattern := mux.Handler(r); return pattern },
//		Caller: cfg.Serve.Known.Of,
//	}
//	server.Handler = g.Wrap(mux)
//
// A decision service calls g.Decide instead.
type Guard struct {
	Limits []Rule
	Store  Store
	Route  func(*http.Request) string // returns the pattern that serves the request
	Caller func(*http.Request) Caller
	Stats  *Stats // counts decisions, if set
	// Unreachable, if set, is called for each request that could not be decided; r is nil in a call
	// of Decide.
	Unreachable func(r *http.Request, err error)
	// Answer, if set, writes the response to a refused request instead of Problem.Write. The
	// RateLimit fields are set by then.
	Answer func(w http.ResponseWriter, r *http.Request, p Problem)
}

// request is a request to decide: the limits that apply to it, and the ask of each.
type request struct {
	*http.Request // nil in a call of Decide
	caller        Caller
	route         string
	limits        []*Rule
	asks          []Ask
}

// Wrap returns a handler that decides each request before next serves it.
func (g *Guard) Wrap(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		q := request{Request: r, caller: g.Caller(r), route: g.Route(r)}
		if g.pass(w, q) {
			g.observe(q)
			next.ServeHTTP(w, r)
		}
	})
}

// apply finds the limits of the request that are enforced, or those only observed, and makes their
// asks. It sets them even if it fails.
func (q *request) apply(g *Guard, observed bool) (err error) {
	c := q.caller
	var salt []byte
	for i := range g.Limits {
		l := &g.Limits[i]
		if l.Observe != observed || len(l.Routes) > 0 && !slices.Contains(l.Routes, q.route) {
			continue
		}
		a := Ask{Policy: &l.Policy, Cost: max(l.Cost, 1)}
		if p, ok := l.Tiers[c.Tier]; ok && c.Key != "" {
			a.Policy = p
		}
		switch {
		case l.By == ByClient && c.Key == "":
			if salt == nil && err == nil {
				salt, err = g.Store.Salt(q.Context())
			}
			a.Key = saltedKey(salt, "address "+c.Network)
		case l.By == ByClient, l.By == ByKey && c.Key != "":
			a.Key = FixedKey("key " + c.Key)
		case l.By == ByOrganisation && c.Organisation != "":
			a.Key = FixedKey("organisation " + c.Organisation)
		case l.By == ByRoute:
			a.Key = FixedKey("route " + q.route)
		case l.By != Global:
			continue
		}
		q.limits, q.asks = append(q.limits, l), append(q.asks, a)
	}
	if err != nil {
		g.unreachable(q.Request, err)
	}
	return err
}

// pass decides the request, and answers it if it is denied.
func (g *Guard) pass(w http.ResponseWriter, q request) bool {
	err := q.apply(g, false)
	if len(q.asks) == 0 {
		return true
	}
	allowed := false
	if err == nil {
		allowed, err = g.take(q.Context(), q)
	}
	answer := g.Answer
	if answer == nil {
		answer = func(w http.ResponseWriter, _ *http.Request, p Problem) { p.Write(w) }
	}
	switch {
	case err != nil && slices.ContainsFunc(q.limits, func(l *Rule) bool { return !l.Open }):
		w.Header().Set("Retry-After", "5")
		answer(w, q.Request, Problem{Type: ReducedCapacity, Title: "Limits cannot be checked",
			Status: http.StatusServiceUnavailable, Detail: "the store of the limits cannot be " +
				"reached; try again in a few seconds"})
		return false
	case err != nil:
		return true
	}
	fields(w.Header(), q.asks, allowed)
	if !allowed {
		answer(w, q.Request, TooMany(w.Header(), q.asks))
	}
	return allowed
}

// observe counts requests that an observed limit would deny.
func (g *Guard) observe(q request) {
	if q.apply(g, true) != nil {
		return
	}
	for i := range q.asks { // each by itself, so that a denial keeps no other limit from counting
		one := q
		one.limits, one.asks = q.limits[i:i+1], q.asks[i:i+1]
		if _, err := g.take(q.Context(), one); err != nil {
			return
		}
	}
}

// take sends the asks to the store and counts its decisions.
func (g *Guard) take(ctx context.Context, q request) (bool, error) {
	allowed, err := g.Store.Take(ctx, q.asks)
	if err != nil {
		g.unreachable(q.Request, err)
		return false, err
	}
	g.Stats.count(q, allowed)
	return allowed, nil
}

func (g *Guard) unreachable(r *http.Request, err error) {
	if s := g.Stats; s != nil {
		s.mu.Lock()
		s.offline++
		s.mu.Unlock()
	}
	if g.Unreachable != nil {
		g.Unreachable(r, err)
	}
}

// NoPolicyError reports that no limit by decision has the requested name.
type NoPolicyError struct{ Policy string }

func (e *NoPolicyError) Error() string {
	return fmt.Sprintf("no policy %q for decisions", e.Policy)
}

// Decide asks a policy by decision on behalf of another program, for a key of its choice. A key
// exists from its first use. A cost of 0 only reads. A nil Guard has no policies.
func (g *Guard) Decide(ctx context.Context, policy, key string, cost int64) (Decision, error) {
	if g == nil {
		return Decision{}, &NoPolicyError{policy}
	}
	for i := range g.Limits {
		l := &g.Limits[i]
		if l.By != ByDecision || l.Name != policy {
			continue
		}
		salt, err := g.Store.Salt(ctx)
		if err != nil {
			g.unreachable(nil, err)
			return Decision{}, err
		}
		asks := []Ask{{Policy: &l.Policy, Key: saltedKey(salt, "decision "+key), Cost: cost}}
		_, err = g.take(ctx, request{limits: []*Rule{l}, asks: asks})
		if err == nil && l.Observe {
			asks[0].Allowed = true
		}
		return asks[0].Decision, err
	}
	return Decision{}, &NoPolicyError{policy}
}
