package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/plan"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

// Numbers of rows listed of a long plan.
const (
	firstDays     = 10
	firstOverlaps = 5 // collisions
)

func (a *app) drawPlan(o *planned) error {
	screen := a.Screen()
	return cmp.Or(sayVerdict(o, screen), drawLimits(o, screen), drawDays(o, screen),
		drawTakings(o, screen), drawLosses(o, screen), drawCollisions(o, screen),
		saySuggestion(o, screen))
}

func sayVerdict(o *planned, screen cli.Screen) error {
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
	text := fmt.Sprintf("%d lanes from %s to %s: %s\n", len(r.Lanes), screen.Moment(r.From),
		screen.Moment(r.To), verdict)
	if f := r.First; f != nil {
		text += fmt.Sprintf("first lost: %s\n", describeLost(screen, f))
	}
	if o.Assumed {
		text += "nothing is scheduled: this is the default schedule, which ingestor run would " +
			"follow; ingest: in quota.yaml sets another\n"
	}
	if o.chartless {
		text += "no charts yet: the plan assumes the configured number of pages\n"
	}
	if names := o.Plan.Unplayed; len(names) > 0 {
		text += fmt.Sprintf("the plan leaves out limits per label: %s\n", strings.Join(names, ", "))
	}
	return screen.Say("%s\n", text)
}

func describeLost(screen cli.Screen, r *plan.Run) string {
	text := fmt.Sprintf("%s %s, ", screen.Moment(r.At.Truncate(time.Second)), r.Title())
	switch r.Outcome {
	case plan.LeftOut:
		return text + "left out for its share of the day"
	case plan.Partial:
		text += fmt.Sprintf("%d of %d pages, then denied: %s", r.Pages, r.Wanted, r.Limit)
	default:
		text += "denied: " + r.Limit
	}
	if !r.RetryAt.IsZero() {
		text += ", until " + screen.Moment(r.RetryAt)
	}
	return text
}

func drawLimits(o *planned, screen cli.Screen) error {
	table := screen.Table("limit", ">units", ">headroom", ">peak", ">used", "at", ">least left", "")
	for _, u := range o.Report.Windows {
		used := "-"
		if u.Cap > 0 {
			used = fmt.Sprintf("%.1f%%", 100*u.Share())
		}
		amount := o.amount(screen, u.Limit.Bucket)
		table.AppendColored(fullColor(u),
			[]any{u.Limit.Name(), amount(u.Limit.Units), amount(u.Limit.Headroom), amount(u.Peak),
				used, screen.On(u.At.Truncate(time.Second)), amount(u.Margin),
				screen.Bar(u.Peak, u.Cap, 12)})
	}
	return screen.Draw(table, cli.Shorten("at"), cli.Drop(""), cli.Drop("headroom"),
		cli.Cut("limit", 30), cli.Drop("at"), cli.Cut("limit", 20))
}

// amount writes units of a bucket.
func (o *planned) amount(screen cli.Screen, bucket string) func(int64) string {
	unit := report.UnitOf(o.Costs, bucket)
	return func(n int64) string { return screen.Amount(unit, n) }
}

func fullColor(u plan.Use) cli.Color {
	if u.Margin <= 0 && u.Limit.Pace == nil {
		return cli.Yellow
	}
	return ""
}

// drawDays draws the first days and the totals, separately for each bucket.
func drawDays(o *planned, screen cli.Screen) (err error) {
	for _, bucket := range o.Plan.Buckets() {
		var days []plan.Day
		for _, d := range o.Report.Days {
			if d.Bucket == bucket {
				days = append(days, d)
			}
		}
		err = cmp.Or(err, screen.Say("\nBucket %s by the upstream's day\n", bucket),
			drawBucket(o, screen, bucket, days))
	}
	return err
}

func drawBucket(o *planned, screen cli.Screen, bucket string, days []plan.Day) error {
	amount := o.amount(screen, bucket)
	columns := []string{"day", ">planned", ">spent", ">runs", ">lost"}
	if len(days) > 0 {
		for _, u := range days[0].Windows {
			columns = append(columns, ">peak "+columnOf(u.Limit))
		}
	}
	table := screen.Table(append(columns, ">collisions", "first lost")...)
	for _, d := range days[:min(len(days), firstDays)] {
		row := []any{o.dateOf(d.Start), amount(d.Planned), amount(d.Spent), d.Runs, d.Lost()}
		for _, u := range d.Windows {
			row = append(row, amount(u.Peak))
		}
		first := ""
		if d.First != nil {
			first = fmt.Sprintf("%s %s: %s", screen.On(d.First.At).Short, d.First.Title(),
				d.First.Limit)
		}
		table.AppendRow(append(row, d.Crowded, first))
	}
	if more := len(days) - firstDays; more > 0 {
		table.AppendRow([]any{fmt.Sprintf("… %d more", more)})
	}
	table.AppendRow(totalRow(days, amount))
	return screen.Draw(table, cli.Drop("collisions"), cli.Cut("first lost", 24), cli.Drop("runs"),
		cli.Drop("planned"), cli.Cut("first lost", 8))
}

