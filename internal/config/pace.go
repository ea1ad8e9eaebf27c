package config

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/quota"
	"quotabudget/internal/spell"
	"quotabudget/internal/yamlfile"
)

// Pace is how a credential's day is spread.
type Pace struct {
	Curve []int64 // weights of the 24 hours; none for an even pace
	Slack int64   // per cent of a limit's units for scheduled charges
}

// DefaultSlack is how far spending may run ahead of the line, in per cent of the day's units.
const DefaultSlack = 5

// lines are the paces of limits: one for each that is a calendar day.
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

// pace reads "even", or {curve: even, slack: 10%} with even or 24 weights.
func (r *reader) pace(n *yaml.Node) *Pace {
	p := &Pace{Slack: DefaultSlack}
	if n.Kind == yaml.ScalarNode {
		p.Curve = r.curve(n)
		return p
	}
	r.Fields(n, "pace", yamlfile.Fields{
		"curve": func(n *yaml.Node) { p.Curve = r.curve(n) },
		"slack": func(n *yaml.Node) { p.Slack = r.percent(n, "slack") },
	})
	return p
}

func (r *reader) curve(n *yaml.Node) []int64 {
	if n.Kind == yaml.ScalarNode {
		if n.Value != "even" {
			r.Add(n, "pace: %q: write even, or a list of 24 weights, one for each hour of the day",
				spell.Clip(n.Value))
		}
		return nil
	}
	var curve []int64
	r.List(n, "pace", func(n *yaml.Node) {
		curve = append(curve, r.Number(n, "pace", 0, MaxWeight))
	})
	if err := (quota.Pace{Curve: curve}).Check(); err != nil || len(curve) == 0 {
		r.Add(n, "pace: a curve is 24 weights, one for each hour of the day, not all of them 0")
	}
	return curve
}

// percent reads "10%".
func (r *reader) percent(n *yaml.Node, what string) int64 {
	text, ok := r.Text(n, what)
	if !ok {
		return 0
	}
	digits, percent := strings.CutSuffix(text, "%")
	number, err := strconv.ParseInt(digits, 10, 64)
	if err != nil || !percent || number < 0 || number > 100 {
		r.Add(n, "%s: %q: write 0%% to 100%%", what, spell.Clip(text))
		return 0
	}
	return number
}

// checkPace reports a pace without a limit for a day.
func (r *reader) checkPace(n *yaml.Node, c Credential) {
	if c.Pace != nil && len(c.Limits) > 0 && len(c.Pace.lines(c.Limits)) == 0 {
		r.Add(n, "pace: it spreads the units of a day, but no limit has window: day")
	}
}
