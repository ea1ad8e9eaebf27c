package rules

import (
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/limit"
	"quotabudget/internal/quota"
	"quotabudget/internal/spell"
	"quotabudget/internal/yamlfile"
)

// maxTiers bounds the tiers of a policy.
const maxTiers = 100

// limit reads a limit of this server's requests, or a policy that programs ask for decisions.
func (r *Reader) limit(n *yaml.Node, decision bool) {
	l := limit.Rule{Policy: limit.Policy{Algorithm: limit.Log}, Cost: 1, Open: r.open}
	what, before := "limit", len(r.Problems)
	known, required := yamlfile.Fields{
		"name": func(n *yaml.Node) { l.Name = r.name(n, "limit or policy", r.names) },
		"algorithm": func(n *yaml.Node) {
			l.Algorithm = limit.Algorithm(r.word(n, "algorithm", "log", "counter", "fixed"))
		},
		"requests":     func(n *yaml.Node) { l.Units = r.Number(n, "requests", 1, limit.MaxUnits) },
		"window":       func(n *yaml.Node) { l.Window = r.duration(n, "window") },
		"count_denied": func(n *yaml.Node) { l.CountDenied = r.Bool(n, "count_denied") },
		"shards": func(n *yaml.Node) {
			l.Shards = int(r.Number(n, "shards", 1, limit.MaxShards))
		},
	}, []string{"name", "requests", "window"}
	var tiers *yaml.Node
	if decision {
		what, l.By = "policy", limit.ByDecision
	} else {
		r.requestFields(known, &l)
		known["tiers"] = func(n *yaml.Node) { tiers = n }
		required = append(required, "per")
	}
	r.Fields(n, what, known, required...)
	if tiers != nil {
		r.tiersOf(tiers, &l)
	}
	if len(r.Problems) == before {
		r.check(n, &l)
	}
	r.rules.Limits = append(r.rules.Limits, l)
}

// requestFields adds the keys of limits on this server's requests.
func (r *Reader) requestFields(known yamlfile.Fields, l *limit.Rule) {
	known["per"] = func(n *yaml.Node) {
		l.By = limit.By(r.word(n, "per", "client", "key", "organisation", "route", "global"))
	}
	known["route"] = func(n *yaml.Node) {
		item := func(n *yaml.Node) {
			if route, ok := r.Text(n, "route"); ok {
				l.Routes = append(l.Routes, route)
			}
		}
		if n.Kind == yaml.SequenceNode {
			r.List(n, "route", item)
		} else {
			item(n)
		}
	}
	known["cost"] = func(n *yaml.Node) { l.Cost = r.Number(n, "cost", 1, limit.MaxUnits) }
	known["observe"] = func(n *yaml.Node) { l.Observe = r.Bool(n, "observe") }
	known["when_unreachable"] = func(n *yaml.Node) { l.Open = r.whenUnreachable(n) }
}

// tiersOf reads the tiers. They inherit the policy's other settings.
func (r *Reader) tiersOf(n *yaml.Node, l *limit.Rule) {
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

// check reports combinations that are not valid.
func (r *Reader) check(n *yaml.Node, l *limit.Rule) {
	policies := []*limit.Policy{&l.Policy}
	for _, p := range l.Tiers {
		policies = append(policies, p)
	}
	for _, p := range policies {
		if err := p.Check(); err != nil {
			for problem := range strings.Lines(err.Error()) {
				r.Add(n, "%s: %s", l.Name, strings.TrimSpace(problem))
			}
			return
		}
		if part := limit.Part(p.Units, max(p.Shards, 1), max(p.Shards, 1)-1); l.Cost > part {
			r.Add(n, "%s: cost %d never fits into %d units", l.Name, l.Cost, part)
		}
	}
	switch {
	case l.By == limit.ByClient && l.Window > 24*time.Hour:
		r.Add(n, "%s: the window of a limit per client must be at most 24h, because addresses are "+
			"forgotten after that", l.Name)
	case len(l.Tiers) > 0 && l.By != limit.ByClient && l.By != limit.ByKey:
		r.Add(n, "%s: tiers require a limit per client or per key", l.Name)
	}
}
