package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/grammar"
	"quotabudget/internal/limit"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// Serve configures the HTTP server. Without limits, no client is limited.
type Serve struct {
	Configured bool                       `yaml:"-"` // there is a section serve: ingestor run serves, too
	Listen     string                     // host:port
	Public     bool                       // budgets, forecast, plan, log and decisions need a token
	TokenFile  string                     `yaml:"token_file"` // path; "" for none
	Hosts      []string                   // names of the server in addition to its address
	TLS        struct{ Cert, Key string } // paths; "" for plain HTTP

	OnRedis bool         `yaml:"-"` // charges are stored on the ledger's Redis, for all processes
	Limits  []limit.Rule `yaml:"-"`
	Known   limit.Known  `yaml:"-"`
}

// DefaultServe is the default address of ingestor serve.
const DefaultServe = "127.0.0.1:8080"

// linksRoute creates short links, which are stored permanently.
const linksRoute = "POST /v1/links"

const whenOpen = "open"

// serve sets the server and the limits of its callers.
func (r *reader) serve(f *fileServe, at grammar.Place) {
	s := &r.cfg.Serve
	*s = f.Serve
	s.Configured, s.OnRedis, s.TokenFile = true, f.Store == "redis", r.path(s.TokenFile)
	s.TLS.Cert, s.TLS.Key = r.path(s.TLS.Cert), r.path(s.TLS.Key)
	for i, name := range s.Hosts {
		s.Hosts[i] = strings.ToLower(name)
	}
	for _, text := range f.TrustedProxies {
		if network, err := parseNetwork(text); err == nil {
			s.Known.Proxies = append(s.Known.Proxies, network)
		}
	}
	s.Limits = rules(f, at)
	s.Known.Keys = keys(f, s.Limits, at.Key("keys"))
	limitsLinks := func(l limit.Rule) bool { // applies to every client
		return slices.Contains(l.Routes, linksRoute) && l.By != limit.ByKey &&
			l.By != limit.ByOrganisation
	}
	if s.Public && !slices.ContainsFunc(s.Limits, limitsLinks) {
		s.Limits = append(s.Limits, limit.Rule{
			Policy: limit.Policy{Name: "default.links", // no configured name has a dot
				Units: 10, Window: time.Minute, Algorithm: limit.Log},
			Routes: []string{linksRoute}, By: limit.ByClient, Cost: 1,
			Open: f.WhenUnreachable == whenOpen})
	}
}

// keys sets the API keys of callers.
func keys(f *fileServe, limits []limit.Rule, at grammar.Place) map[limit.Digest]limit.APIKey {
	if len(f.Keys) == 0 {
		return nil
	}
	byDigest, keyNames := map[limit.Digest]limit.APIKey{}, map[string]bool{}
	var tiers []string
	for _, l := range limits {
		tiers = slices.AppendSeq(tiers, maps.Keys(l.Tiers))
	}
	for i, k := range f.Keys {
		at := at.Item(i)
		if !firstNew(keyNames, k.Name) {
			at.Key("name").Add("there is another key called %s", words.Clip(k.Name))
		}
		if k.Tier != "" && !slices.Contains(tiers, k.Tier) {
			at.Key("tier").Add("no limit has a tier %q%s", words.Clip(k.Tier),
				words.DidYouMean(k.Tier, tiers))
		}
		digest, err := limit.ParseDigest(k.Hash)
		if err != nil { // reported by the schema
			continue
		}
		if other, ok := byDigest[digest]; ok {
			at.Key("hash").Add("already used by key %s", other.Name)
		}
		byDigest[digest] = limit.APIKey{Name: k.Name, Organisation: k.Organisation, Tier: k.Tier}
	}
	return byDigest
}

// rules sets the limits of requests and the policies of decisions.
func rules(f *fileServe, at grammar.Place) (all []limit.Rule) {
	ruleNames := map[string]bool{}
	add := func(l fileRequestLimit, by limit.By, at grammar.Place) {
		if !firstNew(ruleNames, l.Name) {
			at.Key("name").Add("there is another limit or policy called %s", words.Clip(l.Name))
		}
		all = append(all, l.rule(by, f.WhenUnreachable, at))
	}
	for i, l := range f.Limits {
		add(l, l.Per, at.Key("limits").Item(i))
	}
	for i, l := range f.Policies {
		add(l, limit.ByDecision, at.Key("policies").Item(i))
	}
	return all
}

// rule builds a limit, and checks its keys against each other.
func (f fileRequestLimit) rule(by limit.By, unreachable string, at grammar.Place) limit.Rule {
	l := limit.Rule{Policy: f.Policy, By: by, Routes: f.Route, Cost: cmp.Or(f.Cost, 1),
		Observe: f.Observe, Open: cmp.Or(f.WhenUnreachable, unreachable) == whenOpen}
	l.Units, l.CountDenied, l.Algorithm = f.Requests, f.CountDenied, cmp.Or(f.Algorithm, limit.Log)
	if at.Key("algorithm").Refused() {
		l.Algorithm = limit.Log // report the wrong name only, no problem that follows from it
	}
	check(l.Policy, l.Cost, at)
	for _, tier := range at.Key("tiers").Keys() {
		if l.Tiers == nil {
			l.Tiers = map[string]*limit.Policy{}
		}
		p := l.Policy
		p.Units = f.Tiers[tier]
		l.Tiers[tier] = &p
		check(p, l.Cost, at.Key("tiers").Key(tier))
	}
	switch {
	case l.By == limit.ByClient && l.Window > 24*time.Hour:
		at.Key("window").Add("must be at most 24h per client, because addresses are forgotten " +
			"after that")
	case len(l.Tiers) > 0 && l.By != limit.ByClient && l.By != limit.ByKey:
		at.Key("tiers").Add("tiers require a limit per client or per key")
	}
	return l
}

func check(p limit.Policy, cost int64, at grammar.Place) {
	if p.Units < 1 || p.Window <= 0 { // reported by the schema
		return
	}
	if err := p.Check(); err != nil {
		for problem := range strings.Lines(err.Error()) {
			at.Add("%s: %s", p.Name, strings.TrimSpace(problem))
		}
		return
	}
	if part := limit.Part(p.Units, max(p.Shards, 1), max(p.Shards, 1)-1); cost > part {
		at.Add("%s: cost %d never fits into %d units", p.Name, cost, part)
	}
}

// ReadTokens returns the callers in the token file at path. The text of each problem begins with
// where and path. limit.ParseTokens explains named.
func (c *Config) ReadTokens(where, path string, named bool) (*limit.Tokens, error) {
	text, err := ReadFile(path, maxFileBytes)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", where, path, reason(err))
	}
	where += " " + path
	tokens, err := limit.ParseTokens(where, string(text), named)
	if err != nil {
		return nil, err
	}
	var buckets []string
	for _, cred := range c.Credentials {
		buckets = append(buckets, c.Table(cred).BucketNames()...)
		for _, l := range cred.Limits {
			buckets = append(buckets, l.Bucket)
		}
	}
	for _, name := range tokens.Buckets() {
		if !slices.Contains(buckets, name) && !slices.Contains(buckets, quota.WholeOf(name)) {
			err = errors.Join(err, fmt.Errorf("%s: no credential has the bucket %q%s", where, name,
				words.DidYouMean(name, buckets)))
		}
	}
	return tokens, err
}
