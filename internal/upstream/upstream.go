// Package upstream puts the upstreams of the price list behind the gate.
package upstream

import (
	"fmt"
	"log/slog"
	"slices"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/endpoint"
	"quotabudget/internal/meter"
	"quotabudget/internal/quota"
)

// slow is how long an upstream may take to begin an answer whose price is known only after it:
// models write for minutes before they say anything, unless they stream.
const slow = 10 * time.Minute

// Gate is a meter.Transport for the upstream at address: requests are named and priced by the
// table, which also says what the answers mean. key reads the credential when a request is made.
func Gate(address string, table *costs.Table, budget *quota.Budget, key func() (string, error),
	log *slog.Logger) (*meter.Transport, error) {
	u, err := endpoint.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("%s endpoint: %w", table.Upstream, err)
	}
	base := meter.NewBase()
	if slices.ContainsFunc(table.Methods(), func(m costs.Method) bool { return !m.Known() }) {
		base.ResponseHeaderTimeout = slow
	}
	return &meter.Transport{
		Base: base, Budget: budget, Table: table, Scheme: u.Scheme, Host: u.Host,
		Method: table.Method, Key: key, Log: log,
	}, nil
}
