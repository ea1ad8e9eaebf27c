package main

import (
	"cmp"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

type suspension struct {
	Bucket string `json:"bucket"`
	report.Suspension
}

func (a *app) suspend() *cobra.Command {
	var until string
	var order quota.Suspension
	c := a.Command("suspend", func(c *cobra.Command, _ []string) error {
		return a.withBucket(c, order.Bucket, func(g *gate) error {
			if err := g.whole(order.Bucket); err != nil {
				return err
			}
			now, err := g.Ledger.Time(c.Context())
			if err != nil {
				return err
			}
			order.Credential, order.By = g.Credential, cmp.Or(order.By, userName())
			if until == "" {
				_, order.Until = g.prices().Reset(order.Bucket).Bounds(now)
			} else if order.Until, err = parseTime("until", until, now, +1); err != nil {
				return err
			}
			if !order.Until.After(now) {
				return cli.Usagef("--until %s is in the past", until)
			}
			if err := g.Ledger.Suspend(c.Context(), order); err != nil {
				return err
			}
			u, err := g.BucketUsage(c.Context(), order.Bucket)
			if err != nil {
				return err
			}
			return a.Print(suspension{order.Bucket, report.NewSuspension(u)}, func(s cli.Screen) {
				s.Say("%s is suspended %s\n", order.Bucket,
					report.NewSuspension(u).Text(s.Moment(u.SuspendedUntil), s.Moment))
			})
		})
	})
	cli.Flags(c.Flags(), "bucket", &order.Bucket, "until", &until, "reason", &order.Reason,
		"by", &order.By)
	return c
}

func (a *app) resume() *cobra.Command {
	var bucket string
	// ends the suspension of the bucket and its parts
	c := a.Command("resume", func(c *cobra.Command, _ []string) error {
		return a.withBucket(c, bucket, func(g *gate) error {
			totals, err := g.Ledger.BucketsOf(c.Context(), g.Credential)
			if err != nil {
				return err
			}
			names := quota.BucketNames(totals)
			if !slices.Contains(names, bucket) {
				names = append(names, bucket)
			}
			slices.Sort(names)
			lifted := []suspension{}
			for _, name := range names {
				if name != bucket && quota.WholeOf(name) != bucket {
					continue
				}
				u, err := g.BucketUsage(c.Context(), name)
				if err == nil && !u.SuspendedUntil.IsZero() {
					err = g.Resume(c.Context(), name)
					lifted = append(lifted, suspension{name, report.NewSuspension(u)})
				}
				if err != nil {
					return err
				}
			}
			out := object{"bucket", bucket, "suspended_until", nil, "lifted", lifted}
			return a.Print(out, func(s cli.Screen) {
				if len(lifted) == 0 {
					s.Say("%s is not suspended\n", bucket)
				}
				for _, was := range lifted {
					s.Say("%s is no longer suspended; it was suspended %s\n", was.Bucket,
						was.Text(s.Moment(time.Time(was.SuspendedUntil)), s.Moment))
				}
			})
		})
	})
	cli.Flags(c.Flags(), "bucket", &bucket)
	return c
}
