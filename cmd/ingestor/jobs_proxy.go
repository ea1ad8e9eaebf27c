package main

import (
	"context"

	"quotabudget/internal/config"
	"quotabudget/internal/job"
	"quotabudget/internal/proxy"
	"quotabudget/internal/upstream"
)

// jobProxy starts a proxy for the time of one run of a job, in front of the upstream of its
// credential, and returns the variables that lead to it. Its requests have the labels of the run,
// and draw on what it holds.
func (s *deps) jobProxy(cred config.Credential) func(context.Context,
	job.Prepared) ([]string, func(), error) {
	return func(ctx context.Context, p job.Prepared) ([]string, func(), error) {
		up, err := upstream.Served(s.cfg, cred, s.ledger, s.log)
		if err != nil {
			return nil, nil, err
		}
		gate := up.Transport
		gate.Budget.Ledger = p.Ledger
		gate.Budget.Labels = p.Labels
		handler := &proxy.Proxy{Limits: proxy.DefaultLimits(), Metrics: proxy.NewMetrics(),
			Log: s.log, Upstreams: []*proxy.Upstream{up}}
		gate.Missed = handler.Metrics.Missed
		address, stop, err := handler.ServeLocally(ctx)
		return append(handler.Environment(address), job.EnvProxy+"="+address), stop, err
	}
}
