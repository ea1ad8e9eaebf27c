package main

import (
	"cmp"
	"fmt"
	"strings"

	"quotabudget/internal/cli"
	"quotabudget/internal/report"
)

// drawTakings says what a run of each job is planned to take, and how that is known.
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
		known := "the configuration"
		if takes == nil && l.Runs == 0 {
			takes = holds
		}
		if l.Runs > 0 {
			known = fmt.Sprintf("its last %d runs", l.Runs)
		}
		table.AppendRow([]any{l.Job, strings.Join(holds, " + "), strings.Join(takes, " + "), known})
	}
	if jobs == 0 {
		return nil
	}
	return cmp.Or(screen.Say("\nWhat a run takes\n"), screen.Draw(table, cli.Cut("job", 16)))
}

// besides names a bucket where there are several.
func besides(bucket string, several bool) string {
	if several {
		return " " + bucket
	}
	return ""
}
