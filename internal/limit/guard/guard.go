// Package guard lets requests through to an http.Handler as far as its limits allow.
//
// A server sets up a Guard and wraps its handler once:
//
//	mux := http.NewServeMux() // with the routes
//	g := &guard.Guard{
//		Limits: rules.Limits,           // as configured; see package rules
//		Store:  limit.NewMemory(),      // or redislimit.New(client)
//		Route:  func(r *http.Request) string { _, pattern := mux.Handler(r); return pattern },
//		Caller: rules.Known.Of,
//		Hash:   &guard.Hash{},          // with Salt: store.Salt on Redis
//	}
//	server.Handler = g.Wrap(mux)
//
// A decision service asks g.Decide instead. A store in memory also needs its Run in a goroutine.
package guard

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"
	"time"

	"quotabudget/internal/limit"
	"quotabudget/internal/limit/caller"
)

// By says who shares a limit.
type By string

// A client is an address (see caller.Network) or, if the request has one, an API key. A limit by
// key or by organisation concerns only requests with an API key, and one by decision none: only
// Decide asks it.
const (
	ByClient       By = "client"
	ByRoute        By = "route"
	ByKey          By = "key"
	ByOrganisation By = "organisation"
	Global         By = "global"
	ByDecision     By = "decision"
)

// Limit is a policy for some requests.
type Limit struct {
	limit.Policy
	Tiers   map[string]*limit.Policy // what counts instead for API keys of a tier
	Routes  []string                 // the patterns of http.ServeMux that it is for; none is all
	By      By
	Cost    int64 // units of a request; 0 counts as 1
	Observe bool  // what it would deny passes, and is counted
	Open    bool  // what cannot be decided passes
}

// policy is what counts for a caller.
func (l *Limit) policy(c caller.Caller) *limit.Policy {
	if p, ok := l.Tiers[c.Tier]; ok && c.Key != "" {
		return p
	}
	return &l.Policy
}

// Guard is a middleware. Its fields are set once.
type Guard struct {
	Limits []Limit
	Store  limit.Store
	Route  func(*http.Request) string // the pattern that serves the request
	Caller func(*http.Request) caller.Caller
	Hash   *Hash
	Stats  *Stats // if set, counts what was decided
	// Denied and Unreachable, if set, are told of each denial (observed or not) and of each
	// request that could not be decided; r is nil for a decision.
	Denied      func(r *http.Request, l *Limit, c caller.Caller, d limit.Decision)
	Unreachable func(r *http.Request, err error)
}

// request is one that is to be decided: the limits that concern it, and what each is asked.
type request struct {
	*http.Request
	caller caller.Caller
	limits []*Limit
	asks   []limit.Ask
}

// Wrap returns a handler that asks before next does anything.
func (g *Guard) Wrap(next http.Handler) http.Handler {
	enforced, observed := g.byRoute(false), g.byRoute(true)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		route, who, now := g.Route(r), g.Caller(r), time.Now()
		if !g.pass(w, r, who, enforced.of(route), route, now) {
			return
		}
		if limits := observed.of(route); len(limits) > 0 {
			g.observe(r, who, limits, route, now)
		}
		next.ServeHTTP(w, r)
	})
}

// routes is the limits of each route; those of "" are for every other route.
type routes map[string][]*Limit

func (g *Guard) byRoute(observed bool) routes {
	all := routes{}
	add := func(route string, l *Limit) { all[route] = append(all[route], l) }
	for i := range g.Limits {
		l := &g.Limits[i]
		if l.Observe != observed || l.By == ByDecision {
			continue
		}
		for _, route := range l.Routes {
			add(route, l)
		}
		if len(l.Routes) == 0 {
			add("", l)
		}
	}
	for route := range all {
		if route != "" {
			all[route] = slices.Concat(all[""], all[route])
		}
	}
	return all
}

func (all routes) of(route string) []*Limit {
	if limits, ok := all[route]; ok {
		return limits
	}
	return all[""]
}

