package main

import (
	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
)

func (a *app) resume() *cobra.Command {
	var bucket string
	c := &cobra.Command{
		Use:     "resume --bucket B",
		Short:   "Lift the suspension of a bucket",
		Example: `  quotactl resume --bucket default`,
		Args:    cli.Args(),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.withBucket(c, bucket, func(g *gate) error {
				if err := g.Resume(c.Context(), bucket); err != nil {
					return err
				}
				return a.suspended(suspension{Bucket: bucket})
			})
		},
	}
	c.Flags().StringVar(&bucket, "bucket", "", "`BUCKET` to resume")
	return c
}
