package cli

import (
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"slices"

	"quotabudget/internal/config"
	"quotabudget/internal/job"
	"quotabudget/internal/ledger"
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
	return &proxy.Upstream{Name: cred.Upstream, Transport: gate}, nil
}

// Unserved returns the upstreams of the price list that have no served credential.
func Unserved(cfg *config.Config, served []config.Credential) []string {
	return slices.DeleteFunc(cfg.Prices.Upstreams(), func(name string) bool {
		return slices.ContainsFunc(served, func(c config.Credential) bool {
			return c.Upstream == name
		})
	})
}

// JobProxy returns a function that starts a proxy for one run of a job, in front of the upstreams
// of the served credentials, and returns the variables that point to it. Its requests have the
// labels of the run, and draw on the run's hold.
func JobProxy(cfg *config.Config, served []config.Credential, l *ledger.Ledger,
	log *slog.Logger) func(context.Context, job.Prepared) ([]string, func(), error) {
	return func(ctx context.Context, run job.Prepared) ([]string, func(), error) {
		p := &proxy.Proxy{Limits: proxy.DefaultLimits(), Metrics: proxy.NewMetrics(), Log: log,
			NamedOnly: served[0].Upstream != cfg.Costs.Upstream && len(served) > 1,
			Unserved:  Unserved(cfg, served)}
		for _, cred := range served {
			up, err := Upstream(cfg, cred, l, log)
			if err != nil {
				return nil, nil, err
			}
			up.Transport.Budget.Ledger, up.Transport.Budget.Labels = run.Ledger, run.Labels
			up.Transport.Missed = p.Metrics.Missed
			p.Upstreams = append(p.Upstreams, up)
		}
		address, stop, err := p.ServeLocally(ctx)
		env := append(p.Environment(address), job.EnvProxy+"="+address)
		for _, cred := range cfg.Credentials {
			// libraries require a key at start; the proxy adds the real one
			if cred.APIKey.Env != "" && !slices.Contains(p.Unserved, cred.Upstream) {
				env = append(env, cred.APIKey.Env+"=any")
			}
		}
		return env, stop, err
	}
}
