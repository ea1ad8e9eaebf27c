package main

import (
	"cmp"
	"fmt"
	"time"

	"quotabudget/internal/cli"
	"quotabudget/internal/cloudquota"
	"quotabudget/internal/reconcile"
)

// limitRow is a limit that differs from Google's.
type limitRow struct {
	Bucket string `json:"bucket"`
	Window string `json:"window"`
	Ours   int64  `json:"ours"`
	Theirs *int64 `json:"theirs"` // nil for any number
}

// compareLimits finds the limits of the configuration that differ from Google's.
func (r *reconciliation) compareLimits(g *gate, limits []cloudquota.Limit) {
	for _, d := range cloudquota.Differ(g.Limits, limits, g.prices()) {
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
	case reconcile.More, reconcile.Less:
		if row.Applied {
			return "corrected"
		}
		return "google counted " + string(row.Verdict)
	case reconcile.Waiting:
		return "google has not counted all yet"
	case reconcile.Unknown:
		return "google says nothing"
	}
	return string(row.Verdict)
}

// notes are what is to be said below the table.
func (r reconciliation) notes(g *gate) (lines []string) {
	if len(r.SharedWith) > 0 {
		lines = append(lines, fmt.Sprintf("the ledger's figures include %v, of the same project",
			r.SharedWith))
	}
	more := false
	for _, row := range r.Rows {
		more = more || row.Verdict == reconcile.More
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

// advice is what to write into the configuration.
func (l limitRow) advice(credential string) string {
	if l.Theirs == nil {
		return fmt.Sprintf("google sets no limit on %s, and quota.yaml %d (%s) for %s", l.Bucket,
			l.Ours, l.Window, credential)
	}
	return fmt.Sprintf("google allows %d of %s, and quota.yaml %d (%s): under limits of %s, write "+
		"{bucket: %s, units: %d, window: %s}", *l.Theirs, l.Bucket, l.Ours, l.Window, credential,
		l.Bucket, *l.Theirs, l.Window)
}
