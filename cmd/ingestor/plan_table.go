package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/plan"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/share"
	"quotabudget/internal/words"
)

// Numbers of rows listed of a long plan.
const (
	firstDays     = 10
	firstOverlaps = 5 // collisions
)

func drawPlan(s cli.Screen, o *planned) {
	sayVerdict(s, o)
	drawLimits(s, o)
	for _, bucket := range o.Plan.Buckets() {
		s.Say("\nBucket %s by the upstream's day\n", bucket)
		drawDays(s, o, bucket)
	}
	drawTakings(s, o)
	drawLosses(s, o)
	drawCollisions(s, o)
	saySuggestion(s, o)
}

func sayVerdict(s cli.Screen, o *planned) {
	r := &o.Report
	verdict := "it fits"
	switch over := r.Over(o.Share); {
	case !r.Fits():
		verdict = fmt.Sprintf("it does not fit: %d of %d runs get less than they want", r.Lost(),
			r.Runs)
	case len(over) > 0:
		verdict = fmt.Sprintf("it fits, but %s peaks above %s", over[0].Limit.Name(),
			o.flags.failOver)
	}
	text := fmt.Sprintf("%s from %s to %s: %s\n", words.Plural(int64(len(r.Lanes)), "lane"),
		s.Moment(r.From), s.Moment(r.To), verdict)
	if f := r.First; f != nil {
		text += fmt.Sprintf("first lost: %s\n", describeLost(s, f))
	}
	if o.Assumed {
		text += "nothing is scheduled: this is the default schedule, which ingestor run would " +
			"follow; ingest: in quota.yaml sets another\n"
	}
	if o.chartless && slices.ContainsFunc(o.Plan.Lanes, share.Lane.HasRegion) {
		text += "no charts yet: the plan assumes the configured number of pages\n"
	}
	if names := o.Plan.Unplayed; len(names) > 0 {
		text += fmt.Sprintf("the plan leaves out limits per label: %s\n", strings.Join(names, ", "))
	}
	s.Say("%s\n", text)
}

func describeLost(s cli.Screen, r *plan.Run) string {
	text := fmt.Sprintf("%s %s, ", s.Moment(r.At.Truncate(time.Second)), r.Title())
	switch r.Outcome {
	case plan.LeftOut:
		return text + "left out for its share of the day"
	case plan.Partial:
		text += fmt.Sprintf("%d of %d pages, then denied: %s", r.Pages, r.Wanted, r.Limit)
	default:
		text += "denied: " + r.Limit
	}
	if !r.RetryAt.IsZero() {
		text += ", until " + s.Moment(r.RetryAt)
	}
	return text
}

func drawLimits(s cli.Screen, o *planned) {
	table := cli.View(o.Report.Windows, func(u plan.Use) cli.Row {
		used := "-"
		if u.Cap > 0 {
			used = fmt.Sprintf("%.1f%%", 100*u.Share())
		}
		var color cli.Color
		if u.Margin <= 0 && u.Limit.Pace == nil {
			color = cli.Yellow
		}
		amount := o.amount(s, u.Limit.Bucket)
		return cli.Row{color, "limit", u.Limit.Name(), ">units", amount(u.Limit.Units),
			">headroom", amount(u.Limit.Headroom), ">peak", amount(u.Peak), ">used", used,
			"at", s.On(u.At.Truncate(time.Second)), ">least left", amount(u.Margin),
			"", s.Bar(u.Peak, u.Cap, 12)}
	})
	s.Draw(table, cli.Shorten("at"), cli.Drop(""), cli.Drop("headroom"),
		cli.Cut("limit", 30), cli.Drop("at"), cli.Cut("limit", 20))
}

func (o *planned) amount(s cli.Screen, bucket string) func(int64) string {
	unit := report.UnitOf(o.Costs, bucket)
	return func(n int64) string { return s.Amount(unit, n) }
}

// drawDays draws the first days of a bucket, and the totals.
func drawDays(s cli.Screen, o *planned, bucket string) {
	var days []plan.Day
	for _, d := range o.Report.Days {
		if d.Bucket == bucket {
			days = append(days, d)
		}
	}
	amount := o.amount(s, bucket)
	row := func(date string, d plan.Day, first string) cli.Row {
		row := cli.Row{"day", date, ">planned", amount(d.Planned), ">spent", amount(d.Spent),
			">runs", d.Runs, ">lost", d.Lost()}
		for _, u := range d.Windows {
			name := u.Limit.Window.Text()
			if u.Limit.Pace != nil {
				name = quota.PaceName
			}
			row = append(row, ">peak "+name, amount(u.Peak))
		}
		return append(row, ">collisions", d.Crowded, "first lost", first)
	}
	t := cli.View(days[:min(len(days), firstDays)], func(d plan.Day) cli.Row {
		first := ""
		if d.First != nil {
			first = fmt.Sprintf("%s %s: %s", s.On(d.First.At).Short, d.First.Title(), d.First.Limit)
		}
		return row(d.Start.In(o.Plan.Reset.Zone).Format("2006-01-02 Mon"), d, first)
	})
	t.More("day", len(days)-firstDays)
	t.Add(row("total, peak", total(days), ""))
	s.Draw(t, cli.Drop("collisions"), cli.Cut("first lost", 24), cli.Drop("runs"),
		cli.Drop("planned"), cli.Cut("first lost", 8))
}

