// Package rules reads the limits of a server from its configuration.
//
//	trusted_proxies: [10.0.0.0/8]         # whose forwarding headers are believed
//	store: memory                         # or redis: the ledger's
//	when_unreachable: open                # or closed, the default
//	keys:                                 # API keys, by their SHA-256
//	  - {name: acme-1, organisation: acme, tier: gold, hash: "sha256:9f86d0…"}
//	limits:
//	  - name: client                      # 60 requests a minute from an address, 600 with a gold key
//	    per: client                       # client, key, organisation, route or global
//	    requests: 60
//	    window: 1m
//	    tiers: {gold: 600}
//	  - name: search                      # a search counts as 5
//	    per: global
//	    route: GET /v1/search             # or a list
//	    algorithm: counter                # log (the default), counter or fixed
//	    requests: 5_000
//	    window: 1m
//	    cost: 5
//	    shards: 4                         # parts of a hot key
//	    when_unreachable: open
//	    observe: true                     # only count what it would deny
//	    count_denied: true                # denied requests count, too
//	policies:                             # for programs that ask for a decision
//	  - {name: uploads, requests: 5, window: 10s}
package rules

import (
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/limit"
	"quotabudget/internal/quota"
	"quotabudget/internal/spell"
	"quotabudget/internal/yamlfile"
)

// Rules are the limits of a server. The zero value limits no client.
type Rules struct {
	OnRedis bool // charges are kept on the ledger's Redis, for all processes together
	Limits  []limit.Rule
	Known   limit.Known
}

// Reader reads limits among the other keys of a section. NewReader creates it.
type Reader struct {
	*yamlfile.Reader
	rules  Rules
	open   bool                  // the section's when_unreachable
	names  map[string]bool       // names of limits and policies
	keys   map[string]bool       // names of API keys
	tiers  map[string]bool       // tiers of limits
	tierAt map[string]*yaml.Node // tiers that keys name, and where
	later  []func()              // checks to run once the whole section is read
}

// NewReader returns a reader that adds its problems to in.
func NewReader(in *yamlfile.Reader) *Reader {
	return &Reader{Reader: in, names: map[string]bool{}, keys: map[string]bool{},
		tiers: map[string]bool{}, tierAt: map[string]*yaml.Node{}}
}

// AddTo adds the keys it reads to those of the section.
func (r *Reader) AddTo(known yamlfile.Fields) {
	list := func(name string, item func(*yaml.Node)) func(*yaml.Node) {
		return func(n *yaml.Node) {
			r.later = append(r.later, func() { r.List(n, name, item) })
		}
	}
	known["store"] = func(n *yaml.Node) {
		r.rules.OnRedis = r.word(n, "store", "memory", "redis") == "redis"
	}
	known["when_unreachable"] = func(n *yaml.Node) { r.open = r.whenUnreachable(n) }
	known["trusted_proxies"] = func(n *yaml.Node) { r.List(n, "trusted_proxies", r.proxy) }
	known["keys"] = func(n *yaml.Node) { r.List(n, "keys", r.key) }
	known["limits"] = list("limits", func(n *yaml.Node) { r.limit(n, false) })
	known["policies"] = list("policies", func(n *yaml.Node) { r.limit(n, true) })
}

// Rules returns the result. Call it once, after the section is read.
func (r *Reader) Rules() Rules {
	for _, read := range r.later {
		read()
	}
	for tier, at := range r.tierAt {
		if !r.tiers[tier] {
			r.Add(at, "tier: no limit has a tier %q%s", spell.Clip(tier),
				spell.DidYouMean(tier, slices.Collect(maps.Keys(r.tiers))))
		}
	}
	return r.rules
}

// linksRoute creates short links, which are stored permanently.
const linksRoute = "POST /v1/links"

