package rules

import (
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/limit"
	"quotabudget/internal/limit/guard"
	"quotabudget/internal/quota"
	"quotabudget/internal/spell"
	"quotabudget/internal/yamlfile"
)

// maxTiers bounds the tiers of a policy.
const maxTiers = 100

func (r *reader) policy(n *yaml.Node) {
	l := guard.Limit{Policy: limit.Policy{Algorithm: limit.Log}, Cost: 1}
	var tiers *yaml.Node
	before := len(r.Problems)
	r.Fields(n, "policy", yamlfile.Fields{
		"name": func(n *yaml.Node) { l.Name = r.name(n, "policy", r.names) },
		"by": func(n *yaml.Node) {
			l.By = guard.By(r.word(n, "by", "client", "key", "organisation", "route", "global",
				"decision"))
		},
		"algorithm": func(n *yaml.Node) {
			l.Algorithm = limit.Algorithm(r.word(n, "algorithm", "log", "counter", "fixed"))
		},
		"limit":  func(n *yaml.Node) { l.Units = r.Number(n, "limit", 1, limit.MaxUnits) },
		"window": func(n *yaml.Node) { l.Window = r.duration(n, "window") },
		"cost":   func(n *yaml.Node) { l.Cost = r.Number(n, "cost", 1, limit.MaxUnits) },
		"routes": func(n *yaml.Node) {
			r.List(n, "routes", func(n *yaml.Node) {
				if route, ok := r.Text(n, "routes"); ok {
					l.Routes = append(l.Routes, route)
				}
			})
		},
		"tiers": func(n *yaml.Node) { tiers = n },
		"when_unreachable": func(n *yaml.Node) {
			l.Open = r.word(n, "when_unreachable", "closed", "open") == "open"
		},
		"observe":      func(n *yaml.Node) { l.Observe = r.Bool(n, "observe") },
		"count_denied": func(n *yaml.Node) { l.CountDenied = r.Bool(n, "count_denied") },
		"shards":       func(n *yaml.Node) { l.Shards = int(r.Number(n, "shards", 1, limit.MaxShards)) },
	}, "name", "by", "limit", "window")
	if tiers != nil {
		r.tiersOf(tiers, &l)
	}
	if len(r.Problems) == before {
		r.check(n, &l)
	}
	r.rules.Limits = append(r.rules.Limits, l)
}

// tiersOf reads the limits of tiers: what the policy says otherwise is theirs, too.
func (r *reader) tiersOf(n *yaml.Node, l *guard.Limit) {
	l.Tiers = map[string]*limit.Policy{}
	r.Each(n, "tiers", func(tier string, key, value *yaml.Node) {
		if err := quota.CheckName(tier); err != nil {
			r.Add(key, "tiers: %v", err)
		}
		if len(l.Tiers) == maxTiers {
			r.Add(key, "tiers: more than %d", maxTiers)
		}
		p := l.Policy
		p.Units = r.Number(value, "tiers: "+spell.Clip(tier), 1, limit.MaxUnits)
		l.Tiers[tier] = &p
		r.tiers[tier] = true
	})
}

// check reports what does not fit together.
func (r *reader) check(n *yaml.Node, l *guard.Limit) {
	policies := []*limit.Policy{&l.Policy}
	for _, p := range l.Tiers {
		policies = append(policies, p)
	}
	for _, p := range policies {
		if err := p.Check(); err != nil {
			for problem := range strings.Lines(err.Error()) {
				r.Add(n, "policy %s: %s", l.Name, strings.TrimSpace(problem))
			}
			return
		}
		if part := limit.Part(p.Units, max(p.Shards, 1), max(p.Shards, 1)-1); l.Cost > part {
			r.Add(n, "policy %s: a cost of %d never fits into %d units", l.Name, l.Cost, part)
		}
	}
	switch {
	case l.By == guard.ByClient && l.Window > 24*time.Hour:
		r.Add(n, "policy %s: by client, the window is at most 24h, because addresses are "+
			"forgotten after that", l.Name)
	case len(l.Tiers) > 0 && l.By != guard.ByClient && l.By != guard.ByKey:
		r.Add(n, "policy %s: tiers are for policies by client or by key", l.Name)
	case len(l.Routes) > 0 && l.By == guard.ByDecision:
		r.Add(n, "policy %s: a policy by decision has no routes", l.Name)
	}
}
