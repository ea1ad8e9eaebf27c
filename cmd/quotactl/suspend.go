package main

import (
	"context"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
)

type suspension struct {
	Bucket         string   `json:"bucket"`
	SuspendedUntil cli.Time `json:"suspended_until"`
}

func (s suspension) until() time.Time { return time.Time(s.SuspendedUntil) }

func (a *app) suspend() *cobra.Command {
	var bucket, until string
	c := &cobra.Command{
		Use:   "suspend --bucket B",
		Short: "Deny every charge on a bucket until its reset",
		Long: `suspend denies every charge on a bucket. The programs do that themselves when the
upstream says that its quota is used up. The suspension ends at the bucket's reset, at --until, or
with resume.`,
		Example: `  quotactl suspend --bucket default
  quotactl suspend --bucket search_list --until 2026-11-22T08:00:00Z`,
		Args: cli.Args(),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withBucket(c, bucket, func(g *gate) error {
				if err := g.whole(bucket); err != nil {
					return err
				}
				at, err := g.close(c.Context(), bucket, until)
				if err != nil {
					return err
				}
				return a.suspended(suspension{bucket, cli.Time(at)})
			})
		},
	}
	c.Flags().StringVar(&bucket, "bucket", "", "`BUCKET` to suspend")
	c.Flags().StringVar(&until, "until", "",
		"`TIME` in RFC 3339, a day (2026-11-22, in UTC) or a duration from now "+
			"(default the bucket's reset)")
	return c
}

// close suspends the bucket until its reset, or until the time that was asked for.
func (g *gate) close(ctx context.Context, bucket, until string) (time.Time, error) {
	if until == "" {
		return g.Suspend(ctx, bucket, g.cfg.Table(g.cred).Reset(bucket))
	}
	now, err := g.Ledger.Time(ctx)
	if err != nil {
		return time.Time{}, err
	}
	at, err := parseTime(until, now, +1)
	if err != nil {
		return at, cli.Usagef("--until %s: write RFC 3339, such as 2026-11-22T08:00:00Z, or a "+
			"duration such as 2h", until)
	}
	if !at.After(now) {
		return at, cli.Usagef("--until %s is in the past", until)
	}
	return at, g.Ledger.Suspend(ctx, g.Credential, bucket, at)
}

// reset is the upstream's day, in which the bucket fills up again; for a bucket of our own it is
// the day in UTC.
func (a *app) suspended(s suspension) error {
	return a.Print(s, func() error {
		screen := a.Screen()
		return screen.Say("%s is suspended until %s\n", s.Bucket, screen.Moment(s.until()))
	})
}

// parseTime reads RFC 3339, a day in UTC, or a duration before (sign −1) or after (+1) now, to
// the microsecond.
func parseTime(text string, now time.Time, sign time.Duration) (time.Time, error) {
	if d, err := cli.ParseSpan(text); err == nil && d >= 0 {
		return now.Add(sign * d).Truncate(time.Microsecond), nil
	}
	t, err := time.Parse(time.DateOnly, text)
	if err != nil {
		t, err = time.Parse(time.RFC3339, text)
	}
	return t.Truncate(time.Microsecond), err
}
