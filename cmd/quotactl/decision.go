package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"quotabudget/internal/cli"
	"quotabudget/internal/quota"
)

// decision is quota.Decision as it is printed. The keys of the first group always stand there.
type decision struct {
	Allowed           bool             `json:"allowed"`
	Units             map[string]int64 `json:"units"`
	Remaining         map[string]int64 `json:"remaining"`
	RetryAfterSeconds *int64           `json:"retry_after_seconds"`
	RetryAt           cli.Time         `json:"retry_at"`
	Never             bool             `json:"never"`
	Limit             *string          `json:"limit"`
	Entry             *string          `json:"entry"`

	Replayed  bool `json:"replayed,omitempty"`
	Observed  bool `json:"observed,omitempty"`
	Unmetered bool `json:"unmetered,omitempty"`
	DryRun    bool `json:"dry_run,omitempty"`
}

// reserved is a decision on a reservation.
type reserved struct {
	decision
	Reservation *string  `json:"reservation"`
	ExpiresAt   cli.Time `json:"expires_at"`
}

func newDecision(d quota.Decision) decision {
	out := decision{
		Allowed: d.Allowed, Units: d.Units, Remaining: d.Remaining, RetryAt: cli.Time(d.RetryAt), Never: d.Never,
		Limit: orNull(d.Limit), Entry: orNull(d.Entry), Replayed: d.Replayed, Observed: d.Observed, Unmetered: d.Unmetered,
	}
	if out.Remaining == nil {
		out.Remaining = map[string]int64{}
	}
	if !d.RetryAt.IsZero() {
		seconds := max(0, cli.Seconds(d.RetryAt.Sub(d.At)))
		out.RetryAfterSeconds = &seconds
	}
	return out
}

func orNull(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// answer prints a decision, said by words in a table's place, and turns a denial into its exit code. "Never" is an error, but
// an answer too where a program reads it.
func (a *app) answer(d quota.Decision, err error, printed any, words func(cli.Screen) string) error {
	var exceeds *quota.CostExceedsLimitError
	switch {
	case err != nil && d.Never && a.Output != "table":
		if err := a.Print(a.stdout, printed, nil); err != nil {
			return err
		}
	case err == nil:
		say := func() error {
			s := a.screen()
			return s.Say("%s\n", words(s))
		}
		if err := a.Print(a.stdout, printed, say); err != nil {
			return err
		}
		if !d.Allowed {
			return &cli.Coded{Code: cli.ExitExhausted}
		}
	}
	if errors.As(err, &exceeds) && exceeds.Units <= exceeds.Limit.Units {
		return cli.Hint(err, "a person may use the headroom with --manual")
	}
	return err
}

// denied says why, what is left and when to come back.
func denied(s cli.Screen, d quota.Decision, headroom bool) string {
	text := "denied: " + inWords(d.Units) + " would not fit under " + d.Limit
	if d.Limit == quota.Suspended {
		text = "denied: " + inWords(d.Units) + ", but the bucket is suspended (the upstream said so, or a person did)"
	}
	return fmt.Sprintf("%s; %s\nretry in %s, at %s", text, left(d, headroom), cli.Span(d.RetryAfter()), s.Moment(d.RetryAt))
}

// allowed says what was done, and what is left.
func allowed(s cli.Screen, verb string, d quota.Decision, headroom bool) string {
	text := verb + " " + inWords(d.Units)
	switch {
	case d.Unmetered:
		return text + " without the ledger, which cannot be reached: the configuration lets this method pass"
	case d.Replayed:
		text = "done before, with the same key: " + text
	case d.Observed:
		text += " (observed only: " + d.Limit + " would have denied it until " + s.Moment(d.RetryAt) + ")"
	}
	if len(d.Remaining) > 0 {
		text += "; " + left(d, headroom)
	}
	if d.Entry != "" {
		text += "\nentry " + d.Entry
	}
	return text
}

// left is what remains for a further charge of this kind: for a person's with the headroom, which the next scheduled one stops short of.
func left(d quota.Decision, headroom bool) string {
	text := "left: " + inWords(d.Remaining)
	if headroom {
		text += ", the headroom included"
	}
	return text
}

// headroom reports whether there is any in what a charge of these units may take.
func (g *gate) headroom(manual bool, units map[string]int64) bool {
	return manual && slices.ContainsFunc(g.Limits, func(l quota.Limit) bool { return l.Headroom > 0 && units[l.Bucket] > 0 })
}

// inWords is "30 units of default, 1 unit of search_list".
func inWords(units map[string]int64) string {
	var parts []string
	for _, bucket := range slices.Sorted(maps.Keys(units)) {
		noun := "units"
		if units[bucket] == 1 {
			noun = "unit"
		}
		parts = append(parts, fmt.Sprintf("%d %s of %s", units[bucket], noun, bucket))
	}
	return strings.Join(parts, ", ")
}

// spent prints the decision on a charge, which may have had the headroom too.
func (a *app) spent(verb string, d quota.Decision, err error, headroom bool) error {
	return a.answer(d, err, newDecision(d), func(s cli.Screen) string {
		if !d.Allowed {
			return denied(s, d, headroom)
		}
		return allowed(s, verb, d, headroom)
	})
}

// tried prints the decision of a dry run.
func (a *app) tried(d quota.Decision, err error, headroom bool) error {
	out := newDecision(d)
	out.DryRun = true
	return a.answer(d, err, out, func(s cli.Screen) string {
		switch {
		case !d.Allowed:
			return denied(s, d, headroom)
		case d.Replayed, d.Unmetered:
			return allowed(s, "charged", d, headroom)
		}
		return allowed(s, "dry run, nothing charged; it would take", d, headroom)
	})
}
