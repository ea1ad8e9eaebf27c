package main

import (
	"fmt"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"quotabudget/internal/cli"
)

const barCells = 12

// statusView is what of the status is drawn, for the room there is.
type statusView struct {
	credential bool // its column
	bar        bool
	headroom   bool
	long       bool // zones of windows, and moments besides the time until them
}

// statusViews are the views, the widest first.
func statusViews(bars, several bool) []statusView {
	views := []statusView{{true, true, true, true}, {true, false, true, true}, {true, false, false, true}, {several, false, false, false}}
	if !bars {
		return views[1:]
	}
	return views
}

// drawStatus draws the widest view for which there is room, or the last.
func drawStatus(s cli.Screen, list statusList) error {
	views := statusViews(s.Bars, len(list.Credentials) > 1)
	t := views[0].table(s, list)
	for _, v := range views[1:] {
		if s.Fits(t) {
			break
		}
		t = v.table(s, list)
	}
	return s.Draw(t)
}

// statusCell is one cell of the table, under its heading; a column that is not shown has none.
type statusCell struct {
	heading string
	shown   bool
	text    string
}

func (v statusView) table(s cli.Screen, list statusList) table.Writer {
	t := s.Table(v.headings()...)
	for _, c := range list.Credentials {
		for _, b := range c.Buckets {
			for _, l := range b.Limits {
				var row []any
				for _, cell := range v.cells(s, c, b, l) {
					if cell.shown {
						row = append(row, cell.text)
					}
				}
				t.AppendRow(row)
			}
		}
	}
	return t
}

func (v statusView) headings() []string {
	var names []string
	for _, cell := range v.cells(cli.Screen{}, credentialStatus{}, bucketStatus{}, limitStatus{}) {
		if cell.shown {
			names = append(names, cell.heading)
		}
	}
	return names
}

func (v statusView) cells(s cli.Screen, c credentialStatus, b bucketStatus, l limitStatus) []statusCell {
	name, window, remaining := c.Credential, l.Window, s.Number(l.Remaining)
	if c.Mode != "enforce" {
		name += " (" + c.Mode + ")"
	}
	if v.long && l.Timezone != nil {
		window += " " + *l.Timezone
	}
	if !time.Time(b.SuspendedUntil).IsZero() {
		remaining = "suspended"
	}
	return []statusCell{
		{"credential", v.credential, name},
		{"bucket", true, b.Bucket},
		{"window", true, window},
		{"", v.bar, s.Bar(l.Used+b.Held, l.Units, barCells)},
		{">used", true, s.Number(l.Used)},
		{">limit", true, s.Number(l.Units)},
		{">headroom", v.headroom, s.Number(l.Headroom)},
		{">held", true, s.Number(b.Held)},
		{">remaining", true, remaining},
		{"next free", true, v.free(c.at, time.Time(l.NextFreeAt))},
	}
}

// free is when units come free, "" when none are taken.
func (v statusView) free(now, at time.Time) string {
	switch {
	case at.IsZero():
		return ""
	case v.long:
		return fmt.Sprintf("%s (in %s)", cli.Moment(at), cli.Span(at.Sub(now)))
	}
	return "in " + cli.Span(at.Sub(now))
}
