package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"quotabudget/internal/cli"
	"quotabudget/internal/ingest"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/words"
)

func shownSummary(sum ingest.Summary) cli.Object {
	var wait *int64
	if !sum.RetryAt.IsZero() {
		wait = new(words.Seconds(sum.RetryAfter))
	}
	return cli.Object{"outcome", sum.Outcome, "units", cli.NonNil(sum.Units),
		"retry_at", words.Time(sum.RetryAt), "retry_after_seconds", wait,
		"limit", words.OrNull(sum.Limit),
		"regions", cli.Each(sum.Regions, func(r ingest.Region) cli.Object {
			return cli.Object{"region", r.Region, "outcome", r.Outcome, "pages", r.Pages,
				"videos", r.Videos, "units", r.Units, "error", words.OrNull(why(r))}
		})}
}

func (a *app) printSummary(st *deps, sum ingest.Summary, heads bool) error {
	return a.Print(shownSummary(sum), func(s cli.Screen) {
		t := cli.View(sum.Regions, func(r ingest.Region) cli.Row {
			first := ""
			_, videos, err := st.catalog.Current(context.Background(), r.Region, 1)
			if err == nil && len(videos) > 0 && r.Outcome == ingest.Complete {
				first = videos[0].Title
			}
			var color cli.Color
			switch r.Outcome {
			case ingest.Failed:
				color = cli.Red
			case ingest.Partial, ingest.Exhausted, ingest.Skipped:
				color = cli.Yellow
			}
			return cli.Row{color, "region", r.Region, "outcome", r.Outcome,
				">pages", r.Pages, ">videos", r.Videos, ">units", r.Units,
				"first place", first}
		})
		s.Draw(t, cli.Cut("first place", 10))
		s.Say("\n%s%s\n%s", reasons(sum), sentence(s, sum), st.dayNote(sum))
		if heads {
			drawHeads(s, st.catalog, sum)
		}
	})
}

// dayNote explains a sweep that only the limit of 24 hours ended; it is "" for any
// other.
func (s *deps) dayNote(sum ingest.Summary) string {
	amount := func(bucket string, n int64) string {
		return words.Plural(n, "unit") + " of " + bucket
	}
	denied := quota.Decision{Limit: sum.Limit,
		Units: quota.UnitsOf(s.budget.Prices[report.PageMethod])}
	room, remedy := s.budget.DayRoom(context.Background(), false, denied, amount)
	if room == "" {
		return ""
	}
	return room + "\nhint: " + remedy + "\n"
}

// why returns why a region is not complete; "" if its outcome says all.
func why(r ingest.Region) string {
	err := r.Err()
	switch {
	case err == nil:
		return ""
	case errors.Is(err, context.Canceled):
		return "interrupted"
	}
	return err.Error()
}

// reasons returns why regions failed or were interrupted, a line for each reason.
func reasons(sum ingest.Summary) (text string) {
	var order []string
	regions := make(map[string][]string)
	for _, r := range sum.Regions {
		reason := words.Plain(why(r))
		ended := r.Outcome == ingest.Failed || r.Outcome == ingest.Partial
		if !ended || reason == "" || errors.Is(r.Err(), quota.ErrExhausted) {
			continue
		}
		if regions[reason] == nil {
			order = append(order, reason)
		}
		regions[reason] = append(regions[reason], r.Region)
	}
	for _, reason := range order {
		text += strings.Join(regions[reason], ", ") + ": " + reason + "\n"
	}
	return text
}

func sentence(screen cli.Screen, sum ingest.Summary) string {
	complete, unavailable := 0, 0
	for _, r := range sum.Regions {
		switch r.Outcome {
		case ingest.Complete:
			complete++
		case ingest.Unavailable:
			unavailable++
		}
	}
	var units int64
	for _, n := range sum.Units {
		units += n
	}
	text := fmt.Sprintf("%s: %d of %s, %s charged", sum.Outcome, complete,
		words.Plural(int64(len(sum.Regions)), "chart"), words.Plural(units, "unit"))
	if unavailable > 0 {
		text += fmt.Sprintf(", no chart: %d", unavailable)
	}
	if sum.Outcome == ingest.Exhausted {
		cause := "denied by " + sum.Limit
		switch sum.Limit {
		case quota.PaceName:
			cause = "held back by the pace"
		case quota.Suspended:
			cause = "the upstream reports that its quota is used up"
		}
		text += fmt.Sprintf("; %s, come back at %s (in %s)", cause, screen.Moment(sum.RetryAt),
			words.Span(sum.RetryAfter))
	}
	return text
}
