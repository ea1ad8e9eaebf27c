package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/words"
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
resume it; what changes anything is asked first.

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
				v := &topView{ctx: c.Context(), reader: &topReader{Source: src}, every: every,
					screen: a.Screen()}
				first, err := v.reader.read(c.Context())
				if err != nil {
					return err
				}
				v.got(first, nil)
				if cli.IsTerminal(a.Stdout) && a.Getenv("TERM") != "dumb" {
					return v.run(a)
				}
				return a.topPlain(c.Context(), v, repeat)
			})
		},
	}
	c.Flags().DurationVar(&every, "interval", topEvery, "`TIME` between two readings of the ledger")
	return c
}

// topPlain prints pictures as text, until it is interrupted.
func (a *app) topPlain(ctx context.Context, v *topView, repeat bool) error {
	for away := new(outage); ; {
		if away.since.IsZero() {
			if _, err := fmt.Fprintln(a.Stdout, v.text(time.Now())); err != nil {
				return err
			}
		}
		if !repeat {
			return nil
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(v.every):
		}
		pic, err := v.reader.read(ctx)
		if ctx.Err() != nil {
			return nil
		}
		if failed := a.bridge(away, err); failed != nil {
			return failed
		}
		if v.got(pic, err); err == nil {
			fmt.Fprintln(a.Stdout)
		}
	}
}

// topReader reads pictures. Only one goroutine may use it at a time.
type topReader struct {
	report.Source
	outlook   []string
	outlookAt time.Time
}

// picture is one reading of the ledger.
type picture struct {
	status   report.Status
	charges  []latestCharge  // newest first
	spenders []recentSpender // the latest first
	outlook  []string        // the forecasts in words
}

// latestCharge is one of the latest entries.
type latestCharge struct {
	quota.Entry
	counts costs.Unit // what its units are
}

// recentSpender is the last time that a job, or a region without a job, spent units of a bucket.
type recentSpender struct {
	name, bucket string
	at           time.Time
	units        int64 // within the last 24 hours
	counts       costs.Unit
}

const topCharges = 60

func (r *topReader) read(ctx context.Context) (pic picture, err error) {
	if pic.status, err = r.Status(ctx); err != nil {
		return pic, err
	}
	for i, c := range r.Config.Credentials {
		if err := r.readLog(ctx, c, pic.status.Credentials[i].At, &pic); err != nil {
			return pic, err
		}
	}
	slices.SortStableFunc(pic.charges, func(a, b latestCharge) int { return b.At.Compare(a.At) })
	pic.charges = pic.charges[:min(len(pic.charges), topCharges)]
	slices.SortStableFunc(pic.spenders, func(a, b recentSpender) int { return b.at.Compare(a.at) })
	pic.outlook = r.forecasts(ctx)
	return pic, nil
}

// readLog adds the charges and the spenders of a credential.
func (r *topReader) readLog(ctx context.Context, c config.Credential, now time.Time,
	pic *picture) error {
	buckets, err := r.gate(c).chosen(ctx, "")
	if err != nil {
		return err
	}
	for _, b := range buckets {
		unit := report.UnitOf(r.Config.Table(c), b)
		entries, err := r.Ledger.Entries(ctx, quota.Query{Credential: c.Name, Bucket: b,
			Limit: topCharges})
		if err != nil {
			return err
		}
		for _, e := range entries {
			pic.charges = append(pic.charges, latestCharge{e, unit})
		}
		if report.SumsParts(c, b) {
			continue
		}
		sums, err := quota.SumsAfter(ctx, r.Ledger, quota.SumQuery{Credential: c.Name, Bucket: b,
			Since: now.Add(-24 * time.Hour)})
		if err != nil {
			return err
		}
		pic.spent(b, unit, sums, entries)
	}
	return nil
}

// spent adds the spenders of a bucket. A sum has the time at which its ten minutes begin, an entry
// its own.
func (p *picture) spent(bucket string, unit costs.Unit, sums []quota.Sum, entries []quota.Entry) {
	seen := make(map[string]*recentSpender)
	add := func(labels quota.Labels, at time.Time, units int64) {
		label := quota.LabelRegion
		if labels[quota.LabelJob] != "" {
			label = quota.LabelJob
		}
		name := label + " " + labels[label]
		if labels[label] == "" {
			return
		}
		if seen[name] == nil {
			seen[name] = &recentSpender{name: name, bucket: bucket, counts: unit}
		}
		s := seen[name]
		s.units += units
		if at.After(s.at) {
			s.at = at
		}
	}
	for _, sum := range sums {
		add(sum.Labels, sum.At, sum.Units)
	}
	for _, e := range entries {
		add(e.Labels, e.At, 0)
	}
	for _, s := range seen {
		p.spenders = append(p.spenders, *s)
	}
	slices.SortFunc(p.spenders, func(a, b recentSpender) int {
		return cmp.Or(cmp.Compare(a.name, b.name), cmp.Compare(a.bucket, b.bucket))
	})
}

// forecasts returns the forecasts in sentences. It makes new ones at most once a minute, because
// that takes longer than reading.
func (r *topReader) forecasts(ctx context.Context) []string {
	if time.Since(r.outlookAt) >= time.Minute {
		var out bytes.Buffer
		results, err := r.Forecasts(ctx, "")
		sayOutlook(cli.Screen{W: &out}, results, err) // to memory
		r.outlook, r.outlookAt = splitLines(out.String()), time.Now()
	}
	return r.outlook
}

func splitLines(text string) []string { return strings.Split(strings.Trim(text, "\n"), "\n") }

func (r *topReader) gate(c config.Credential) *gate {
	return &gate{c.Budget(r.Ledger, r.Config.Table(c), nil), r.Ledger, r.Config, c}
}

// deed is what a key does to a bucket.
type deed struct{ verb, credential, bucket string }

// do performs a deed, and returns the result in lines.
func (r *topReader) do(ctx context.Context, d deed) []string {
	cred, err := r.Config.Credential(d.credential)
	if err != nil {
		return []string{err.Error()}
	}
	g := r.gate(cred)
	var out bytes.Buffer
	switch d.verb {
	case "suspend":
		of := quota.Suspension{Bucket: d.bucket}
		if err = g.close(ctx, &of, ""); err == nil {
			return []string{d.bucket + " is suspended until " + words.Moment(of.Until)}
		}
	case "resume":
		if err = g.Resume(ctx, d.bucket); err == nil {
			return []string{d.bucket + " is not suspended any more"}
		}
	case "explain":
		a := &app{cli.Common{Stdout: &out, Stderr: io.Discard, Output: "table", UTC: true,
			Getenv: func(string) string { return "" }}}
		err = a.explainCall(ctx, g, quota.Call{Bucket: d.bucket, Units: 1})
		if out.Len() > 0 {
			return append(splitLines(out.String()), "", "press any key to go back")
		}
	}
	if err == nil {
		return nil
	}
	return []string{err.Error()}
}
