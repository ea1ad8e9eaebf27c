package main

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/cli"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// View returns the screen of a moment, with at most lines lines of s.Width columns; for 0 lines
// everything, without what only a keyboard needs.
func (s topState) View(screen cli.Screen, lines int, now time.Time) string {
	v := view{topState: s, screen: screen, now: now, live: lines > 0}
	head := v.section(v.head)
	if s.text != nil {
		body := v.section(v.message)
		return v.fit(lines, head, body, []string{"press any key to go back"})
	}
	buckets, foot := v.section(v.buckets), v.section(v.foot)
	if lines > 0 {
		buckets = window(buckets, s.selected+1, max(3, lines/2))
	}
	outlook := v.section(v.foretold)
	body := append(append(append([]string{}, buckets...), outlook...), "")
	room := lines - len(head) - len(body) - len(foot)
	if lines == 0 {
		room = 1 << 20
	}
	return v.fit(lines, head, append(body, v.lower(room)...), foot)
}

type view struct {
	topState
	screen cli.Screen
	now    time.Time
	live   bool
}

// section returns the lines that draw writes.
func (v *view) section(draw func(cli.Screen)) []string {
	var out bytes.Buffer
	s := v.screen
	s.W = &out
	draw(s)
	text := strings.TrimRight(out.String(), "\n")
	if text == "" {
		return nil
	}
	return strings.Split(text, "\n")
}

// window returns the heading of a table and the lines around the selected one, at most most lines.
func window(table []string, selected, most int) []string {
	if len(table) <= most {
		return table
	}
	first := max(1, min(selected-(most-1)/2, len(table)-most+1))
	return append(append([]string{}, table[0]), table[first:first+most-1]...)
}

// fit joins sections; the body is cut and padded so that the foot is at the bottom.
func (v *view) fit(lines int, head, body, foot []string) string {
	if lines > 0 {
		room := max(0, lines-len(head)-len(foot))
		body = body[:min(len(body), room)]
		for len(body) < room {
			body = append(body, "")
		}
	}
	all := append(append(append([]string{}, head...), body...), foot...)
	if lines > 0 {
		all = all[:min(len(all), lines)]
	}
	return strings.TrimRight(strings.Join(all, "\n"), "\n")
}

func (v *view) head(s cli.Screen) {
	line := []string{"quotactl top", words.Moment(v.now.Truncate(time.Second))}
	if v.live {
		line = append(line, "every "+words.Span(v.Every))
	}
	if v.paused {
		line = append(line, "PAUSED")
	}
	if v.bucket != "" {
		line = append(line, "bucket "+v.bucket)
	}
	if v.label != "" {
		line = append(line, "charges with "+v.label)
	}
	if v.sorted() != asConfigured {
		line = append(line, string(v.sorted()))
	}
	s.Say("%s\n", strings.Join(line, "  "))
	if v.away != "" {
		s.Say("waiting for the ledger since %s: %s\n", v.since.UTC().Format("15:04:05Z"), v.away)
	}
}

func (v *view) buckets(s cli.Screen) {
	if !v.read {
		s.Say("reading the ledger…\n")
		return
	}
	t := s.Table("", "credential", "bucket", "window", "taken", ">used", ">held", ">limit",
		">remaining", "next free or reset")
	for i, r := range v.rows() {
		mark := " "
		if v.live && i == min(v.selected, len(v.rows())-1) {
			mark = ">"
		}
		amount := func(n int64) string { return s.Amount(r.Bucket.Counts, n) }
		t.AppendRow([]any{mark, r.Credential.Credential, r.Bucket.Bucket, cli.Window(r.Limit),
			s.Bar(r.Limit.Used+r.Bucket.Held, r.Limit.Units, barCells), amount(r.Limit.Used),
			amount(r.Bucket.Held), amount(r.Limit.Units), s.Remaining(r.Credential, r.Bucket, r.Limit), until(s, r, v.now)})
	}
	steps := []cli.Step{cli.Shorten("next free or reset"), cli.Shorten("window")}
	if len(v.pic.Status.Credentials) == 1 {
		steps = append(steps, cli.Drop("credential"))
	}
	s.Draw(t, append(steps, cli.Drop("held"), cli.Cut("bucket", 12), cli.Cut("credential", 8),
		cli.Drop("limit"), cli.Drop("taken"), cli.Cut("bucket", 8), cli.Drop("used"),
		cli.Drop("next free or reset"), cli.Drop("credential"), cli.Drop("window"))...)
}

// until returns the end of a suspension, else of the window, else when units come free.
func until(s cli.Screen, r topRow, now time.Time) cli.Cell {
	at := time.Time(r.Bucket.SuspendedUntil)
	if at.IsZero() {
		at = r.ends()
	}
	return s.Until(at, now)
}

