package serve

import (
	"errors"
	"strings"

	"quotabudget/internal/catalog"
	"quotabudget/internal/config"
	"quotabudget/internal/limit"
	"quotabudget/internal/report"
)

// New returns the configured server, without its data sources and limits.
func New(cfg *config.Config) (*Server, error) {
	own := &cfg.Serve
	s := &Server{Hosts: own.Hosts, Public: own.Public}
	var wrong error
	if own.OnRedis && len(own.Limits) > 0 && !strings.HasPrefix(cfg.Ledger, "redis") {
		wrong = errors.New(
			"serve: store: redis keeps limits on the ledger's Redis, but the ledger is on SQLite")
	}
	if own.TokenFile == "" {
		return s, wrong
	}
	var err error
	s.Tokens, err = cfg.ReadTokens("token_file:", own.TokenFile, false)
	if wrong = errors.Join(wrong, err); wrong != nil {
		return nil, wrong
	}
	return s, nil
}

// Check reports configuration errors that keep the server from starting.
func Check(cfg *config.Config) error {
	_, wrong := New(cfg)
	s := &Server{Catalog: &catalog.Catalog{}, Guard: &limit.Guard{Limits: cfg.Serve.Limits},
		Source: func() report.Source { return report.Source{Config: cfg} }}
	_, err := s.Handler()
	return errors.Join(wrong, err)
}
