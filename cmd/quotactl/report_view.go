package main

import (
	"fmt"
	"math"
	"time"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/words"
)

func shownObservation(o observation) object {
	l, f := o.Limit, o.Finding
	return object{"credential", o.credential.Name, "bucket", l.Bucket, "window", l.Window.Text(),
		"timezone", words.OrNull(l.Window.ZoneName()), "units", l.Units, "headroom", l.Headroom,
		"from", words.Time(f.From), "charged_units", f.Charged.Units,
		"charged_calls", f.Charged.Charges, "refused_units", f.Refused.Units,
		"refused_calls", f.Refused.Charges, "share", math.Round(f.Share()*1e6) / 1e6, "by", f.By,
		"hours", f.Hours, "exact", f.Exact, "note", words.OrNull(f.Note)}
}

func (a *app) printObserved(cfg *config.Config, list []observation, in report.Span) error {
	out := object{"since", words.Time(in.Since), "until", words.Time(in.Until),
		"limits", each(list, shownObservation)}
	return a.Print(out, func(s cli.Screen) {
		if len(list) == 0 {
			s.Say("no limit is only observed; \"mode: observe\" in a limit of quota.yaml makes it one\n")
		}
		for i, o := range list {
			if i > 0 {
				s.Say("\n")
			}
			o.draw(s, cfg, in)
		}
	})
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
	callers := s.Table(">refused", ">calls", "labels")
	for i, g := range o.By {
		if i == mostSpenders {
			callers.Row("", "", fmt.Sprintf("… %d more", len(o.By)-i))
			break
		}
		callers.Row(s.Amount(unit, g.Units), g.Charges, spender{Labels: g.Labels}.text())
	}
	hours := s.Table("hour", ">refused", ">calls")
	for i, h := range o.Hours {
		if more := len(o.Hours) - i; i == mostHours && more > 1 {
			hours.Row(fmt.Sprintf("… %d more", more))
			break
		}
		hours.Row(time.Time(h.At).UTC().Format("2006-01-02 15:04Z"),
			s.Amount(unit, h.Units), h.Charges)
	}
	s.Draw(callers, cli.Cut("labels", 20))
	s.Draw(hours)
}

const mostHours = 24

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
