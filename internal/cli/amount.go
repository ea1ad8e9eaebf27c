package cli

import (
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/report"
)

// Amount formats n of a unit for a table whose heading does not name the unit: "$12.40", or as
// Number does.
func (s Screen) Amount(unit costs.Unit, n int64) string {
	if unit.IsMoney() {
		return unit.Text(n)
	}
	return s.Number(n)
}

// Window returns the window of a limit; short without its time zone.
func Window(l report.LimitStatus) Cell {
	if l.Timezone == nil {
		return Cell{Text: l.Window}
	}
	return Cell{Text: l.Window + " " + *l.Timezone, Short: l.Window}
}

// Remaining returns the units left under a limit of a bucket; on a terminal, a word if there are
// none.
func (s Screen) Remaining(c report.CredentialStatus, b report.BucketStatus,
	l report.LimitStatus) Cell {
	switch {
	case !time.Time(b.SuspendedUntil).IsZero():
		return Cell{Text: "suspended", Color: Yellow}
	case l.Remaining > 0 || !s.Bars:
		return Cell{Text: s.Amount(b.Counts, l.Remaining)}
	case l.Mode == "observe" || c.Mode == "observe":
		return Cell{Text: "would deny", Color: Yellow}
	case l.Units == 0:
		return Cell{Text: "closed", Color: Red}
	}
	return Cell{Text: "exhausted", Color: Red}
}