// total adds up the days, and returns the highest peak of each window.
func total(days []plan.Day) (sum plan.Day) {
	for i, d := range days {
		if i == 0 {
			sum.Windows = slices.Clone(d.Windows)
		}
		sum.Planned, sum.Spent, sum.Crowded = sum.Planned+d.Planned, sum.Spent+d.Spent,
			sum.Crowded+d.Crowded
		sum.Runs, sum.Complete = sum.Runs+d.Runs, sum.Complete+d.Complete
		for i, u := range d.Windows {
			sum.Windows[i].Peak = max(sum.Windows[i].Peak, u.Peak)
		}
	}
	return sum
}

func drawLosses(s cli.Screen, o *planned) {
	if o.Report.Fits() {
		return
	}
	table := cli.View(o.Report.Lanes, func(l plan.LaneUse) cli.Row {
		return cli.Row{"region", l.Title(), "job", l.Job, ">runs", l.Runs, ">complete", l.Complete,
			">partial", l.Partial, ">denied", l.Denied, ">left out", l.LeftOut, ">pages", l.Pages,
			">of", l.Wanted}
	})
	s.Say("\nLost runs\n")
	s.Draw(table, cli.Cut("job", 8), cli.Drop("complete"), cli.Drop("job"))
}

func drawCollisions(s cli.Screen, o *planned) {
	overlaps := o.Report.Collisions
	if len(overlaps) == 0 {
		return
	}
	table := cli.View(overlaps[:min(len(overlaps), firstOverlaps)], func(c plan.Collision) cli.Row {
		return cli.Row{">ticks", c.Ticks, ">times", int64(c.Times), "first", s.On(c.First),
			"lanes", strings.Join(c.Lanes, " ")}
	})
	table.More("first", len(overlaps)-firstOverlaps)
	s.Say("\nLanes that tick in one minute\n")
	s.Draw(table, cli.Cut("lanes", 30), cli.Shorten("first"), cli.Cut("lanes", 10))
}

func saySuggestion(s cli.Screen, o *planned) {
	suggestion := o.Suggestion
	switch {
	case !o.flags.suggest:
		return
	case suggestion == nil && !slices.ContainsFunc(o.Plan.Lanes, share.Lane.HasRegion):
		s.Say("\nNo schedule is suggested: --suggest changes only the schedules of regions.\n")
		return
	case suggestion == nil:
		text := "No schedule fits, not even one page a day with an empty ledger"
		if slices.ContainsFunc(o.Plan.Lanes, func(l share.Lane) bool { return !l.HasRegion() }) {
			text += "; commands keep their schedules"
		}
		s.Say("\n%s.\n", text)
		return
	}
	text := fmt.Sprintf("\nThe most frequent schedule that fits for at least a year: %s runs a "+
		"day\n", s.Number(suggestion.PerDay()))
	if suggestion.Tried.From.After(o.Plan.From) {
		text += fmt.Sprintf("None fits with the current usage: this one begins with an empty "+
			"ledger at the next reset, %s\n", s.Moment(suggestion.Tried.From))
	}
	text += "\n"
	text += fmt.Sprintf("  schedule: %q\n  timezone: %s\n  stagger: %s\n", suggestion.Spec,
		suggestion.Zone, suggestion.Stagger)
	replaced := "schedule: and timezone:"
	if suggestion.Pages > 0 {
		text += fmt.Sprintf("  pages: %d\n", suggestion.Pages)
		replaced = "schedule:, timezone: and pages:"
	}
	var jobs []string
	for _, l := range o.Plan.Lanes {
		if l.HasRegion() && l.Job != config.DefaultJob && !slices.Contains(jobs, l.Job) {
			jobs = append(jobs, l.Job)
		}
	}
	if len(jobs) > 0 {
		text += fmt.Sprintf("\nIt is for all jobs: take %s out of %s.\n",
			replaced, strings.Join(jobs, ", "))
	}
	s.Say("%s", text)
}

// drawTakings draws the planned cost of a run of each job, and the source of that figure.
func drawTakings(s cli.Screen, o *planned) {
	lanes := slices.DeleteFunc(slices.Clone(o.Plan.Lanes), share.Lane.HasRegion)
	if len(lanes) == 0 {
		return
	}
	table := cli.View(lanes, func(l share.Lane) cli.Row {
		var holds, takes []string
		for _, c := range l.Price {
			holds = append(holds, s.Amount(report.UnitOf(o.Costs, c.Bucket), c.Units)+
				besides(c.Bucket, len(l.Price) > 1))
		}
		for _, c := range l.LearnedCosts {
			mean := words.Mean(c.Units, l.Runs)
			if unit := report.UnitOf(o.Costs, c.Bucket); unit.IsMoney() {
				mean = unit.Text(c.Units / l.Runs)
			}
			takes = append(takes, mean+besides(c.Bucket, len(l.LearnedCosts) > 1))
		}
		source := "the configuration"
		if takes == nil && l.Runs == 0 {
			takes = holds
		}
		if l.Runs > 0 {
			source = fmt.Sprintf("its last %d runs", l.Runs)
		}
		return cli.Row{"job", l.Job, "a run holds", strings.Join(holds, " + "),
			"takes", strings.Join(takes, " + "), "known from", source}
	})
	s.Say("\nWhat a run takes\n")
	s.Draw(table, cli.Cut("job", 16))
}

// besides names the bucket if there are several.
func besides(bucket string, several bool) string {
	if several {
		return " " + bucket
	}
	return ""
}
