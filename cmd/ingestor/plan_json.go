package main

import (
	"time"

	"quotabudget/internal/quota"
)

// fullest is the limit of the series that comes closest to its cap, -1 when there is none.
func (o *planned) fullest() int {
	best, share := -1, -1.0
	for i, u := range o.Report.Windows {
		if i < len(o.Report.Series) && u.Limit.Pace == nil && u.Share() > share {
			best, share = i, u.Share()
		}
	}
	return best
}

// dateOf is the date that an upstream day has where its bucket resets.
func (o *planned) dateOf(start time.Time) string {
	return start.In(o.zone).Format("2006-01-02 Mon")
}

// clock formats a moment in UTC to the minute, with its date unless it is the date of the upstream
// day that began at start.
func (o *planned) clock(start, at time.Time) string {
	if at.UTC().Format(time.DateOnly) == start.In(o.zone).Format(time.DateOnly) {
		return at.UTC().Format("15:04Z")
	}
	return at.UTC().Format("2006-01-02 15:04Z")
}

func columnOf(l quota.Limit) string {
	if l.Pace != nil {
		return quota.PaceName
	}
	return l.Window.Text()
}
