package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"quotabudget/internal/bill"
	"quotabudget/internal/cli"
	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// correct books each difference, if the ledger has not changed since it was read.
func (r *reconciling) correct(ctx context.Context) error {
	var failed error
	for i := range r.out.Rows {
		row := &r.out.Rows[i]
		if row.Correction == 0 {
			continue
		}
		after, until := row.day.Span()
		_, err := r.Ledger.Adjust(ctx, quota.Adjust{
			Credential: r.Credential, ID: quota.NewID(time.Now()), Bucket: row.Bucket,
			Units: row.Correction, After: after, Until: until, Was: &row.own,
			Limits: r.LimitsOn(row.Bucket),
			Labels: quota.Labels{quota.LabelSource: "reconcile", quota.LabelBy: userName(),
				quota.LabelReason: fmt.Sprintf("%s counted %d units and the ledger %d, from %s to %s",
					r.out.upstream, *row.Theirs, row.Ours, words.Moment(row.day.Begin),
					words.Moment(row.day.Until))},
		})
		if err != nil {
			err = fmt.Errorf("%s from %s: %w", row.Bucket, words.Moment(row.day.Begin), err)
			switch {
			case errors.Is(err, quota.ErrSpanChanged):
				err = cli.Hint(err, "run it again")
			case errors.Is(err, quota.ErrSpanShort): // here it is not a usage error
				err = cli.Hint(&cli.Coded{Code: cli.ExitFailed, Err: err},
					"other credentials spend from the same project: correct them with "+
						"quotactl adjust --credential NAME")
			}
			failed = errors.Join(failed, err)
			continue
		}
		row.Applied = true
	}
	return failed
}

// inBillWords adds an exit code and a hint to an error of the upstream.
func inBillWords(g *gate, c *bill.Client, err error) error {
	e, ok := errors.AsType[*bill.Error](err)
	if !ok {
		return err
	}
	code, hint := cli.ExitFailed, ""
	project := c.ProjectName()
	switch e.Kind {
	case bill.Away:
		code, hint = cli.ExitUnavailable, "nothing was compared; try again later"
	case bill.BadKey, bill.NotAllowed:
		code = cli.ExitRefused
		if c.Account == nil {
			hint = fmt.Sprintf("credential %s: is its %s right? %s reports this to %s", g.Credential,
				e.Meter.Key, g.cred.Upstream, cmp.Or(e.Meter.Role, "the key that spends"))
			break
		}
		if e.Kind == bill.NotAllowed {
			hint = fmt.Sprintf("gcloud projects add-iam-policy-binding %s --member "+
				"serviceAccount:%s --role %s", project, c.Account, e.Meter.Role)
			break
		}
		hint = fmt.Sprintf("the key of %s was deleted, or is another account's, or this host's "+
			"clock is wrong: gcloud iam service-accounts keys create FILE --iam-account %s",
			c.Account, c.Account)
	case bill.Disabled:
		code = cli.ExitRefused
		hint = fmt.Sprintf("gcloud services enable %s --project %s", e.Host(), project)
	case bill.NoProject:
		code = cli.ExitConfig
		hint = "is project " + cmp.Or(project, "(none)") + " right? quota.yaml names it with project:"
	}
	return cli.Hint(&cli.Coded{Code: code, Err: err}, "%s", hint)
}

// reconciliation is the printed result.
type reconciliation struct {
	Credential string          `json:"credential"`
	Project    string          `json:"project"`
	Service    string          `json:"service"`
	At         words.Time      `json:"at"`
	SharedWith []string        `json:"shared_with"`
	Rows       []reconciledRow `json:"rows"`
	Limits     []limitRow      `json:"limits"`

	upstream string // its name in messages
	applying bool   // --apply is set: each row that is not applied has its own error
}

