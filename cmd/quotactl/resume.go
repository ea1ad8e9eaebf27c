package main

import (
	"context"
	"slices"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/quota"
)

// resumption is what resume has lifted.
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
each was suspended.`,
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
		until, err := g.SuspendedUntil(ctx, name)
		if err == nil && !until.IsZero() {
			err = g.Resume(ctx, name)
			lifted = append(lifted, suspension{name, cli.Time(until)})
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
			if err := screen.Say("%s is open again: it was suspended until %s\n", s.Bucket,
				screen.Moment(s.until())); err != nil {
				return err
			}
		}
		return nil
	})
}
