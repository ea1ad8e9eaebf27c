package main

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/words"
)

type suspension struct {
	Bucket string `json:"bucket"`
	report.Suspension
}

func (a *app) suspend() *cobra.Command {
	var until string
	var of quota.Suspension
	c := &cobra.Command{
		Use:   "suspend --bucket B [--until T] [--reason TEXT]",
		Short: "Deny every charge on a bucket until its reset",
		Long: `suspend denies every charge on a bucket. The programs do that themselves when the
upstream reports that its quota is used up. The suspension ends at the bucket's reset, at --until,
or with resume. status shows who made it, when and why.`,
		Example: `  quotactl suspend --bucket default --reason "the key leaked"
  quotactl suspend --bucket search_list --until 2026-11-22T08:00:00Z`,
		Args: cli.Args(),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withBucket(c, of.Bucket, func(g *gate) error {
				if err := g.whole(of.Bucket); err != nil {
					return err
				}
				if err := g.close(c.Context(), &of, until); err != nil {
					return err
				}
				u, err := g.BucketUsage(c.Context(), of.Bucket)
				if err != nil {
					return err
				}
				return a.Print(suspension{of.Bucket, report.NewSuspension(u)}, func() error {
					s := a.Screen()
					return s.Say("%s is suspended %s\n", of.Bucket,
						report.NewSuspension(u).Text(s.Moment(u.SuspendedUntil), s.Moment))
				})
			})
		},
	}
	c.Flags().StringVar(&of.Bucket, "bucket", "", "`BUCKET` to suspend")
	c.Flags().StringVar(&until, "until", "",
		"`TIME` in RFC 3339, a day (2026-11-22, in UTC) or a duration from now "+
			"(default the bucket's reset)")
	c.Flags().StringVar(&of.Reason, "reason", "", "reason, shown by status: `TEXT`")
	c.Flags().StringVar(&of.By, "by", "", "`NAME` of the person who suspends it (default you)")
	return c
}

// close suspends a bucket until its reset, or until --until.
func (g *gate) close(ctx context.Context, of *quota.Suspension, until string) error {
	now, err := g.Ledger.Time(ctx)
	if err != nil {
		return err
	}
	of.Credential, of.By = g.Credential, cmp.Or(of.By, userName())
	if until == "" {
		_, of.Until = g.cfg.Table(g.cred).Reset(of.Bucket).Bounds(now)
	} else if of.Until, err = parseTime(until, now, +1); err != nil {
		return cli.Usagef("--until %s: write RFC 3339, such as 2026-11-22T08:00:00Z, or a "+
			"duration such as 2h", until)
	}
	if !of.Until.After(now) {
		return cli.Usagef("--until %s is in the past", until)
	}
	return g.Ledger.Suspend(ctx, *of)
}

// parseTime reads RFC 3339, a day in UTC, or a duration before (sign −1) or after (+1) now, to
// the microsecond.
func parseTime(text string, now time.Time, sign time.Duration) (time.Time, error) {
	if d, err := words.ParseSpan(text); err == nil && d >= 0 {
		return now.Add(sign * d).Truncate(time.Microsecond), nil
	}
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		t, err = time.Parse(time.RFC3339, text)
	}
	return t.Truncate(time.Microsecond), err
}