// LimitLinks limits the short links a client creates per minute, unless a configured limit names
// that route. A limit that only applies to requests with an API key does not count.
func (r *Reader) LimitLinks() {
	r.later = append(r.later, func() {
		for _, l := range r.rules.Limits {
			if slices.Contains(l.Routes, linksRoute) && l.By != limit.ByKey &&
				l.By != limit.ByOrganisation {
				return
			}
		}
		r.rules.Limits = append(r.rules.Limits, limit.Rule{
			Policy: limit.Policy{Name: "default.links", // no configured name has a dot
				Units: 10, Window: time.Minute, Algorithm: limit.Log},
			Routes: []string{linksRoute}, By: limit.ByClient, Cost: 1, Open: r.open})
	})
}

func (r *Reader) whenUnreachable(n *yaml.Node) bool {
	return r.word(n, "when_unreachable", "closed", "open") == "open"
}

// word reads one of the given words. The first is the default.
func (r *Reader) word(n *yaml.Node, what string, words ...string) string {
	text, ok := r.Text(n, what)
	if !ok || slices.Contains(words, text) {
		return text
	}
	last := len(words) - 1
	r.Add(n, "%s: %q: write %s or %s", what, spell.Clip(text),
		strings.Join(words[:last], ", "), words[last])
	return words[0]
}

// proxy reads an address, or a network such as 10.0.0.0/8.
func (r *Reader) proxy(n *yaml.Node) {
	text, ok := r.Text(n, "trusted_proxies")
	if !ok {
		return
	}
	prefix, err := netip.ParsePrefix(text)
	if addr, failed := netip.ParseAddr(text); failed == nil && addr.Zone() == "" {
		prefix, err = addr.Prefix(addr.BitLen())
	}
	switch {
	case err != nil:
		r.Add(n, "trusted_proxies: %q is neither an address nor a network such as 10.0.0.0/8",
			spell.Clip(text))
	case prefix.Bits() == 0:
		r.Add(n, "trusted_proxies: %s trusts everybody, so anybody could make up an address: "+
			"write the addresses of your proxies", text)
	default:
		r.rules.Known.Proxies = append(r.rules.Known.Proxies, prefix.Masked())
	}
}

func (r *Reader) key(n *yaml.Node) {
	var k limit.APIKey
	var digest limit.Digest
	r.Fields(n, "key", yamlfile.Fields{
		"name":         func(n *yaml.Node) { k.Name = r.name(n, "key", r.keys) },
		"organisation": func(n *yaml.Node) { k.Organisation, _ = r.Text(n, "organisation") },
		"tier": func(n *yaml.Node) {
			if tier, ok := r.Text(n, "tier"); ok {
				k.Tier, r.tierAt[tier] = tier, n
			}
		},
		"hash": func(n *yaml.Node) {
			text, ok := r.Text(n, "hash")
			if !ok {
				return
			}
			var err error
			if digest, err = limit.ParseDigest(text); err != nil {
				r.Add(n, "hash: %v", err)
			} else if other, ok := r.rules.Known.Keys[digest]; ok {
				r.Add(n, "hash: already used by key %s", other.Name)
			}
		},
	}, "name", "hash")
	if r.rules.Known.Keys == nil {
		r.rules.Known.Keys = map[limit.Digest]limit.APIKey{}
	}
	r.rules.Known.Keys[digest] = k
}

// name reads a name that must be unique among its kind.
func (r *Reader) name(n *yaml.Node, kind string, names map[string]bool) string {
	name, ok := r.Text(n, "name")
	if !ok {
		return ""
	}
	if err := quota.CheckName(name); err != nil {
		r.Add(n, "name: %v", err)
	}
	if names[name] {
		r.Add(n, "name: there is another %s called %s", kind, spell.Clip(name))
	}
	names[name] = true
	return name
}

// duration reads a window.
func (r *Reader) duration(n *yaml.Node, what string) time.Duration {
	text, ok := r.Text(n, what)
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		r.Add(n, "%s: %q is not a duration, such as 1m or 24h", what, spell.Clip(text))
		return 0
	}
	return d
}
