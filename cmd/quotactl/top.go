package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

const (
	topEvery     = time.Second // where --interval does not say otherwise
	topEveryMost = 24 * time.Hour
)

func (a *app) top() *cobra.Command {
	var every time.Duration
	c := &cobra.Command{
		Use:   "top",
		Short: "Watch buckets, the latest charges, jobs and regions, live",
		Long: `top shows every bucket with its limits, bars and resets, the latest charges, and when
each job and region last spent anything, as it happens. Keys select a bucket and explain, suspend or
resume it, filter, sort and pause; ? lists them. What changes anything is asked first.

While the ledger cannot be reached, it shows what was there last and waits. Where standard output is
no terminal, it prints one picture as text; with --interval, one after the other.`,
		Example: `  quotactl top
  quotactl top --credential key1 --interval 5s
  quotactl top > picture.txt
  quotactl top --interval 1m >> pictures.log`,
		Args: cli.Args(),
		RunE: func(c *cobra.Command, _ []string) error {
			repeat := c.Flags().Changed("interval")
			switch {
			case a.Output != "table":
				return cli.Hint(cli.Usagef("top is for people"), "quotactl status -o %s and "+
					"quotactl log -o jsonl are for programs", a.Output)
			case every < 100*time.Millisecond || every > topEveryMost:
				return cli.Usagef("--interval %s: must be from 100ms to 24h", every)
			}
			return a.withLedger(c.Context(), func(src report.Source) error {
				r := &topReader{Source: src}
				first, err := r.read(c.Context(), time.Now())
				if err != nil {
					return err
				}
				state := topState{Every: every}.Got(first, nil, time.Now())
				if cli.IsTerminal(a.Stdout) && a.Getenv("TERM") != "dumb" {
					return a.topLive(c.Context(), r, state)
				}
				return a.topPlain(c.Context(), r, state, repeat)
			})
		},
	}
	c.Flags().DurationVar(&every, "interval", topEvery, "`TIME` between two readings of the ledger")
	return c
}

// topPlain prints pictures as text, until it is interrupted or nobody reads any more.
func (a *app) topPlain(ctx context.Context, r *topReader, state topState, repeat bool) error {
	away := new(outage)
	for {
		screen := a.Screen()
		state = state.Foretold(r.outlook(ctx))
		if away.since.IsZero() {
			if _, err := fmt.Fprintln(a.Stdout, state.View(screen, 0, time.Now())); err != nil {
				return err
			}
		}
		if !repeat {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(state.Every):
		}
		pic, err := r.read(ctx, time.Now())
		if ctx.Err() != nil || a.Unread() {
			return nil
		}
		if failed := a.bridge(away, err); failed != nil {
			return failed
		}
		state = state.Got(pic, err, time.Now())
		if err == nil {
			fmt.Fprintln(a.Stdout)
		}
	}
}

// topReader reads pictures.
type topReader struct {
	report.Source

	last       picture
	marks      string
	buckets    map[string][]string // by credential
	listedAt   time.Time
	sums       []recentSpender
	foretold   []string
	foretoldAt time.Time
	keepFor    time.Duration // what was foretold
}

// Even where nothing has changed, windows slide: the ledger is read every few seconds. Buckets are
// listed, and a day is added up, less often.
const (
	topReadEvery = 5 * time.Second
	topListEvery = 15 * time.Second
	topCharges   = 60
)

// read returns a picture of a moment. Only one goroutine may call it.
func (r *topReader) read(ctx context.Context, now time.Time) (picture, error) {
	marks, err := r.mark(ctx, now)
	if err != nil {
		return picture{}, err
	}
	if marks == r.marks && now.Sub(r.last.At) < topReadEvery {
		return r.last, nil
	}
	pic := picture{At: now}
	if pic.Status, err = r.Status(ctx); err != nil {
		return pic, err
	}
	for _, c := range r.Config.Credentials {
		for _, b := range r.buckets[c.Name] {
			q := quota.Query{Credential: c.Name, Bucket: b, Limit: topCharges}
			entries, err := r.Ledger.Entries(ctx, q)
			if err != nil {
				return pic, err
			}
			for _, e := range entries {
				pic.Charges = append(pic.Charges, latest{Credential: c.Name, Entry: e,
					Counts: report.UnitOf(r.Config.Table(c), b)})
			}
		}
	}
	pic.Charges = latestOf(pic.Charges, topCharges)
	pic.Seen = lately(r.sums, pic.Charges)
	r.last, r.marks = pic, marks
	return pic, nil
}

