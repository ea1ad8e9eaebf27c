package config

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/limit/rules"
	"quotabudget/internal/spell"
	"quotabudget/internal/yamlfile"
)

// Serve is what the public is answered, and where.
type Serve struct {
	Configured bool     // there is a section serve: ingestor run serves, too
	Listen     string   // host:port
	Public     bool     // budgets, forecast, plan, log and decisions need a token
	TokenFile  string   // path; "" for none
	Hosts      []string // names of the server besides the address
	Rules      rules.Rules
}

// DefaultServe is where ingestor serve listens.
const DefaultServe = "127.0.0.1:8080"

func (r *reader) serve(n *yaml.Node) {
	s := &r.cfg.Serve
	s.Configured = true
	known := yamlfile.Fields{
		"listen": func(n *yaml.Node) { s.Listen = r.listen(n) },
		"public": func(n *yaml.Node) { s.Public = r.Bool(n, "public") },
		"token_file": func(n *yaml.Node) {
			if path, ok := r.Text(n, "token_file"); ok {
				s.TokenFile = r.path(path)
			}
		},
		"hosts": func(n *yaml.Node) {
			r.List(n, "hosts", func(n *yaml.Node) {
				name, ok := r.Text(n, "hosts")
				if ok && strings.ContainsAny(name, ":/ ") {
					r.Add(n, "hosts: %q: write a name without port, such as board.lan",
						spell.Clip(name))
				}
				s.Hosts = append(s.Hosts, strings.ToLower(name))
			})
		},
	}
	limits := rules.NewReader(&r.Reader)
	limits.AddTo(known)
	r.Fields(n, "serve", known)
	if s.Public {
		limits.LimitLinks()
	}
	s.Rules = limits.Rules()
	if s.Listen == "" {
		r.Add(n, "listen: serve needs an address, such as %s", DefaultServe)
	}
}
