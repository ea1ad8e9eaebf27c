// Package rules reads the limits of a server from its configuration.
//
//	limits:
//	  store: ledger                     # memory (the default), or the ledger's Redis
//	  trusted_proxies: [10.0.0.0/8]     # whose forwarding headers are believed
//	  keys:                             # API keys, by their SHA-256
//	    - {name: acme-1, organisation: acme, tier: gold, hash: "sha256:9f86d0…"}
//	  policies:
//	    - name: client                  # 60 requests a minute from an address, 600 with a gold key
//	      by: client                    # client, key, organisation, route, global or decision
//	      limit: 60
//	      window: 1m
//	      tiers: {gold: 600}
//	    - name: search                  # a search counts as 5
//	      by: global
//	      routes: [GET /v1/search]
//	      algorithm: counter            # log (the default), counter or fixed
//	      limit: 5_000
//	      window: 1m
//	      cost: 5
//	      shards: 4                     # parts of a hot key
//	      when_unreachable: open        # or closed, the default
//	      observe: true                 # only count what it would deny
//	      count_denied: true            # denied requests count, too
package rules

import (
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/limit/caller"
	"quotabudget/internal/limit/guard"
	"quotabudget/internal/quota"
	"quotabudget/internal/spell"
	"quotabudget/internal/yamlfile"
)

// Rules are the limits of a server. The zero value limits nobody.
type Rules struct {
	OnLedger bool // they are kept on the ledger's Redis, for all processes together
	Limits   []guard.Limit
	Known    caller.Known
}

// CheckRoutes reports a limit whose route is none of the server's, which would limit nothing.
func (r *Rules) CheckRoutes(patterns []string) error {
	for _, l := range r.Limits {
		for _, route := range l.Routes {
			if !slices.Contains(patterns, route) {
				return fmt.Errorf("limits: policy %s: no route %q%s", l.Name, route,
					spell.DidYouMean(route, patterns))
			}
		}
	}
	return nil
}

// reader reads one section of limits.
type reader struct {
	*yamlfile.Reader
	rules  *Rules
	names  map[string]bool
	keys   map[string]bool
	tiers  map[string]bool       // of policies
	tierAt map[string]*yaml.Node // of keys
}

// Read reads the section. Problems are added to the reader.
func Read(in *yamlfile.Reader, n *yaml.Node) Rules {
	var rules Rules
	r := &reader{in, &rules, map[string]bool{}, map[string]bool{}, map[string]bool{},
		map[string]*yaml.Node{}}
	r.Fields(n, "limits", yamlfile.Fields{
		"store": func(n *yaml.Node) {
			rules.OnLedger = r.word(n, "store", "memory", "ledger") == "ledger"
		},
		"trusted_proxies": func(n *yaml.Node) { r.List(n, "trusted_proxies", r.proxy) },
		"keys":            func(n *yaml.Node) { r.List(n, "keys", r.key) },
		"policies":        func(n *yaml.Node) { r.List(n, "policies", r.policy) },
	})
	for tier, at := range r.tierAt {
		if !r.tiers[tier] {
			r.Add(at, "tier: no policy has a tier %q%s", spell.Clip(tier),
				spell.DidYouMean(tier, slices.Collect(maps.Keys(r.tiers))))
		}
	}
	return rules
}

// word reads one of some words; the first is the default.
func (r *reader) word(n *yaml.Node, what string, words ...string) string {
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
func (r *reader) proxy(n *yaml.Node) {
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
		r.Add(n, "trusted_proxies: %q is no address or network, such as 10.0.0.0/8",
			spell.Clip(text))
	case prefix.Bits() == 0:
		r.Add(n, "trusted_proxies: %s trusts everybody, so anybody could make up an address: "+
			"write your proxies' own", text)
	default:
		r.rules.Known.Proxies = append(r.rules.Known.Proxies, prefix.Masked())
	}
}

func (r *reader) key(n *yaml.Node) {
	var k caller.Key
	var digest caller.Digest
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
			if digest, err = caller.ParseDigest(text); err != nil {
				r.Add(n, "hash: %v", err)
			} else if other, ok := r.rules.Known.Keys[digest]; ok {
				r.Add(n, "hash: that is key %s already", other.Name)
			}
		},
	}, "name", "hash")
	if r.rules.Known.Keys == nil {
		r.rules.Known.Keys = map[caller.Digest]caller.Key{}
	}
	r.rules.Known.Keys[digest] = k
}

// name reads a name that nothing else of its kind has.
func (r *reader) name(n *yaml.Node, kind string, names map[string]bool) string {
	name, ok := r.Text(n, "name")
	if !ok {
		return ""
	}
	if err := quota.CheckName(name); err != nil {
		r.Add(n, "name: %v", err)
	}
	if names[name] {
		r.Add(n, "name: there is a %s %s already", kind, spell.Clip(name))
	}
	names[name] = true
	return name
}

// duration reads a window.
func (r *reader) duration(n *yaml.Node, what string) time.Duration {
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