// mark returns the marks of all credentials. It also refreshes what is read less often.
func (r *topReader) mark(ctx context.Context, now time.Time) (marks string, err error) {
	listed := now.Sub(r.listedAt) < topListEvery
	if !listed {
		r.buckets, r.sums = make(map[string][]string), nil
	}
	for _, c := range r.Config.Credentials {
		if !listed {
			if err := r.list(ctx, c); err != nil {
				return "", err
			}
		}
		mark, err := r.Ledger.Mark(ctx, c.Name, r.buckets[c.Name])
		if err != nil {
			return "", err
		}
		marks += mark + "\x00"
	}
	if !listed {
		r.listedAt = now
	}
	return marks, nil
}

// list finds the buckets of a credential, and who spent of them within a day.
func (r *topReader) list(ctx context.Context, c config.Credential) (err error) {
	r.listedAt = time.Time{} // until all of it is read
	g := &gate{c.Budget(r.Ledger, r.Config.Table(c), nil), r.Ledger, r.Config, c}
	if r.buckets[c.Name], err = g.chosen(ctx, ""); err != nil {
		return err
	}
	at, err := r.Ledger.Time(ctx)
	if err != nil {
		return err
	}
	for _, b := range r.buckets[c.Name] {
		if report.SumsParts(c, b) {
			continue
		}
		sums, err := quota.SumsAfter(ctx, r.Ledger, quota.SumQuery{Credential: c.Name,
			Bucket: b, Since: at.Add(-24 * time.Hour)})
		if err != nil {
			return err
		}
		r.sums = addUp(r.sums, b, report.UnitOf(r.Config.Table(c), b), sums)
	}
	return nil
}

// outlook returns the forecasts in sentences. It makes new ones at most once a minute, less often
// if that takes long.
func (r *topReader) outlook(ctx context.Context) []string {
	if began := time.Now(); began.Sub(r.foretoldAt) >= r.keepFor {
		var out bytes.Buffer
		a := &app{cli.Common{Stdout: &out, Getenv: func(string) string { return "" }, UTC: true}}
		results, err := r.Forecasts(ctx, "")
		a.sayOutlook(results, err) // to memory
		r.foretold = strings.Split(strings.TrimSpace(out.String()), "\n")
		r.foretoldAt, r.keepFor = began, max(time.Minute, 50*time.Since(began))
	}
	return r.foretold
}

// do performs what a key requested, and returns the result in lines.
func (r *topReader) do(ctx context.Context, w wish) []string {
	cred, err := r.Config.Credential(w.Credential)
	if err != nil {
		return []string{err.Error()}
	}
	g := &gate{cred.Budget(r.Ledger, r.Config.Table(cred), nil), r.Ledger, r.Config, cred}
	var out bytes.Buffer
	a := &app{cli.Common{Stdout: &out, Stderr: io.Discard, Output: "table", UTC: true,
		Getenv: func(string) string { return "" }}}
	switch w.Do {
	case doSuspend:
		of := quota.Suspension{Bucket: w.Bucket}
		if err = g.close(ctx, &of, ""); err == nil {
			return []string{w.Bucket + " is suspended until " + a.Screen().Moment(of.Until)}
		}
	case doResume:
		if err = g.Resume(ctx, w.Bucket); err == nil {
			return []string{w.Bucket + " is not suspended any more"}
		}
	case doExplain:
		err = a.explainCall(ctx, g, quota.Call{Bucket: w.Bucket, Units: 1})
		if out.Len() > 0 {
			return append(strings.Split(strings.TrimSpace(out.String()), "\n"), "")
		}
	}
	if err != nil {
		return []string{err.Error()}
	}
	return nil
}
