package main

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"

	"quotabudget/internal/config"
	"quotabudget/internal/limit"
	"quotabudget/internal/words"
)

// serveShown is the section serve of the configuration in force.
type serveShown struct {
	Listen    string         `json:"listen"`
	Public    bool           `json:"public"`
	TokenFile *string        `json:"token_file"`
	Hosts     []string       `json:"hosts"`
	Store     string         `json:"store"`
	Proxies   []netip.Prefix `json:"trusted_proxies"`
	Keys      []callerShown  `json:"keys"` // without their hashes
	Limits    []guardShown   `json:"limits"`
	Policies  []guardShown   `json:"policies"`
}

type callerShown struct {
	Name         string `json:"name"`
	Organisation string `json:"organisation,omitempty"`
	Tier         string `json:"tier,omitempty"`
}

// guardShown is a limit on callers, or a policy for decisions, which has no per.
type guardShown struct {
	Name            string           `json:"name"`
	Per             limit.By         `json:"per,omitempty"`
	Route           []string         `json:"route,omitempty"`
	Requests        int64            `json:"requests"`
	Window          string           `json:"window"`
	WindowS         int64            `json:"window_seconds"`
	Algorithm       limit.Algorithm  `json:"algorithm"`
	Cost            int64            `json:"cost"`
	Tiers           map[string]int64 `json:"tiers,omitempty"`
	CountDenied     bool             `json:"count_denied"`
	Observe         bool             `json:"observe"`
	Shards          int              `json:"shards"`
	WhenUnreachable string           `json:"when_unreachable"`
}

// newServe is nil where nothing is configured.
func newServe(s config.Serve) *serveShown {
	if !s.Configured {
		return nil
	}
	out := &serveShown{Listen: s.Listen, Public: s.Public, TokenFile: words.OrNull(s.TokenFile),
		Hosts: append([]string{}, s.Hosts...), Store: "memory",
		Proxies: append([]netip.Prefix{}, s.Rules.Known.Proxies...),
		Keys:    []callerShown{}, Limits: []guardShown{}, Policies: []guardShown{}}
	if s.Rules.OnRedis {
		out.Store = "redis"
	}
	byName := func(a, b limit.APIKey) int { return cmp.Compare(a.Name, b.Name) }
	for _, k := range slices.SortedFunc(maps.Values(s.Rules.Known.Keys), byName) {
		out.Keys = append(out.Keys, callerShown(k))
	}
	for _, l := range s.Rules.Limits {
		if shown := newGuard(l); l.By == limit.ByDecision {
			shown.Per = ""
			out.Policies = append(out.Policies, shown)
		} else {
			out.Limits = append(out.Limits, shown)
		}
	}
	return out
}

func newGuard(l limit.Rule) guardShown {
	out := guardShown{Name: l.Name, Per: l.By, Route: l.Routes, Requests: l.Units,
		Window: l.Window.String(), WindowS: words.Seconds(l.Window), Algorithm: l.Algorithm,
		Cost: l.Cost, Tiers: make(map[string]int64), CountDenied: l.CountDenied,
		Observe: l.Observe, Shards: max(l.Shards, 1), WhenUnreachable: "closed"}
	if l.Open {
		out.WhenUnreachable = "open"
	}
	for tier, p := range l.Tiers {
		out.Tiers[tier] = p.Units
	}
	return out
}
