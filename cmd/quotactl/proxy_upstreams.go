package main

import (
	"fmt"
	"slices"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
)

// servedCredentials returns the credentials to serve, one for each upstream that has any: the
// default upstream's first, then the chosen ones.
func (a *app) servedCredentials(cfg *config.Config, names []string) (
	served []config.Credential, err error) {
	chosen, err := a.chosenCredentials(cfg, names)
	if err != nil {
		return nil, err
	}
	log, servedBy := a.Logger(), map[string]string{}
	for _, cred := range cfg.Credentials {
		name, isChosen := chosen[cred.Upstream]
		if isChosen && name != cred.Name {
			continue
		}
		if other := servedBy[cred.Upstream]; other != "" {
			return nil, cli.Hint(cli.Usagef("%s has several credentials: %s and %s", cred.Upstream,
				other, cred.Name), "choose one with --credential, which may be repeated: one for "+
				"each upstream")
		}
		if _, err := cred.APIKey.Key(); err != nil {
			if isChosen {
				return nil, &cli.Coded{Code: cli.ExitConfig,
					Err: cli.Hint(err, "%s", cred.APIKey.Advice())}
			}
			log.Warn("an upstream is not served: its credential has no key",
				"upstream", cred.Upstream, "credential", cred.Name, "error", err)
			continue
		}
		servedBy[cred.Upstream] = cred.Name
		cred.APIKey.WarnExposed(log)
		served = append(served, cred)
	}
	if len(served) == 0 {
		return nil, &cli.Coded{Code: cli.ExitConfig,
			Err: fmt.Errorf("no credential has a key, so there is no upstream to serve")}
	}
	rank := func(c config.Credential) int {
		switch {
		case c.Upstream == cfg.Costs.Upstream:
			return 0
		case chosen[c.Upstream] != "":
			return 1
		}
		return 2
	}
	slices.SortStableFunc(served, func(a, b config.Credential) int { return rank(a) - rank(b) })
	return served, nil
}

// chosenCredentials returns the credentials of the flags, by upstream; without flags the only one,
// or the ingestor's.
func (a *app) chosenCredentials(cfg *config.Config, names []string) (map[string]string, error) {
	switch {
	case len(names) > 0:
	case len(cfg.Credentials) == 1:
		names = []string{cfg.Credentials[0].Name}
	case cfg.Ingest.Credential != "":
		names = []string{cfg.Ingest.Credential}
	}
	chosen := map[string]string{}
	for _, name := range names {
		cred, err := cfg.Credential(name)
		if err != nil {
			return nil, cli.Usagef("--credential: %w", err)
		}
		if other := chosen[cred.Upstream]; other != "" && other != name {
			return nil, cli.Usagef("--credential: %s and %s are both of %s: choose one for each "+
				"upstream", other, name, cred.Upstream)
		}
		chosen[cred.Upstream] = name
	}
	return chosen, nil
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
