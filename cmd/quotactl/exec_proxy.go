package main

import (
	"context"

	"quotabudget/internal/job"
	"quotabudget/internal/proxy"
)

// ownProxy starts a proxy for the time of one command, and returns the variables that lead to it.
// Its requests have the labels of the run, and draw on the reservation.
func (a *app) ownProxy(g *gate) func(context.Context, job.Prepared) ([]string, func(), error) {
	return func(ctx context.Context, p job.Prepared) ([]string, func(), error) {
		handler, err := a.proxyOf(g, p)
		if err != nil {
			return nil, nil, err
		}
		address, stop, err := handler.ServeLocally(ctx)
		env := append(handler.Environment(address), job.EnvProxy+"="+address)
		for _, cred := range g.cfg.Credentials {
			if cred.APIKey.Env != "" { // libraries need a key to start; the proxy adds the real one
				env = append(env, cred.APIKey.Env+"=any")
			}
		}
		return env, stop, err
	}
}

// proxyOf is the proxy with its upstreams.
func (a *app) proxyOf(g *gate, p job.Prepared) (*proxy.Proxy, error) {
	quiet := a.quiet()
	log := quiet.Logger()
	served, err := quiet.servedCredentials(g.cfg, []string{g.Credential})
	if err != nil {
		return nil, err
	}
	handler := &proxy.Proxy{Limits: proxy.DefaultLimits(), Metrics: proxy.NewMetrics(), Log: log,
		NamedOnly: served[0].Upstream != g.cfg.Costs.Upstream && len(served) > 1,
		Unserved:  unserved(g.cfg, served)}
	for _, cred := range served {
		up, err := newUpstream(g.cfg, cred, g.Ledger, log)
		if err != nil {
			return nil, err
		}
		up.Transport.Budget.Ledger = p.Ledger
		up.Transport.Budget.Labels = p.Labels
		up.Transport.Missed = handler.Metrics.Missed
		handler.Upstreams = append(handler.Upstreams, up)
	}
	return handler, nil
}

// quiet logs no line for each request, and none for upstreams without a key: standard error is the
// command's.
func (a *app) quiet() *app {
	quiet := *a
	if quiet.LogLevel == "info" {
		quiet.LogLevel = "error"
	}
	return &quiet
}
