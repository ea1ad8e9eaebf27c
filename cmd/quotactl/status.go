package main

import (
	"context"
	"fmt"
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
		Short: "How much is left, and when units come free",
		Long: `status shows every credential, bucket and limit: the units used in the window, held by reservations, and
remaining for scheduled charges, which stop short of the headroom.`,
		Example: `  quotactl status
  quotactl status --credential key1
  quotactl status -o json | jq '.credentials[].buckets[].limits[].remaining'`,
		Args: cli.Args(),
		RunE: func(c *cobra.Command, _ []string) error {
			list, err := a.standing(c.Context())
			if err != nil {
				return err
			}
			return a.Print(a.stdout, list, func() error { return a.statusTable(list) })
		},
	}
}

// standing asks for every credential, or the one that was chosen.
func (a *app) standing(ctx context.Context) (statusList, error) {
	list := statusList{Credentials: []credentialStatus{}}
	cfg, err := a.Load(a.getenv)
	if err != nil {
		return list, err
	}
	credentials := cfg.Credentials
	if a.Credential != "" {
		chosen, err := a.Chosen(cfg)
		if err != nil {
			return list, err
		}
		credentials = []config.Credential{chosen}
	}
	l, err := cli.OpenLedger(ctx, cfg.Ledger)
	if err != nil {
		return list, err
	}
	defer l.Close()
	for _, c := range credentials {
		usage, err := l.Usage(ctx, c.Name, c.Limits)
		if err != nil {
			return list, err
		}
		list.Credentials = append(list.Credentials, newCredentialStatus(c, usage))
	}
	return list, nil
}

func newCredentialStatus(c config.Credential, usage quota.Usage) credentialStatus {
	out := credentialStatus{Credential: c.Name, Mode: c.Mode(), Buckets: []bucketStatus{}, at: usage.At}
	for _, b := range usage.Buckets {
		bucket := bucketStatus{Bucket: b.Bucket, Held: b.Held, SuspendedUntil: cli.Time(b.SuspendedUntil)}
		for _, l := range b.Limits {
			bucket.Limits = append(bucket.Limits, limitStatus{
				Window: l.Limit.Window.Text(), Timezone: orNull(l.Limit.Window.ZoneName()), Units: l.Limit.Units,
				Headroom: l.Limit.Headroom, Used: l.Used, Remaining: l.Remaining, NextFreeAt: cli.Time(l.NextFreeAt),
			})
		}
		out.Buckets = append(out.Buckets, bucket)
	}
	return out
}

const barCells = 12

func (a *app) statusTable(list statusList) error {
	s := a.screen()
	columns := []string{"credential", "bucket", "window", ">used", ">limit", ">headroom", ">held", ">remaining", "units come free"}
	if s.Bars {
		columns = append(columns[:3:3], append([]string{""}, columns[3:]...)...)
	}
	t := s.Table(columns...)
	var notes []string
	for _, c := range list.Credentials {
		name := c.Credential
		if c.Mode != "enforce" {
			name += " (" + c.Mode + ")"
		}
		for _, b := range c.Buckets {
			if until := time.Time(b.SuspendedUntil); !until.IsZero() {
				notes = append(notes, fmt.Sprintf("%s: bucket %s is suspended until %s (in %s)",
					c.Credential, b.Bucket, cli.Moment(until), cli.Span(until.Sub(c.at))))
			}
			for _, l := range b.Limits {
				t.AppendRow(statusRow(s, c, name, b, l))
			}
		}
	}
	if err := s.Draw(t); err != nil {
		return err
	}
	for _, note := range notes {
		if _, err := fmt.Fprintln(a.stdout, note); err != nil {
			return err
		}
	}
	return nil
}

func statusRow(s cli.Screen, c credentialStatus, name string, b bucketStatus, l limitStatus) []any {
	window, free := l.Window, ""
	if l.Timezone != nil {
		window += " " + *l.Timezone
	}
	if at := time.Time(l.NextFreeAt); !at.IsZero() {
		free = fmt.Sprintf("%s (in %s)", cli.Moment(at), cli.Span(at.Sub(c.at)))
	}
	row := []any{name, b.Bucket, window}
	if s.Bars {
		row = append(row, s.Bar(l.Used+b.Held, l.Units, barCells))
	}
	for _, n := range []int64{l.Used, l.Units, l.Headroom, b.Held, l.Remaining} {
		row = append(row, s.Number(n))
	}
	return append(row, free)
}