func totalRow(days []plan.Day, amount func(int64) string) []any {
	var sum plan.Day
	var lostRuns int64
	var peaks []int64
	for _, d := range days {
		sum.Planned, sum.Spent, sum.Runs = sum.Planned+d.Planned, sum.Spent+d.Spent, sum.Runs+d.Runs
		sum.Crowded, lostRuns = sum.Crowded+d.Crowded, lostRuns+d.Lost()
		for i, u := range d.Windows {
			if i == len(peaks) {
				peaks = append(peaks, 0)
			}
			peaks[i] = max(peaks[i], u.Peak)
		}
	}
	row := []any{"total, peak", amount(sum.Planned), amount(sum.Spent), sum.Runs, lostRuns}
	for _, p := range peaks {
		row = append(row, amount(p))
	}
	return append(row, sum.Crowded)
}

func drawLosses(o *planned, screen cli.Screen) error {
	if o.Report.Fits() {
		return nil
	}
	table := screen.Table("region", "job", ">runs", ">complete", ">partial", ">denied", ">left out",
		">pages", ">of")
	for _, l := range o.Report.Lanes {
		table.AppendRow([]any{l.Title(), l.Job, l.Runs, l.Complete, l.Partial, l.Denied, l.LeftOut,
			l.Pages, l.Wanted})
	}
	return cmp.Or(screen.Say("\nWho loses runs\n"),
		screen.Draw(table, cli.Cut("job", 8), cli.Drop("complete"), cli.Drop("job")))
}

func drawCollisions(o *planned, screen cli.Screen) error {
	overlaps := o.Report.Collisions
	if len(overlaps) == 0 {
		return nil
	}
	table := screen.Table(">ticks", ">times", "first", "lanes")
	for _, c := range overlaps[:min(len(overlaps), firstOverlaps)] {
		table.AppendRow([]any{c.Ticks, int64(c.Times), screen.On(c.First),
			strings.Join(c.Lanes, " ")})
	}
	if more := len(overlaps) - firstOverlaps; more > 0 {
		table.AppendRow([]any{"", "", fmt.Sprintf("… %d more", more)})
	}
	return cmp.Or(screen.Say("\nLanes that tick in one minute\n"),
		screen.Draw(table, cli.Cut("lanes", 30), cli.Shorten("first"), cli.Cut("lanes", 10)))
}

func saySuggestion(o *planned, screen cli.Screen) error {
	s := o.Suggestion
	switch {
	case !o.flags.suggest:
		return nil
	case s == nil:
		return screen.Say("\nNo schedule fits, not even a page a day and on an empty ledger.\n")
	}
	text := fmt.Sprintf("\nThe tightest schedule that fits, for a year at least: %s runs a day\n",
		screen.Number(s.PerDay()))
	if s.Tried.From.After(o.Plan.From) {
		text += fmt.Sprintf("None fits with what is spent now: this one begins on an empty ledger "+
			"at the next reset, %s\n", screen.Moment(s.Tried.From))
	}
	text += "\n"
	text += fmt.Sprintf("  schedule: %q\n  timezone: %s\n  stagger: %s\n", s.Spec, s.Zone,
		s.Stagger)
	replaced := "schedule: and timezone:"
	if s.Pages > 0 {
		text += fmt.Sprintf("  pages: %d\n", s.Pages)
		replaced = "schedule:, timezone: and pages:"
	}
	if jobs := o.jobs(); len(jobs) > 0 {
		text += fmt.Sprintf("\nIt is for all jobs: take %s out of %s.\n",
			replaced, strings.Join(jobs, ", "))
	}
	return screen.Say("%s", text)
}

func (o *planned) jobs() (names []string) {
	for _, l := range o.Plan.Lanes {
		if l.Region != "" && l.Job != config.DefaultJob && !slices.Contains(names, l.Job) {
			names = append(names, l.Job)
		}
	}
	return names
}

// drawTakings draws the planned cost of a run of each job, and the source of that figure.
func drawTakings(o *planned, screen cli.Screen) error {
	table := screen.Table("job", "a run holds", "takes", "known from")
	jobs := 0
	for _, l := range o.Plan.Lanes {
		if l.Region != "" {
			continue
		}
		jobs++
		var holds, takes []string
		for _, c := range l.Price {
			holds = append(holds, screen.Amount(report.UnitOf(o.Costs, c.Bucket), c.Units)+
				besides(c.Bucket, len(l.Price) > 1))
		}
		for _, c := range l.Took {
			takes = append(takes, fmt.Sprintf("%.4g", float64(c.Units)/float64(l.Runs))+
				besides(c.Bucket, len(l.Took) > 1))
		}
		source := "the configuration"
		if takes == nil && l.Runs == 0 {
			takes = holds
		}
		if l.Runs > 0 {
			source = fmt.Sprintf("its last %d runs", l.Runs)
		}
		table.AppendRow([]any{l.Job, strings.Join(holds, " + "), strings.Join(takes, " + "), source})
	}
	if jobs == 0 {
		return nil
	}
	return cmp.Or(screen.Say("\nWhat a run takes\n"), screen.Draw(table, cli.Cut("job", 16)))
}

// besides names the bucket if there are several.
func besides(bucket string, several bool) string {
	if several {
		return " " + bucket
	}
	return ""
}

// dateOf returns the date of an upstream day in the zone of the reset.
func (o *planned) dateOf(start time.Time) string {
	return start.In(o.Plan.Reset.Zone).Format("2006-01-02 Mon")
}

func columnOf(l quota.Limit) string {
	if l.Pace != nil {
		return quota.PaceName
	}
	return l.Window.Text()
}
