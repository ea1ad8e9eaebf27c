package main

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/bill"
	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/costs"
	"quotabudget/internal/meter"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// maxDays is the maximum number of days compared: the ledger keeps no more, whatever the limits.
const maxDays = 31

type reconcileFlags struct {
	apply bool
	days  int
	lag   time.Duration // -1 for the price list's
}

func (a *app) reconcile() *cobra.Command {
	f := reconcileFlags{days: 3}
	c := a.Command("reconcile", func(c *cobra.Command, _ []string) error {
		switch {
		case f.lag < 0 || f.lag > 72*time.Hour:
			return cli.Usagef("--lag %s: must be from 0s to 72h", f.lag)
		case !c.Flags().Changed("lag"):
			f.lag = -1
		}
		return a.with(c.Context(), func(g *gate) error {
			return a.reconciled(c.Context(), g, f)
		})
	})
	cli.Flags(c.Flags(), "apply", &f.apply, "days", &f.days, "lag", &f.lag)
	return c
}

// reconciling is a comparison in progress.
type reconciling struct {
	*gate
	client *bill.Client
	flags  reconcileFlags
	kept   time.Duration // how long the ledger keeps entries, at least
	shares []string      // credentials that the upstream counts together, including this one
	out    reconciliation
}

func (a *app) reconciled(ctx context.Context, g *gate, f reconcileFlags) error {
	kept := quota.RetentionFor(g.Limits)
	if most := min(maxDays, int(kept/(24*time.Hour))); f.days < 1 || f.days > most {
		return cli.Usagef("--days %d: must be from 1 to %d; entries are kept for %.0fh", f.days, most,
			kept.Hours())
	}
	client, err := a.billClient(g, func(m costs.Meter) bool { return len(m.Usage) > 0 })
	if err != nil {
		return err
	}
	r := reconciling{gate: g, client: client, flags: f, kept: kept, shares: []string{g.Credential}}
	own := r.countedAs(r.cred)
	for _, c := range r.cfg.Credentials {
		same := c.Upstream == r.cred.Upstream && c.Name != r.Credential
		if same && own != "" && r.countedAs(c) == own {
			r.shares = append(r.shares, c.Name)
		}
	}
	now, err := g.Ledger.Time(ctx)
	if err != nil {
		return err
	}
	r.out = reconciliation{Credential: g.Credential, Project: client.ProjectName(),
		Service: cmp.Or(g.prices().Service, g.prices().Upstream), At: words.Time(now),
		SharedWith: r.shares[1:],
		Rows:       []reconciledRow{}, Limits: []limitRow{}, upstream: g.prices().Upstream,
		applying: f.apply}
	if bill.Asks(g.prices(), "service_account") {
		r.out.upstream = "google"
	}
	if err := r.compare(ctx, now); err != nil {
		return inBillWords(g, client, err)
	}
	var failed error
	if f.apply {
		failed = r.correct(ctx)
	}
	limits, err := client.Limits(ctx)
	if err == nil {
		for _, d := range bill.Differ(g.Limits, limits) {
			row := limitRow{Bucket: d.Ours.Bucket, Window: d.Ours.Window.Text(), Ours: d.Ours.Units}
			if d.Theirs >= 0 {
				row.Theirs = &d.Theirs
			}
			r.out.Limits = append(r.out.Limits, row)
		}
	}
	failed = errors.Join(failed, inBillWords(g, client, err))
	if err := a.Print(r.out, func(s cli.Screen) { r.out.draw(s, g) }); err != nil {
		return err
	}
	if failed == nil && r.out.pending() > 0 {
		return &cli.Coded{Code: cli.ExitFailed}
	}
	return failed
}

// billClient returns a client for the required requests of the price list, with the credential's
// keys.
func (a *app) billClient(g *gate, needed func(costs.Meter) bool) (*bill.Client, error) {
	table, c := g.prices(), g.cred
	client := &bill.Client{Table: table, Endpoint: g.cfg.Endpoint(c.Upstream), Project: c.Project,
		Cloud: c.Account.Endpoint}
	found, project := false, false
	for _, m := range table.Meters() {
		if !needed(m) {
			continue
		}
		found = true
		project = project || strings.Contains(m.URL, "{project}")
		var err error
		switch m.Key {
		case "service_account":
			client.Account, err = a.account(g)
		case "admin_key":
			c.AdminKey.WarnExposed(a.Logger())
			client.AdminKey, err = c.AdminKey.Key()
			if err != nil {
				err = cli.Misconfigured(err, "%s reports this to %s; %s", c.Upstream, m.Role,
					c.AdminKey.Advice())
			}
		default:
			if _, err = c.APIKey.Key(); err != nil {
				return nil, cli.Misconfigured(err, "%s", c.APIKey.Advice())
			}
			c.APIKey.WarnExposed(a.Logger())
			var gate *meter.Transport
			gate, err = meter.New(client.Endpoint, table, g.Budget, c.APIKey.Key, a.Logger())
			client.Gate = gate
		}
		if err != nil {
			return nil, err
		}
	}
	switch {
	case !found:
		return nil, cli.Hint(cli.Usagef("%s does not report this by any means that its price list "+
			"names", c.Upstream), "the ledger learns from its responses, by its price list")
	case project && client.ProjectName() == "":
		return nil, cli.Misconfigured(errors.New("credential "+c.Name+" has no project"),
			"write project: ID into quota.yaml")
	}
	return client, nil
}

// account reads the credential's service account.
func (a *app) account(g *gate) (*bill.Account, error) {
	at := g.cred.Account
	if at.File == "" {
		return nil, cli.Misconfigured(errors.New("credential "+g.Credential+" has no service_account"),
			"an API key cannot read quota: write service_account: {file: PATH} into quota.yaml; "+
				"docs/upstream.md shows how to make one")
	}
	text, err := at.Key(bill.MaxKey)
	if err != nil {
		return nil, cli.Misconfigured(err, "write the JSON key of the account into that "+
			"file, readable by the user that runs this program")
	}
	account, err := bill.ParseAccount(text)
	if err != nil {
		return nil, cli.Misconfigured(errors.New("service account: file "+at.File+" "+err.Error()),
			"make a new key: gcloud iam service-accounts keys create FILE --iam-account EMAIL")
	}
	config.FileSecret(at.File, a.Getenv).WarnExposed(a.Logger())
	return account, nil
}

// countedAs returns the key by which the upstream counts a credential's calls: the project,
// otherwise the admin key or the API key; "" if unknown.
func (r *reconciling) countedAs(c config.Credential) string {
	switch t := r.prices(); {
	case bill.Asks(t, "service_account"):
		if c.Account.File == "" || c.Project != "" {
			return c.Project
		}
		if text, err := c.Account.Key(bill.MaxKey); err == nil {
			if account, err := bill.ParseAccount(text); err == nil {
				return account.Project
			}
		}
		return ""
	case bill.Asks(t, "admin_key"):
		if !c.AdminKey.Placed() {
			return ""
		}
		return c.AdminKey.String() + " " + c.Project
	}
	return c.APIKey.String()
}
