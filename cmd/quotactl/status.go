package main

import (
	"cmp"
	"context"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/quota"
)

type statusList struct {
	Credentials []credentialStatus `json:"credentials"`
}

type credentialStatus struct {
	Credential string         `json:"credential"`
	Mode       string         `json:"mode"`
	Buckets    []bucketStatus `json:"buckets"`

	at time.Time
}

type bucketStatus struct {
	Bucket         string        `json:"bucket"`
	Held           int64         `json:"held"`
	SuspendedUntil cli.Time      `json:"suspended_until"`
	Limits         []limitStatus `json:"limits"`
}

type limitStatus struct {
	Window     string   `json:"window"`
	Timezone   *string  `json:"timezone"`
	Units      int64    `json:"units"`
	Headroom   int64    `json:"headroom"`
	Used       int64    `json:"used"`
	Remaining  int64    `json:"remaining"`
	NextFreeAt cli.Time `json:"next_free_at"`
}

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

func (a *app) usage(ctx context.Context) (list statusList, err error) {
	err = a.withLedger(ctx, func(cfg *config.Config, l quota.Ledger) error {
		for _, c := range cfg.Credentials {
			usage, err := l.Usage(ctx, c.Name, c.Limits)
			if err != nil {
				return err
			}
			list.Credentials = append(list.Credentials, newCredentialStatus(c, usage))
		}
		return nil
	})
	return list, err
}

func newCredentialStatus(c config.Credential, usage quota.Usage) credentialStatus {
	out := credentialStatus{Credential: c.Name, Mode: c.Mode(), Buckets: []bucketStatus{},
		at: usage.At}
	for _, b := range usage.Buckets {
		bucket := bucketStatus{Bucket: b.Bucket, Held: b.Held,
			SuspendedUntil: cli.Time(b.SuspendedUntil)}
		for _, l := range b.Limits {
			bucket.Limits = append(bucket.Limits, limitStatus{
				Window: l.Limit.Window.Text(), Timezone: cli.OrNull(l.Limit.Window.ZoneName()),
				Units: l.Limit.Units, Headroom: l.Limit.Headroom,
				Used: l.Used, Remaining: l.Remaining, NextFreeAt: cli.Time(l.NextFreeAt),
			})
		}
		out.Buckets = append(out.Buckets, bucket)
	}
	return out
}

// statusTable draws the table, and a note for each bucket that is suspended.
func (a *app) statusTable(list statusList) error {
	s := a.Screen()
	err := drawStatus(s, list)
	for _, c := range list.Credentials {
		for _, b := range c.Buckets {
			if until := time.Time(b.SuspendedUntil); !until.IsZero() {
				err = cmp.Or(err,
					s.Say("%s: %s is suspended (by the upstream or by a person) until %s\n",
						c.Credential, b.Bucket, s.Until(until, c.at).Text))
			}
		}
	}
	return err
}