// request asks the limits that concern a caller. They are known even after an error.
func (g *Guard) request(r *http.Request, c caller.Caller, limits []*Limit, route string,
	now time.Time) (request, error) {
	q := request{Request: r, caller: c, limits: make([]*Limit, 0, len(limits)),
		asks: make([]limit.Ask, 0, len(limits))}
	var failed error
	for _, l := range limits {
		a := limit.Ask{Policy: l.policy(c), Cost: max(l.Cost, 1)}
		var err error
		switch {
		case l.By == ByClient && c.Key == "":
			a.Key, a.Before, err = g.Hash.Daily(r.Context(), "address "+c.Network, now, l.Window)
		case l.By == ByClient, l.By == ByKey && c.Key != "":
			a.Key = Fixed("key " + c.Key)
		case l.By == ByOrganisation && c.Organisation != "":
			a.Key = Fixed("organisation " + c.Organisation)
		case l.By == ByRoute:
			a.Key = Fixed("route " + route)
		case l.By != Global:
			continue
		}
		failed = cmp.Or(failed, err)
		q.limits, q.asks = append(q.limits, l), append(q.asks, a)
	}
	return q, failed
}

// pass decides, and answers the request itself if it is denied.
func (g *Guard) pass(w http.ResponseWriter, r *http.Request, c caller.Caller, limits []*Limit,
	route string, now time.Time) bool {
	if len(limits) == 0 {
		return true
	}
	q, err := g.request(r, c, limits, route, now)
	allowed := true
	if err == nil && len(q.asks) > 0 {
		allowed, err = g.Store.Take(r.Context(), q.asks)
	}
	if err != nil {
		g.unreachable(r, err)
		if slices.ContainsFunc(q.limits, func(l *Limit) bool { return !l.Open }) {
			unavailable(w)
			return false
		}
		return true
	}
	g.report(q, allowed)
	fields(w.Header(), q.asks)
	if !allowed {
		deny(w, q.asks)
	}
	return allowed
}

// observe counts what would have been denied.
func (g *Guard) observe(r *http.Request, c caller.Caller, limits []*Limit, route string,
	now time.Time) {
	q, err := g.request(r, c, limits, route, now)
	if err != nil {
		g.unreachable(r, err)
		return
	}
	for i := range q.asks { // each by itself: one that denies must not keep another from counting
		one := request{r, c, q.limits[i : i+1], q.asks[i : i+1]}
		allowed, err := g.Store.Take(r.Context(), one.asks)
		if err != nil {
			g.unreachable(r, err)
			return
		}
		g.report(one, allowed)
	}
}

func (g *Guard) unreachable(r *http.Request, err error) {
	g.Stats.unreachable()
	if g.Unreachable != nil {
		g.Unreachable(r, err)
	}
}

func (g *Guard) report(q request, allowed bool) {
	for i := range q.asks {
		g.Stats.count(q.limits[i], q.caller, &q.asks[i], allowed)
		if !q.asks[i].Allowed && g.Denied != nil {
			g.Denied(q.Request, q.limits[i], q.caller, q.asks[i].Decision)
		}
	}
}

// NoPolicyError says that no limit by decision has the name that was asked for.
type NoPolicyError struct{ Policy string }

func (e *NoPolicyError) Error() string {
	return fmt.Sprintf("no policy %q for decisions", e.Policy)
}

// Decide asks a policy by decision on behalf of another program, for a key of its choice. A key
// exists from its first use on. A cost of 0 only looks. A nil Guard has no policies.
func (g *Guard) Decide(ctx context.Context, policy, key string,
	cost int64) (limit.Decision, error) {
	if g == nil {
		return limit.Decision{}, &NoPolicyError{policy}
	}
	for i := range g.Limits {
		l := &g.Limits[i]
		if l.By != ByDecision || l.Name != policy {
			continue
		}
		asks := []limit.Ask{{Policy: &l.Policy, Key: Fixed("decision " + key), Cost: cost}}
		if l.Window <= aDay {
			var err error
			asks[0].Key, asks[0].Before, err = g.Hash.Daily(ctx, "decision "+key, time.Now(), l.Window)
			if err != nil {
				g.unreachable(nil, err)
				return limit.Decision{}, err
			}
		}
		allowed, err := g.Store.Take(ctx, asks)
		if err == nil {
			g.Stats.count(l, caller.Caller{}, &asks[0], allowed)
			if l.Observe {
				asks[0].Allowed = true
			}
		} else {
			g.unreachable(nil, err)
		}
		return asks[0].Decision, err
	}
	return limit.Decision{}, &NoPolicyError{policy}
}
