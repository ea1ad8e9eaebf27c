package main

import (
	"context"

	"github.com/spf13/cobra"

	"quotabudget/internal/config"
	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

func (a *app) report() *cobra.Command {
	c := &cobra.Command{
		Use:   "report",
		Short: "Report on what was spent",
	}
	c.AddCommand(a.reportObserve(), a.reportChargeback())
	return c
}

type observeQuestion struct{ since, until, bucket string }

// observation is the calls that a limit of a credential would have refused.
type observation struct {
	credential config.Credential
	report.Finding
}

func (a *app) reportObserve() *cobra.Command {
	var q observeQuestion
	c := &cobra.Command{
		Use:   "observe",
		Short: "Show what the limits that are only observed would have refused",
		Long: `observe plays the log through each limit with "mode: observe" (its own, or its
credential's), as if that limit had denied: a charge that would have been refused does not count for
those after it. It shows how many units each would have refused, whose, and in which hours (UTC).

Spending by other programs counts and cannot be refused. Every charge is treated as if it could not
use a headroom, because the log does not mark the charges of people. A note says where the figures
are not exact.`,
		Example: `  quotactl report observe
  quotactl report observe --since 24h --bucket default
  quotactl report observe -o json | jq '.limits[] | {bucket, window, share}'`,
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withLedger(c.Context(), func(src report.Source) error {
				now, err := src.Ledger.Time(c.Context())
				if err != nil {
					return err
				}
				in, err := spanOf(q.since, q.until, now)
				if err != nil {
					return err
				}
				list, err := observe(c.Context(), src, q.bucket, in)
				if err != nil {
					return err
				}
				if in.Until.IsZero() {
					in.Until = now
				}
				return a.printObserved(src.Config, list, in)
			})
		},
	}
	c.Flags().StringVar(&q.since, "since", "7d",
		"start `TIME`: a duration before now, a day, or RFC 3339")
	c.Flags().StringVar(&q.until, "until", "", "end `TIME` (default now)")
	c.Flags().StringVar(&q.bucket, "bucket", "", "only of this `BUCKET`")
	return c
}

// observe replays the log of each credential against its observed limits.
func observe(ctx context.Context, src report.Source, bucket string, in report.Span) (
	list []observation, err error) {
	for _, c := range src.Config.Credentials {
		budget := c.Budget(src.Ledger, src.Config.Table(c), nil)
		limits, err := budget.Standing(ctx)
		if err != nil {
			return nil, err
		}
		var watched []quota.Limit
		for _, l := range limits {
			isNamed := bucket == "" || l.Bucket == bucket || quota.WholeOf(l.Bucket) == bucket
			if isNamed && (c.Observe || l.Observe) {
				watched = append(watched, l)
			}
		}
		findings, err := replay(ctx, budget, watched, in, src.Config.Table(c))
		if err != nil {
			return nil, err
		}
		for _, f := range findings {
			list = append(list, observation{c, f})
		}
	}
	return list, nil
}

// replay reads each log once, for all its limits.
func replay(ctx context.Context, b *quota.Budget, limits []quota.Limit, in report.Span,
	t *costs.Table) ([]report.Finding, error) {
	if len(limits) == 0 {
		return nil, nil
	}
	usage, err := b.Ledger.Usage(ctx, b.Credential, limits)
	if err != nil {
		return nil, err
	}
	var findings []report.Finding
	for _, u := range usage.Buckets {
		var plays []*report.Replay
		for _, l := range u.Limits {
			p := report.NewReplay(l.Limit, u.ResetAt, in.Since, in.Until)
			if settled(t, u.Bucket) {
				p.Settled()
			}
			plays = append(plays, p)
		}
		q := quota.Query{Credential: b.Credential, Bucket: u.Bucket}
		for e, err := range quota.All(ctx, b.Ledger, q) {
			if err != nil {
				return nil, err
			}
			for _, p := range plays {
				if err := p.Add(e); err != nil {
					return nil, err
				}
			}
		}
		for _, p := range plays {
			findings = append(findings, p.Finding())
		}
	}
	return findings, nil
}

// settled reports whether the units of some calls in a bucket are known only afterwards.
func settled(t *costs.Table, bucket string) bool {
	for _, m := range t.Methods() {
		for _, term := range m.Terms {
			if term.Bucket == quota.WholeOf(bucket) && term.Hold+term.Settle != "" {
				return true
			}
		}
	}
	return false
}
