package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"quotabudget/internal/bill"
	"quotabudget/internal/cli"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// correct books the differences, each only if the ledger is still as it was read.
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
				quota.LabelReason: row.reason()},
		})
		if err != nil {
			failed = errors.Join(failed, r.uncorrected(*row, err))
			continue
		}
		row.Applied = true
	}
	return failed
}

func (row reconciledRow) reason() string {
	return fmt.Sprintf("google counted %d units and the ledger %d, from %s to %s", *row.Theirs,
		row.Ours, words.Moment(row.day.Begin), words.Moment(row.day.Until))
}

// uncorrected adds to an error which difference was not booked, and a hint.
func (r *reconciling) uncorrected(row reconciledRow, err error) error {
	err = fmt.Errorf("%s from %s: %w", row.Bucket, words.Moment(row.day.Begin), err)
	switch {
	case errors.Is(err, quota.ErrSpanChanged):
		return cli.Hint(err, "run it again")
	case errors.Is(err, quota.ErrSpanShort) && len(r.shares) > 1:
		return cli.Hint(err, "other credentials spend from the same project: correct them with "+
			"quotactl adjust --credential NAME")
	}
	return err
}

// inCloudWords adds exit code and hint to an error of Google.
func inCloudWords(c *bill.Client, err error) error {
	e, ok := errors.AsType[*bill.Error](err)
	if !ok {
		return err
	}
	code, hint := cli.ExitFailed, ""
	project := c.ProjectName()
	switch e.Kind {
	case bill.Away:
		code, hint = cli.ExitUnavailable, "nothing was compared; try again later"
	case bill.BadKey:
		code = cli.ExitRefused
		hint = fmt.Sprintf("the key of %s was deleted, or is another account's, or this host's "+
			"clock is wrong: gcloud iam service-accounts keys create FILE --iam-account %s",
			c.Account, c.Account)
	case bill.NotAllowed:
		code = cli.ExitRefused
		hint = fmt.Sprintf("gcloud projects add-iam-policy-binding %s --member serviceAccount:%s "+
			"--role %s", project, c.Account, e.Role())
	case bill.Disabled:
		code = cli.ExitRefused
		hint = fmt.Sprintf("gcloud services enable %s --project %s", e.Host(), project)
	case bill.NoProject:
		code = cli.ExitConfig
		hint = "is project " + project + " right? quota.yaml names it with project:"
	}
	return cli.Hint(&cli.Coded{Code: code, Err: err}, "%s", hint)
}

// reconciliation is the result, as it is printed.
type reconciliation struct {
	Credential string          `json:"credential"`
	Project    string          `json:"project"`
	Service    string          `json:"service"`
	At         words.Time      `json:"at"`
	SharedWith []string        `json:"shared_with"`
	Rows       []reconciledRow `json:"rows"`
	Limits     []limitRow      `json:"limits"`
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

	day bill.Day
	own int64 // of Ours, those of this credential
}

// pending returns the number of corrections that were not made.
func (r reconciliation) pending() (n int) {
	for _, row := range r.Rows {
		if row.Correction != 0 && !row.Applied {
			n++
		}
	}
	return n
}

// limitRow is a limit that differs from Google's.
type limitRow struct {
	Bucket string `json:"bucket"`
	Window string `json:"window"`
	Ours   int64  `json:"ours"`
	Theirs *int64 `json:"theirs"` // nil for any number
}

// compareLimits finds the limits of the configuration that differ from Google's.
func (r *reconciliation) compareLimits(g *gate, limits []bill.Limit) {
	for _, d := range bill.Differ(g.Limits, limits, g.prices()) {
		row := limitRow{Bucket: d.Ours.Bucket, Window: d.Ours.Window.Text(), Ours: d.Ours.Units}
		if d.Theirs >= 0 {
			row.Theirs = &d.Theirs
		}
		r.Limits = append(r.Limits, row)
	}
}

func (r reconciliation) show(s cli.Screen, g *gate) error {
	t := s.Table("from", "to", "bucket", ">ledger", ">google", ">correction", "verdict")
	for _, row := range r.Rows {
		if row.Ours == 0 && row.Theirs == nil {
			continue
		}
		google := any("-")
		if row.Theirs != nil {
			google = *row.Theirs
		}
		correction := "-"
		if row.Correction != 0 {
			correction = fmt.Sprintf("%+d", row.Correction)
		}
		t.AppendRow([]any{s.On(time.Time(row.From)), s.On(time.Time(row.To)), row.Bucket, row.Ours,
			google, correction, row.inWords()})
	}
	err := s.Draw(t, cli.Shorten("from"), cli.Shorten("to"), cli.Drop("to"), cli.Cut("bucket", 8))
	for _, line := range r.notes(g) {
		err = cmp.Or(err, s.Say("%s\n", line))
	}
	return err
}

func (row reconciledRow) inWords() string {
	switch row.Verdict {
	case bill.More, bill.Less:
		if row.Applied {
			return "corrected"
		}
		return "google counted " + string(row.Verdict)
	case bill.Waiting:
		return "google has not counted all yet"
	case bill.Unknown:
		return "google says nothing"
	}
	return string(row.Verdict)
}

// notes returns the lines below the table.
func (r reconciliation) notes(g *gate) (lines []string) {
	if len(r.SharedWith) > 0 {
		lines = append(lines, fmt.Sprintf("the ledger's figures include %v, of the same project",
			r.SharedWith))
	}
	more := false
	for _, row := range r.Rows {
		more = more || row.Verdict == bill.More
	}
	if more {
		lines = append(lines, "something else spends from project "+r.Project+
			": another program, or another key")
	}
	if n := r.pending(); n > 0 {
		lines = append(lines, fmt.Sprintf("to correct: %d; quotactl reconcile --apply does it", n))
	}
	for _, l := range r.Limits {
		lines = append(lines, l.advice(g.Credential))
	}
	return lines
}

// advice returns what to write into the configuration.
func (l limitRow) advice(credential string) string {
	if l.Theirs == nil {
		return fmt.Sprintf("google sets no limit on %s, and quota.yaml %d (%s) for %s", l.Bucket,
			l.Ours, l.Window, credential)
	}
	return fmt.Sprintf("google allows %d of %s, and quota.yaml %d (%s): under limits of %s, write "+
		"{bucket: %s, units: %d, window: %s}", *l.Theirs, l.Bucket, l.Ours, l.Window, credential,
		l.Bucket, *l.Theirs, l.Window)
}
