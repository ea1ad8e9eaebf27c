package serve

import (
	"errors"
	"fmt"
	"strings"

	"quotabudget/internal/config"
	"quotabudget/internal/limit/guard"
	"quotabudget/internal/report"
	"quotabudget/internal/textfile"
)

// New is the configured server, still without what it shows and its limits.
func New(cfg *config.Config) (*Server, error) {
	own := &cfg.Serve
	s := &Server{Hosts: own.Hosts, Public: own.Public}
	var wrong error
	if own.Rules.OnRedis && len(own.Rules.Limits) > 0 && !strings.HasPrefix(cfg.Ledger, "redis") {
		wrong = errors.New(
			"serve: store: redis keeps limits on the ledger's Redis, but the ledger is on SQLite")
	}
	if own.TokenFile == "" {
		return s, wrong
	}
	text, err := textfile.Read(own.TokenFile, 1<<16)
	if err != nil {
		return nil, errors.Join(wrong, fmt.Errorf("token_file: %w", err))
	}
	if s.Tokens = NewTokens(string(text)); len(s.Tokens) == 0 {
		return nil, errors.Join(wrong, fmt.Errorf("token_file: %s has no token: write one on a "+
			"line, such as openssl rand -hex 32 makes", own.TokenFile))
	}
	return s, wrong
}

// Check reports what of the configuration keeps the server from starting.
func Check(cfg *config.Config) error {
	_, wrong := New(cfg)
	s := &Server{Guard: &guard.Guard{Limits: cfg.Serve.Rules.Limits},
		Source: func() report.Source { return report.Source{Config: cfg} }}
	_, err := s.Handler()
	return errors.Join(wrong, err)
}
