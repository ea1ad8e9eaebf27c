package cli

import (
	"fmt"
	"log/slog"
	"net/url"

	"quotabudget/internal/config"
	"quotabudget/internal/meter"
	"quotabudget/internal/proxy"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

// Upstream returns the upstream of a credential for a proxy, behind the gate on its budget in the
// ledger.
func Upstream(cfg *config.Config, cred config.Credential, l quota.BudgetLedger, log *slog.Logger) (
	*proxy.Upstream, error) {
	table, address := cfg.Table(cred), cfg.Endpoint(cred.Upstream)
	at, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	if at.Host == "" {
		return nil, fmt.Errorf("%s has no endpoint: "+
			"add upstreams: {%s: {endpoint: URL}} to quota.yaml", cred.Upstream, cred.Upstream)
	}
	budget := report.Journaled(cred.Budget(l, table, log), cfg, cred)
	gate, err := meter.New(address, table, budget, cred.APIKey.Key, log)
	if err != nil {
		return nil, err
	}
	gate.Proxied = true
	return &proxy.Upstream{Name: cred.Upstream, Transport: gate, Endpoint: at}, nil
}
