package main

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/bill"
	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// maxDays is how many days of the upstream the ledger surely has as a whole.
const maxDays = 3

func (a *app) reconcile() *cobra.Command {
	var apply bool
	var days int
	var lag time.Duration
	c := &cobra.Command{
		Use:   "reconcile [--apply] [--days N] [--lag D]",
		Short: "Compare the ledger with what Google has metered",
		Long: `reconcile compares the ledger with what Google has metered of the credential's project,
for each bucket and each of the upstream's days, and the configured limits with Google's. It needs a
service account.

Google's meter is some minutes late, so of today only what is older than --lag is compared, and less
on Google's side counts only four times that after the end of a day.

With --apply, differences are corrected as quotactl adjust does. Doing so again changes nothing.

It exits with 0 if there is nothing to correct, or all was corrected, else with 1.`,
		Example: `  quotactl reconcile
  quotactl reconcile --apply                     for cron, once an hour
  quotactl reconcile -o json | jq '.rows[] | select(.correction != 0)'`,
		Args: cli.Args(),
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case days < 1 || days > maxDays:
				return cli.Usagef("--days %d: must be from 1 to %d; entries are kept for 72h", days,
					maxDays)
			case lag < 0 || lag > 6*time.Hour:
				return cli.Usagef("--lag %s: must be from 0s to 6h", lag)
			}
			return a.with(c.Context(), func(g *gate) error {
				return a.reconciled(c.Context(), g, reconciling{days: days, apply: apply,
					meter: bill.Meter{Lag: lag}})
			})
		},
	}
	c.Flags().BoolVar(&apply, "apply", false, "correct the ledger")
	c.Flags().IntVar(&days, "days", 2, "compare `N` days, today included")
	c.Flags().DurationVar(&lag, "lag", 15*time.Minute, "how late Google's meter may be: `DURATION`")
	return c
}

// reconciling is a comparison that is being made.
type reconciling struct {
	*gate
	client *bill.Client
	meter  bill.Meter
	days   int
	apply  bool
	shares []string // credentials of the same project, this one included
	out    reconciliation
}

func (a *app) reconciled(ctx context.Context, g *gate, r reconciling) error {
	client, err := a.cloud(g)
	if err != nil {
		return err
	}
	r.gate, r.client = g, client
	r.findShares()
	now, err := g.Ledger.Time(ctx)
	if err != nil {
		return err
	}
	r.out = reconciliation{Credential: g.Credential, Project: client.ProjectName(),
		Service: client.Service, At: words.Time(now), SharedWith: r.shares[1:],
		Rows: []reconciledRow{}, Limits: []limitRow{}}
	if err := r.compare(ctx, now); err != nil {
		return inCloudWords(client, err)
	}
	var failed error
	if r.apply {
		failed = r.correct(ctx)
	}
	limits, err := client.Limits(ctx)
	if err == nil {
		r.out.compareLimits(g, limits)
	}
	failed = errors.Join(failed, inCloudWords(client, err))
	if err := a.Print(r.out, func() error { return r.out.show(a.Screen(), g) }); err != nil {
		return err
	}
	if failed == nil && r.out.pending() > 0 {
		return &cli.Coded{Code: cli.ExitFailed}
	}
	return failed
}

// cloud returns a client with the credential's service account.
func (a *app) cloud(g *gate) (*bill.Client, error) {
	service := bill.ServiceOf(g.prices())
	if service == "" {
		return nil, cli.Hint(cli.Usagef("%s is not metered by Google's own means",
			g.cred.Upstream), "what its answers tell is learned as its price list says")
	}
	at := g.cred.Account
	broken := func(err error, hint string, args ...any) error {
		return cli.Hint(&cli.Coded{Code: cli.ExitConfig, Err: err}, hint, args...)
	}
	if at.File == "" {
		return nil, broken(errors.New("credential "+g.Credential+" has no service_account"),
			"an API key cannot read quota: write service_account: {file: PATH} into quota.yaml; "+
				"docs/upstream.md says how to make one")
	}
	text, err := at.Key(bill.MaxKey)
	if err != nil {
		return nil, broken(err, "write the JSON key of the account into that file, readable by "+
			"the user that runs this program")
	}
	account, err := bill.ParseAccount(text)
	if err != nil {
		return nil, broken(errors.New("service account: file "+at.File+" "+err.Error()),
			"make a new key: gcloud iam service-accounts keys create FILE --iam-account EMAIL")
	}
	at.Secret(a.Getenv).WarnExposed(a.Logger())
	client := &bill.Client{Account: account, Project: at.Project, Service: service,
		Endpoint: at.Endpoint}
	if client.ProjectName() == "" {
		return nil, broken(errors.New("credential "+g.Credential+" has no project"),
			"the key of its service account names none: write project: ID into quota.yaml")
	}
	return client, nil
}

// findShares finds the credentials that spend from the same project: Google counts them together.
func (r *reconciling) findShares() {
	r.shares = []string{r.Credential}
	for _, c := range r.cfg.Credentials {
		same := c.Upstream == r.cred.Upstream && c.Name != r.Credential && c.Account.File != "" &&
			projectOf(c.Account) == r.client.ProjectName()
		if same {
			r.shares = append(r.shares, c.Name)
		}
	}
}

// projectOf returns the project of another credential; "" if it is unknown.
func projectOf(s config.ServiceAccount) string {
	if s.Project != "" {
		return s.Project
	}
	text, err := s.Key(bill.MaxKey)
	if err != nil {
		return ""
	}
	account, err := bill.ParseAccount(text)
	if err != nil {
		return ""
	}
	return account.Project
}

// compare fills in the rows.
func (r *reconciling) compare(ctx context.Context, now time.Time) error {
	counted := make(map[[2]int64]map[string]int64) // by the ends of what was asked about
	for _, b := range r.prices().Buckets() {
		if !strings.HasPrefix(b.Metric, r.client.Service+"/") {
			continue
		}
		for _, day := range r.meter.Days(r.prices().Reset(b.Name), now, r.days, quota.Retention) {
			ends := [2]int64{day.Begin.Unix(), day.Until.Unix()}
			used, known := counted[ends]
			if !known {
				var err error
				if used, err = r.client.Usage(ctx, day.Begin, day.Until); err != nil {
					return err
				}
				counted[ends] = used
			}
			if err := r.row(ctx, b, day, used); err != nil {
				return err
			}
		}
	}
	slices.SortStableFunc(r.out.Rows, func(a, b reconciledRow) int {
		return a.day.Begin.Compare(b.day.Begin)
	})
	return nil
}

func (r *reconciling) row(ctx context.Context, b costs.Bucket, day bill.Day,
	used map[string]int64) error {
	row := reconciledRow{Bucket: b.Name, Metric: b.Metric, From: words.Time(day.Begin),
		To: words.Time(day.Until), Settled: day.Settled, day: day}
	after, until := day.Span()
	for i, credential := range r.shares {
		units, err := r.Ledger.Between(ctx, credential, b.Name, after, until)
		if err != nil {
			return err
		}
		if row.Ours += units; i == 0 {
			row.own = units
		}
	}
	theirs, known := used[b.Metric]
	if known {
		row.Theirs = &theirs
	}
	row.Verdict, row.Correction = day.Judge(row.Ours, theirs, known)
	r.out.Rows = append(r.out.Rows, row)
	return nil
}