func (v *view) foretold(s cli.Screen) {
	for i, line := range v.outlook {
		if v.live && i == 2 {
			break
		}
		s.Say("%s\n", line)
	}
}

// lower returns the latest charges and the latest spenders in the given number of lines: side by
// side if there is room, else one below the other.
func (v *view) lower(lines int) []string {
	if lines < 2 || !v.read {
		return nil
	}
	const wide, right = 130, 44
	if v.live && v.screen.Width >= wide {
		whole := v.screen.Width
		v.screen.Width = whole - right - 2
		charges := v.section(func(s cli.Screen) { v.charges(s, lines-1) })
		v.screen.Width = right
		seen := v.section(func(s cli.Screen) { v.seen(s, lines-1) })
		v.screen.Width = whole
		return beside(charges, seen, whole-right)
	}
	part := lines
	if v.live {
		part = max(2, (lines-1)*3/5)
	}
	charges := v.section(func(s cli.Screen) { v.charges(s, part-1) })
	if rest := lines - len(charges) - 1; rest >= 2 {
		seen := v.section(func(s cli.Screen) { v.seen(s, rest-1) })
		return append(append(charges, ""), seen...)
	}
	return charges
}

// beside puts the lines of one table to the right of another's.
func beside(left, right []string, column int) (all []string) {
	for i := range max(len(left), len(right)) {
		var line string
		if i < len(left) {
			line = left[i]
		}
		if i < len(right) {
			line += strings.Repeat(" ", max(1, column-cli.Width(line))) + right[i]
		}
		all = append(all, line)
	}
	return all
}

func (v *view) charges(s cli.Screen, most int) {
	t := s.Table("age", "bucket", ">units", "method", "region", "labels")
	n := 0
	for _, c := range v.pic.Charges {
		if !v.shows(c) || n == most {
			continue
		}
		n++
		t.AppendRow([]any{age(v.now, c.At), c.Bucket, c.Counts.Text(c.Units), c.Labels[quota.LabelMethod],
			c.Labels[quota.LabelRegion], others(c.Labels)})
	}
	if n == 0 {
		s.Say("no charges\n")
		return
	}
	s.Draw(t, cli.Cut("labels", 12), cli.Cut("method", 12), cli.Cut("bucket", 8),
		cli.Drop("labels"), cli.Drop("region"), cli.Drop("method"))
}

// others returns the labels without a column.
func others(labels quota.Labels) string {
	var words []string
	shown := []string{quota.LabelMethod, quota.LabelRegion, quota.LabelRun}
	for _, name := range slices.Sorted(maps.Keys(labels)) {
		if !slices.Contains(shown, name) {
			words = append(words, name+"="+labels[name])
		}
	}
	return strings.Join(words, " ")
}

func (v *view) seen(s cli.Screen, most int) {
	if len(v.pic.Seen) == 0 {
		return
	}
	t := s.Table("job or region", "bucket", "last", ">units in 24h")
	rows := 0
	for _, one := range v.pic.Seen {
		if rows == most || v.bucket != "" && one.Bucket != v.bucket {
			continue
		}
		rows++
		t.AppendRow([]any{one.Label + " " + one.Value, one.Bucket, age(v.now, one.At),
			s.Amount(one.Counts, one.Units)})
	}
	s.Draw(t, cli.Cut("job or region", 12), cli.Cut("bucket", 8))
}

// age returns how long ago something was.
func age(now, at time.Time) string {
	d := now.Sub(at)
	if d < time.Second {
		return "now"
	}
	return words.Span(d.Truncate(time.Second)) + " ago"
}

func (v *view) message(s cli.Screen) {
	s.Say("\n%s\n", strings.Join(v.text, "\n"))
}

func (v *view) foot(s cli.Screen) {
	if !v.live {
		return
	}
	switch {
	case v.typing:
		s.Say("label: %s_   (enter to filter, esc to leave it)\n", v.typed)
	case v.question != nil:
		verb := "suspend"
		if v.question.Do == doResume {
			verb = "resume"
		}
		s.Say("%s bucket %s of %s? y/n\n", verb, v.question.Bucket, v.question.Credential)
	case v.said != "":
		s.Say("%s\n", v.said)
	default:
		fmt.Fprintf(s.W, "%s\n", keysLine(s.Width))
	}
}

// keysLine names the keys, as many as fit.
func keysLine(width int) string {
	line := ""
	for _, key := range []string{"q quit", "? help", "p pause", "e explain", "s suspend",
		"r resume", "b bucket", "l label", "o sort"} {
		if width > 0 && len(line)+2+len(key) > width {
			break
		}
		if line != "" {
			line += "  "
		}
		line += key
	}
	return line
}
