package main

import (
	"slices"
	"time"

	"quotabudget/internal/cli"
	"quotabudget/internal/report"
)

const barCells = 12

// drawStatus draws the table. The headroom is never left out: without it used and remaining do not
// add up to the limit. Where its column does not fit, it is part of the limit's.
func drawStatus(s cli.Screen, list report.Status) error {
	t := s.Table("credential", "bucket", "window", "", ">used", ">limit", ">headroom", ">held",
		">remaining", "next free")
	for _, c := range list.Credentials {
		for _, b := range c.Buckets {
			amount := func(n int64) string { return s.Amount(b.Counts, n) }
			for _, l := range b.Limits {
				remaining := remains(s, b, l)
				t.AppendColored(remaining.Color, []any{named(c), b.Bucket, windowCell(l),
					s.Bar(l.Used+b.Held, l.Units, barCells), amount(l.Used),
					limitCell(amount, l), amount(l.Headroom), amount(b.Held), remaining,
					s.Until(time.Time(l.NextFreeAt), c.At)})
			}
		}
	}
	steps := []cli.Step{cli.Shorten("next free")}
	if alone(list) {
		steps = append(steps, cli.Drop("credential"))
	}
	steps = append(steps, cli.Drop(""), cli.Shorten("window"))
	if !holds(list) {
		steps = append(steps, cli.Drop("held"))
	}
	steps = append(steps, cli.All(cli.Drop("headroom"), cli.Shorten("limit")))
	return s.Draw(t, append(steps, cli.Cut("credential", 10), cli.Cut("bucket", 12))...)
}

// named is the credential, and its mode where that is not the usual one.
func named(c report.CredentialStatus) string {
	if c.Mode == "enforce" {
		return c.Credential
	}
	return c.Credential + " (" + c.Mode + ")"
}

// alone reports whether one credential says nothing that its reader does not know.
func alone(l report.Status) bool {
	return len(l.Credentials) == 1 && l.Credentials[0].Mode == "enforce"
}

func holds(l report.Status) bool {
	return slices.ContainsFunc(l.Credentials, func(c report.CredentialStatus) bool {
		held := func(b report.BucketStatus) bool { return b.Held > 0 }
		return slices.ContainsFunc(c.Buckets, held)
	})
}

func windowCell(l report.LimitStatus) cli.Cell {
	if l.Timezone == nil {
		return cli.Cell{Text: l.Window}
	}
	return cli.Cell{Text: l.Window + " " + *l.Timezone, Short: l.Window}
}

// limitCell is the limit; in short it is what scheduled charges may use, and the headroom.
func limitCell(amount func(int64) string, l report.LimitStatus) cli.Cell {
	out := cli.Cell{Text: amount(l.Units)}
	if l.Headroom > 0 {
		out.Short = amount(l.Units-l.Headroom) + "+" + amount(l.Headroom)
	}
	return out
}

// remains is what is left; on a terminal, a word where nothing is.
func remains(s cli.Screen, b report.BucketStatus, l report.LimitStatus) cli.Cell {
	switch {
	case !time.Time(b.SuspendedUntil).IsZero():
		return cli.Cell{Text: "suspended", Color: cli.Yellow}
	case l.Remaining > 0 || !s.Bars:
		return cli.Cell{Text: s.Amount(b.Counts, l.Remaining)}
	case l.Mode == "observe":
		return cli.Cell{Text: "would deny", Color: cli.Yellow}
	case l.Units == 0:
		return cli.Cell{Text: "closed", Color: cli.Red}
	}
	return cli.Cell{Text: "exhausted", Color: cli.Red}
}
