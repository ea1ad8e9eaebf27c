package main

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
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

// observation is the calls that a limit of a credential would have refused.
type observation struct {
	credential config.Credential
	report.Finding
}

func (a *app) reportObserve() *cobra.Command {
	since, until, bucket := "7d", "", ""
	c := a.Command("report observe", func(c *cobra.Command, _ []string) error {
		return a.withLedger(c.Context(), func(src report.Source) error {
			now, err := src.Ledger.Time(c.Context())
			if err != nil {
				return err
			}
			in, err := spanOf(since, until, now)
			if err != nil {
				return err
			}
			list, err := observe(c.Context(), src, bucket, in)
			if err != nil {
				return err
			}
			if in.Until.IsZero() {
				in.Until = now
			}
			out := object{"since", words.Time(in.Since), "until", words.Time(in.Until),
				"limits", cli.Each(list, func(o observation) object {
					l, f := o.Limit, o.Finding
					return object{"credential", o.credential.Name, "bucket", l.Bucket,
						"window", l.Window.Text(), "timezone", words.OrNull(l.Window.ZoneName()),
						"units", l.Units, "headroom", l.Headroom, "from", words.Time(f.From),
						"charged_units", f.Charged.Units, "charged_calls", f.Charged.Charges,
						"refused_units", f.Refused.Units, "refused_calls", f.Refused.Charges,
						"share", math.Round(f.Share()*1e6) / 1e6, "by", f.By, "hours", f.Hours,
						"exact", f.Exact, "note", words.OrNull(f.Note)}
				})}
			return a.Print(out, func(s cli.Screen) {
				if len(list) == 0 {
					s.Say("no limit is in observe mode: add \"mode: observe\" to one in " +
						"quota.yaml\n")
				}
				for i, o := range list {
					if i > 0 {
						s.Say("\n")
					}
					o.draw(s, src.Config, in)
				}
			})
		})
	})
	cli.Flags(c.Flags(), "since", &since, "until", &until, "bucket", &bucket)
	return c
}

// observe replays the log of each credential against its observed limits.
func observe(ctx context.Context, src report.Source, bucket string, in report.Span) (
	list []observation, err error) {
	for _, c := range src.Config.Credentials {
		budget := c.Budget(src.Ledger, src.Config.Table(c), nil)
		limits, err := budget.Standing(ctx)
		if err != nil {
			return nil, err
		}
		var watched []quota.Limit
		for _, l := range limits {
			isNamed := bucket == "" || l.Bucket == bucket || quota.WholeOf(l.Bucket) == bucket
			if isNamed && (c.Observe || l.Observe) {
				watched = append(watched, l)
			}
		}
		findings, err := replay(ctx, budget, watched, in, src.Config.Table(c))
		if err != nil {
			return nil, err
		}
		for _, f := range findings {
			list = append(list, observation{c, f})
		}
	}
	return list, nil
}

// replay reads each log once, for all its limits.
func replay(ctx context.Context, b *quota.Budget, limits []quota.Limit, in report.Span,
	t *costs.Table) ([]report.Finding, error) {
	if len(limits) == 0 {
		return nil, nil
	}
	usage, err := b.Ledger.Usage(ctx, b.Credential, limits)
	if err != nil {
		return nil, err
	}
	var findings []report.Finding
	for _, u := range usage.Buckets {
		var plays []*report.Replay
		for _, l := range u.Limits {
			p := report.NewReplay(l.Limit, u.ResetAt, in.Since, in.Until)
			if settled(t, u.Bucket) {
				p.Settled()
			}
			plays = append(plays, p)
		}
		q := quota.Query{Credential: b.Credential, Bucket: u.Bucket}
		for e, err := range quota.All(ctx, b.Ledger, q) {
			if err != nil {
				return nil, err
			}
			for _, p := range plays {
				if err := p.Add(e); err != nil {
					return nil, err
				}
			}
		}
		for _, p := range plays {
			findings = append(findings, p.Finding())
		}
	}
	return findings, nil
}

// settled reports whether the units of some calls in a bucket are known only afterwards.
func settled(t *costs.Table, bucket string) bool {
	for _, m := range t.Methods() {
		for _, term := range m.Terms {
			if term.Bucket == quota.WholeOf(bucket) && term.Hold+term.Settle != "" {
				return true
			}
		}
	}
	return false
}

