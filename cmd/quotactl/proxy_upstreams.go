package main

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/url"
	"slices"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/proxy"
	"quotabudget/internal/quota"
	"quotabudget/internal/upstream"
)

// servedCredentials are the credentials that the proxy adds, one for each upstream that has one:
// the chosen one's upstream first, else the default one of the price list.
func (a *app) servedCredentials(cfg *config.Config) (served []config.Credential, err error) {
	chosen := cmp.Or(a.Credential, cfg.Ingest.Credential)
	if a.Credential != "" || len(cfg.Credentials) == 1 {
		first, err := a.Chosen(cfg)
		if err != nil {
			return nil, err
		}
		chosen = first.Name
	}
	log, of := a.Logger(), map[string]string{}
	for _, cred := range cfg.Credentials {
		if cred.Name != chosen && chosenFor(cfg, chosen, cred.Upstream) {
			continue
		}
		if other := of[cred.Upstream]; other != "" {
			return nil, cli.Hint(cli.Usagef("%s has several credentials: %s and %s", cred.Upstream,
				other, cred.Name), "choose one with --credential")
		}
		if _, err := cred.APIKey.Key(); err != nil {
			if cred.Name == chosen || len(cfg.Credentials) == 1 {
				return nil, &cli.Coded{Code: cli.ExitConfig,
					Err: cli.Hint(err, "%s", cred.APIKey.Advice())}
			}
			log.Warn("an upstream is not served: its credential has no key",
				"upstream", cred.Upstream, "credential", cred.Name, "error", err)
			continue
		}
		of[cred.Upstream] = cred.Name
		cred.APIKey.WarnExposed(log)
		served = append(served, cred)
	}
	if len(served) == 0 {
		return nil, &cli.Coded{Code: cli.ExitConfig,
			Err: fmt.Errorf("no credential has a key, so there is no upstream to serve")}
	}
	slices.SortStableFunc(served, func(a, b config.Credential) int {
		return rank(cfg, a, chosen) - rank(cfg, b, chosen)
	})
	return served, nil
}

// chosenFor reports whether the chosen credential is of the upstream.
func chosenFor(cfg *config.Config, chosen, upstream string) bool {
	return slices.ContainsFunc(cfg.Credentials, func(c config.Credential) bool {
		return c.Name == chosen && c.Upstream == upstream
	})
}

// rank puts the default upstream first, and after it the chosen credential's.
func rank(cfg *config.Config, c config.Credential, chosen string) int {
	switch {
	case c.Upstream == cfg.Costs.Upstream:
		return 0
	case c.Name == chosen:
		return 1
	}
	return 2
}

func newUpstream(cfg *config.Config, cred config.Credential, l quota.Ledger,
	log *slog.Logger) (*proxy.Upstream, error) {
	table, address := cfg.Table(cred), cfg.Endpoint(cred.Upstream)
	endpoint, err := url.Parse(address)
	if err != nil {
		return nil, err
	}
	if endpoint.Host == "" {
		return nil, &cli.Coded{Code: cli.ExitConfig, Err: cli.Hint(
			fmt.Errorf("%s has no endpoint", cred.Upstream),
			"add upstreams: {%s: {endpoint: URL}} to quota.yaml", cred.Upstream)}
	}
	gate, err := upstream.Gate(address, table, cred.Budget(l, table, log), cred.APIKey.Key, log)
	if err != nil {
		return nil, err
	}
	return &proxy.Upstream{Name: cred.Upstream, Transport: gate, Endpoint: endpoint}, nil
}

// checkEstimate reports a method or a bucket that no price list has.
func checkEstimate(cfg *config.Config, method, bucket string) error {
	table, _, err := cfg.Prices.Lookup(method)
	if err != nil {
		return err
	}
	if _, ok := table.Bucket(bucket); !ok && bucket != "" {
		return fmt.Errorf("%s takes nothing from a bucket %q", method, bucket)
	}
	return nil
}
