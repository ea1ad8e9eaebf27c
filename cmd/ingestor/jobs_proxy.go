package main

import (
	"context"
	"fmt"
	"net"
	"net/url"

	"quotabudget/internal/config"
	"quotabudget/internal/job"
	"quotabudget/internal/proxy"
	"quotabudget/internal/report"
	"quotabudget/internal/upstream"
)

// jobProxy starts a proxy for the time of one run of a job, in front of the upstream of its
// credential, and returns the variable that leads to it. Its requests have the labels of the run,
// and draw on what it holds.
func (s *deps) jobProxy(cred config.Credential) func(context.Context,
	job.Prepared) ([]string, func(), error) {
	return func(ctx context.Context, p job.Prepared) ([]string, func(), error) {
		handler, err := s.proxyOf(cred, p)
		if err != nil {
			return nil, nil, err
		}
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, nil, err
		}
		serving, cancel := context.WithCancel(context.WithoutCancel(ctx))
		served := make(chan error, 1)
		go func() { served <- handler.Serve(serving, listener) }()
		end := func() {
			cancel()
			if err := <-served; err != nil {
				s.log.Error("the proxy of the job has failed", "error", err)
			}
		}
		return []string{job.EnvProxy + "=http://" + listener.Addr().String()}, end, nil
	}
}

func (s *deps) proxyOf(cred config.Credential, p job.Prepared) (*proxy.Proxy, error) {
	address, table := s.cfg.Endpoint(cred.Upstream), s.cfg.Table(cred)
	endpoint, err := url.Parse(address)
	if err != nil || endpoint.Host == "" {
		return nil, fmt.Errorf("%s has no endpoint: add it to upstreams in quota.yaml", cred.Upstream)
	}
	budget := report.Sliced(cred.Budget(s.ledger, table, s.log), s.cfg, cred)
	budget.Ledger = job.Drawing(s.ledger, cred.Name, p.Reservation)
	budget.Labels = p.Labels
	gate, err := upstream.Gate(address, table, budget, cred.APIKey.Key, s.log)
	if err != nil {
		return nil, err
	}
	handler := &proxy.Proxy{Limits: proxy.DefaultLimits(), Metrics: proxy.NewMetrics(), Log: s.log,
		Upstreams: []*proxy.Upstream{{Name: cred.Upstream, Transport: gate, Endpoint: endpoint}}}
	gate.Missed = handler.Metrics.Missed
	return handler, nil
}
