package config

import "quotabudget/internal/quota"

// Pace spreads a credential's spending over the day.
type Pace struct {
	Curve []int64 // weights of the 24 hours; nil for an even pace
	Slack int64   // percent of a limit's units for scheduled charges

	none bool // a job's pace: none
}

const paceNone = "none"

// DefaultSlack is how far spending may run ahead of the line, in percent of the day's units.
const DefaultSlack = 5

// lines returns a pace for each limit whose window is a calendar day.
func (p *Pace) lines(limits []quota.Limit) []quota.Limit {
	if p == nil {
		return nil
	}
	var lines []quota.Limit
	for _, l := range limits {
		if l.Window.Calendar != "day" {
			continue
		}
		units := l.Cap(false)
		l.Pace = &quota.Pace{Curve: p.Curve, Slack: units/100*p.Slack + units%100*p.Slack/100}
		lines = append(lines, l)
	}
	return lines
}
