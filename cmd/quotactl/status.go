package main

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/report"
)

func (a *app) status() *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Show how much is left, and when units come free",
		Long: `status shows for each limit the units used in its window, the units held by
reservations, and what remains for scheduled charges. These leave the headroom to people (--manual).
On a narrow terminal, 9,500+500 is a limit of 10,000 with a headroom of 500. Below the table are the
buckets that will run short (see forecast).`,
		Example: `  quotactl status
  quotactl status --credential key1
  quotactl status -o json | jq '.credentials[].buckets[].limits[].remaining'`,
		Args: cli.Args(),
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := a.usage(c.Context())
			if err != nil {
				return err
			}
			return a.Print(list, func() error {
				return cmp.Or(a.statusTable(list), a.outlook(c.Context()))
			})
		},
	}
}

func (a *app) usage(ctx context.Context) (list report.Status, err error) {
	err = a.withLedger(ctx, func(src report.Source) error {
		list, err = src.Status(ctx)
		return err
	})
	return list, err
}

// statusTable draws the table, and a note for each bucket that is suspended.
func (a *app) statusTable(list report.Status) error {
	s := a.Screen()
	err := drawStatus(s, list)
	for _, c := range list.Credentials {
		for _, b := range c.Buckets {
			if until := time.Time(b.SuspendedUntil); !until.IsZero() {
				err = cmp.Or(err,
					s.Say("%s: %s is suspended (by the upstream or by a person) until %s\n",
						c.Credential, b.Bucket, s.Until(until, c.At).Text))
			}
		}
	}
	return err
}