type reconciledRow struct {
	Bucket     string       `json:"bucket"`
	Metric     string       `json:"metric"`
	From       words.Time   `json:"from"`
	To         words.Time   `json:"to"`
	Settled    bool         `json:"settled"`
	Ours       int64        `json:"ours"`
	Theirs     *int64       `json:"theirs"`
	Verdict    bill.Verdict `json:"verdict"`
	Correction int64        `json:"correction"`
	Applied    bool         `json:"applied"`
	Models     []modelRow   `json:"models"`
	Why        []string     `json:"why"`

	day  bill.Day
	own  int64 // this credential's part of Ours
	unit costs.Unit
}

// pending returns the number of corrections not yet made.
func (r reconciliation) pending() (n int) {
	for _, row := range r.Rows {
		if row.Correction != 0 && !row.Applied {
			n++
		}
	}
	return n
}

// limitRow is a limit that differs from the upstream's.
type limitRow struct {
	Bucket string `json:"bucket"`
	Window string `json:"window"`
	Ours   int64  `json:"ours"`
	Theirs *int64 `json:"theirs"` // nil for unlimited
}

func (r reconciliation) draw(s cli.Screen, g *gate) {
	reported := slices.DeleteFunc(slices.Clone(r.Rows), func(row reconciledRow) bool {
		return row.Ours == 0 && row.Theirs == nil
	})
	t := cli.View(reported, func(row reconciledRow) cli.Row {
		correction := "-"
		if row.Correction != 0 {
			correction = fmt.Sprintf("%+d", row.Correction)
			if row.unit.IsMoney() {
				correction = row.unit.Text(row.Correction)
			}
		}
		verdict := string(row.Verdict)
		switch {
		case row.Applied && (row.Verdict == bill.More || row.Verdict == bill.Less):
			verdict = "corrected"
		case row.Verdict == bill.More || row.Verdict == bill.Less:
			verdict = r.upstream + " counted " + verdict
		case row.Verdict == bill.Waiting:
			verdict = r.upstream + " has not counted everything yet"
		case row.Verdict == bill.Unknown:
			verdict = r.upstream + " reports nothing"
		}
		return cli.Row{"from", s.On(time.Time(row.From)), "to", s.On(time.Time(row.To)),
			"bucket", row.Bucket,
			">ledger", s.Amount(row.unit, row.Ours),
			">" + r.upstream, s.Optional(row.unit, row.Theirs),
			">correction", correction,
			"verdict", verdict}
	})
	s.Draw(t, cli.Shorten("from"), cli.Shorten("to"), cli.Drop("to"), cli.Cut("bucket", 8))
	for _, line := range r.notes(g) {
		s.Say("%s\n", line)
	}
}

func (r reconciliation) notes(g *gate) (lines []string) {
	if len(r.SharedWith) > 0 {
		lines = append(lines, fmt.Sprintf("the ledger's figures include %v, of the same project",
			r.SharedWith))
	}
	more := false
	for _, row := range r.Rows {
		more = more || row.Verdict == bill.More
		for _, line := range row.Why {
			lines = append(lines, fmt.Sprintf("%s of %s: %s", row.Bucket,
				row.day.Begin.Format(time.DateOnly), line))
		}
	}
	if more {
		from := "something else spends from project " + r.Project
		if r.Project == "" {
			from = "something else spends from " + r.upstream + "'s account"
		}
		lines = append(lines, from+": another program, or another key")
	}
	if n := r.pending(); n > 0 && !r.applying {
		lines = append(lines, fmt.Sprintf("to correct: %d; run quotactl reconcile --apply", n))
	}
	for _, l := range r.Limits {
		if l.Theirs == nil {
			lines = append(lines, fmt.Sprintf("%s sets no limit on %s, and quota.yaml %d (%s) for %s",
				r.upstream, l.Bucket, l.Ours, l.Window, g.Credential))
			continue
		}
		lines = append(lines, fmt.Sprintf("%s allows %d of %s, and quota.yaml %d (%s): under limits "+
			"of %s, write {bucket: %s, units: %d, window: %s}", r.upstream, *l.Theirs, l.Bucket, l.Ours,
			l.Window, g.Credential, l.Bucket, *l.Theirs, l.Window))
	}
	return lines
}