// draw writes a sentence about a limit, and the callers and times below it.
func (o observation) draw(s cli.Screen, cfg *config.Config, in report.Span) {
	unit := report.UnitOf(cfg.Table(o.credential), o.Limit.Bucket)
	name := o.Limit.Name()
	if len(cfg.Credentials) > 1 {
		name = o.credential.Name + " " + name
	}
	s.Say("%s, limit %s: %s\n", name, s.Amount(unit, o.Limit.Units), o.sentence(s, unit))
	if o.From.After(in.Since) {
		s.Say("the log begins at %s\n", s.At(words.Time(o.From)).Short)
	}
	if o.Note != "" {
		s.Say("note: %s\n", o.Note)
	}
	if len(o.By) == 0 {
		return
	}
	callers := cli.View(o.By[:min(len(o.By), mostSpenders)], func(g report.RefusedBy) cli.Row {
		return cli.Row{">refused", s.Amount(unit, g.Units), ">calls", g.Charges,
			"labels", spender{Labels: g.Labels}.text()}
	})
	callers.More("labels", len(o.By)-mostSpenders)
	listed := len(o.Hours)
	if listed > maxHours+1 {
		listed = maxHours
	}
	hours := cli.View(o.Hours[:listed], func(h report.RefusedHour) cli.Row {
		return cli.Row{"hour", time.Time(h.At).UTC().Format("2006-01-02 15:04Z"),
			">refused", s.Amount(unit, h.Units), ">calls", h.Charges}
	})
	hours.More("hour", len(o.Hours)-listed)
	s.Draw(callers, cli.Cut("labels", 20))
	s.Draw(hours)
}

const maxHours = 24

// sentence returns the amount the limit would have refused, with the job, region, method and hour
// if all calls share them.
func (o observation) sentence(s cli.Screen, unit costs.Unit) string {
	switch {
	case o.Limit.Window.Concurrent:
		return "unknown"
	case o.Charged.Charges == 0:
		return "nothing was charged"
	case o.Refused.Charges == 0:
		return fmt.Sprintf("would have refused nothing of %s", s.Amount(unit, o.Charged.Units))
	}
	text := fmt.Sprintf("would have refused %s of %s (%s) in %d of %d calls",
		s.Amount(unit, o.Refused.Units), s.Amount(unit, o.Charged.Units), words.Percent(o.Share()),
		o.Refused.Charges, o.Charged.Charges)
	for _, label := range []string{quota.LabelJob, quota.LabelRegion, quota.LabelMethod} {
		if value := o.Common(label); value != "" {
			text += fmt.Sprintf(", all of %s %s", label, value)
		}
	}
	if hour, all := o.Hour(); all {
		text += fmt.Sprintf(", all at %02d:00Z", hour)
	}
	return text
}

func (a *app) reportChargeback() *cobra.Command {
	var month, by string
	c := a.Command("report chargeback", func(c *cobra.Command, _ []string) error {
		if month == "" || by == "" {
			return misuse(c, "--month or --by is missing")
		}
		begin, err := time.Parse("2006-01", month)
		if err != nil || begin.After(time.Now()) {
			return cli.Usagef("--month %s: write a month that has begun, such as 2026-11",
				words.Plain(month))
		}
		label, _, err := parseBy(by)
		if err != nil {
			return err
		}
		return a.withLedger(c.Context(), func(src report.Source) error {
			out, err := src.Chargeback(c.Context(), begin, by, label)
			if err != nil {
				return err
			}
			return a.printChargeback(out)
		})
	})
	cli.Flags(c.Flags(), "month", &month, "by", onceFlag{&by})
	a.PrintsLines(c)
	return c
}

func (a *app) printChargeback(out report.Chargeback) error {
	if a.InLines() {
		return a.PrintLines(cli.View(out.Rows, func(r report.ChargebackRow) cli.Row {
			usd := ""
			if r.USD != nil {
				usd = strconv.FormatFloat(*r.USD, 'f', -1, 64)
			}
			return cli.Row{"credential", r.Credential, "bucket", r.Bucket, "key", r.Key,
				"units", r.Units, "entries", r.Entries, "share", fmt.Sprintf("%.4f", r.Share), "usd", usd,
				"complete", r.Complete}
		}))
	}
	return a.Print(out, func(s cli.Screen) {
		if len(out.Rows) == 0 {
			s.Say("nothing was spent in %s\n", out.Month)
			return
		}
		var incomplete []string
		t := cli.View(out.Rows, func(r report.ChargebackRow) cli.Row {
			if name := r.Credential + "/" + r.Bucket; !r.Complete && !slices.Contains(incomplete, name) {
				incomplete = append(incomplete, name)
			}
			return cli.Row{"credential", r.Credential, "bucket", r.Bucket,
				out.By, cmp.Or(r.Key, "(none)"), ">spent", s.Amount(r.Counts, r.Units),
				">share", words.Percent(r.Share), ">entries", r.Entries}
		})
		s.Draw(t, cli.Cut(out.By, 12), cli.Cut("bucket", 12))
		if len(incomplete) > 0 {
			s.Say("incomplete, because the ledger may have dropped entries of the month: %s\n",
				strings.Join(incomplete, ", "))
		}
	})
}
