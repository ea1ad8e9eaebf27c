package meter

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
)

// slow is how long an upstream may take to begin a response whose price is known only after it:
// models write for minutes before they respond, unless they stream.
const slow = 10 * time.Minute

// New returns a Transport for the upstream at address. The table names and prices its requests and
// responses; key reads the credential for each request.
func New(address string, table *costs.Table, budget *quota.Budget, key func() (string, error),
	log *slog.Logger) (*Transport, error) {
	u, err := costs.ParseEndpoint(address)
	if err != nil {
		return nil, fmt.Errorf("%s endpoint: %w", table.Upstream, err)
	}
	base := NewBase()
	if slices.ContainsFunc(table.Methods(), func(m costs.Method) bool { return !m.Known() }) {
		base.ResponseHeaderTimeout = slow
	}
	t := &Transport{
		Base: base, Budget: budget, Scheme: u.Scheme, Host: u.Host,
		Method: table.Method, Key: key, Log: log,
	}
	t.Table = table.WithFiles(t.file)
	return t, nil
}
