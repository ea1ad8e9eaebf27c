package main

import (
	"context"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

// resumption is the result of resume.
type resumption struct {
	suspension
	Lifted []suspension `json:"lifted"`
}

func (a *app) resume() *cobra.Command {
	var bucket string
	c := &cobra.Command{
		Use:   "resume --bucket B",
		Short: "Lift the suspension of a bucket",
		Long: `resume lifts the suspension of a bucket and of all its parts, and prints until when
each was suspended, by whom and why.`,
		Example: `  quotactl resume --bucket default`,
		Args:    cli.Args(),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withBucket(c, bucket, func(g *gate) error {
				lifted, err := g.lift(c.Context(), bucket)
				if err != nil {
					return err
				}
				return a.resumed(resumption{suspension{Bucket: bucket}, lifted})
			})
		},
	}
	c.Flags().StringVar(&bucket, "bucket", "", "`BUCKET` to resume")
	return c
}

// lift opens the bucket and its parts, and returns those that were suspended.
func (g *gate) lift(ctx context.Context, bucket string) ([]suspension, error) {
	lifted := []suspension{}
	totals, err := g.Ledger.BucketsOf(ctx, g.Credential)
	if err != nil {
		return nil, err
	}
	names := quota.BucketNames(totals)
	if !slices.Contains(names, bucket) {
		names = append(names, bucket)
	}
	slices.Sort(names)
	for _, name := range names {
		if name != bucket && quota.WholeOf(name) != bucket {
			continue
		}
		u, err := g.BucketUsage(ctx, name)
		if err == nil && !u.SuspendedUntil.IsZero() {
			err = g.Resume(ctx, name)
			lifted = append(lifted, suspension{name, report.NewSuspension(u)})
		}
		if err != nil {
			return nil, err
		}
	}
	return lifted, nil
}

func (a *app) resumed(r resumption) error {
	return a.Print(r, func() error {
		screen := a.Screen()
		if len(r.Lifted) == 0 {
			return screen.Say("%s is not suspended\n", r.Bucket)
		}
		for _, s := range r.Lifted {
			until := screen.Moment(time.Time(s.SuspendedUntil))
			if err := screen.Say("%s is no longer suspended; it was suspended %s\n", s.Bucket,
				s.Text(until, screen.Moment)); err != nil {
				return err
			}
		}
		return nil
	})
}
