package main

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"quotabudget/internal/cli"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/words"
)

// topView is the live view, a tea.Model. Without lines it is one picture as text.
type topView struct {
	ctx    context.Context
	reader *topReader
	every  time.Duration // between two readings
	screen cli.Screen
	lines  int // of the terminal; 0 for no terminal

	pic      picture
	away     error // why the last reading failed
	since    time.Time
	reading  bool
	paused   bool
	selected int
	question *deed    // to be answered with y
	message  []string // shown instead of the tables until a key is pressed; one line: at the foot
}

type (
	tickMsg    struct{}
	pictureMsg struct {
		picture
		err error
	}
	doneMsg []string
)

// run shows the view on the terminal until the user quits.
func (v *topView) run(a *app) error {
	v.lines = 1
	_, err := tea.NewProgram(v, tea.WithContext(v.ctx), tea.WithOutput(a.Stdout),
		tea.WithoutSignalHandler()).Run()
	if v.ctx.Err() != nil {
		return nil
	}
	return err
}

// Init implements tea.Model.
func (v *topView) Init() tea.Cmd { return tea.Batch(v.read(), v.tick()) }

func (v *topView) tick() tea.Cmd {
	return tea.Tick(v.every, func(time.Time) tea.Msg { return tickMsg{} })
}

// read reads the ledger, unless that is under way.
func (v *topView) read() tea.Cmd {
	if v.reading {
		return nil
	}
	v.reading = true
	return func() tea.Msg {
		pic, err := v.reader.read(v.ctx)
		return pictureMsg{pic, err}
	}
}

// got takes a reading, or the error in its place: then the last one stays.
func (v *topView) got(pic picture, err error) {
	if err != nil && v.away == nil {
		v.since = time.Now()
	}
	if v.away = err; err == nil {
		v.pic = pic
		v.selected = max(0, min(v.selected, len(v.rows())-1))
	}
}

// Update implements tea.Model.
func (v *topView) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		v.screen.Width, v.lines = msg.Width, max(1, msg.Height)
	case tickMsg:
		if v.paused {
			return v, v.tick()
		}
		return v, tea.Batch(v.read(), v.tick())
	case pictureMsg:
		v.reading = false
		v.got(msg.picture, msg.err)
	case doneMsg:
		v.message = msg
		return v, v.read()
	case tea.KeyPressMsg:
		return v, v.key(msg.String())
	}
	return v, nil
}

// key handles a key as bubbletea names it: "q", "up", "ctrl+c".
func (v *topView) key(key string) tea.Cmd {
	question, message := v.question, v.message
	v.question, v.message = nil, nil
	switch {
	case key == "ctrl+c":
		return tea.Quit
	case question != nil && key == "y":
		return v.do(*question)
	case question != nil:
		v.message = []string{"nothing was changed"}
		return nil
	case len(message) > 1:
		return nil
	}
	switch key {
	case "q":
		return tea.Quit
	case "p", "space":
		if v.paused = !v.paused; !v.paused {
			return v.read()
		}
	case "up", "k":
		v.selected = max(0, v.selected-1)
	case "down", "j":
		v.selected = max(0, min(v.selected+1, len(v.rows())-1))
	case "e", "s", "r":
		return v.deed(key)
	}
	return nil
}

// deed does what a key does to the selected bucket. It asks before it changes anything.
func (v *topView) deed(key string) tea.Cmd {
	rows := v.rows()
	if len(rows) == 0 {
		return nil
	}
	row := rows[v.selected]
	closed := !time.Time(row.bucket.SuspendedUntil).IsZero()
	d := deed{credential: row.credential.Credential, bucket: row.bucket.Bucket}
	switch {
	case key == "e":
		d.verb = "explain"
		return v.do(d)
	case key == "s" && closed:
		v.message = []string{d.bucket + " is suspended already"}
		return nil
	case key == "r" && !closed:
		v.message = []string{d.bucket + " is not suspended"}
		return nil
	}
	d.verb = map[string]string{"s": "suspend", "r": "resume"}[key]
	v.question = &d
	return nil
}

func (v *topView) do(d deed) tea.Cmd {
	return func() tea.Msg { return doneMsg(v.reader.do(v.ctx, d)) }
}

// View implements tea.Model.
func (v *topView) View() tea.View {
	view := tea.NewView(v.text(time.Now()))
	view.AltScreen = true
	return view
}

// topRow is a limit of a bucket, as it can be selected.
type topRow struct {
	credential report.CredentialStatus
	bucket     report.BucketStatus
	limit      report.LimitStatus
}

func (v *topView) rows() (rows []topRow) {
	for _, c := range v.pic.status.Credentials {
		for _, b := range c.Buckets {
			for _, l := range b.Limits {
				rows = append(rows, topRow{c, b, l})
			}
		}
	}
	return rows
}

// text draws the view: on a terminal v.lines lines, else all of it.
func (v *topView) text(now time.Time) string {
	head := v.section(func(s cli.Screen) { v.head(s, now) })
	var foot []string
	if v.lines > 0 {
		foot = v.section(v.foot)
	}
	body, room := v.message, v.lines-len(head)-len(foot)
	if len(body) < 2 {
		body = v.tables(now, room)
	} else {
		body = v.section(func(s cli.Screen) { s.Say("\n%s", strings.Join(v.message, "\n")) })
	}
	if v.lines > 0 {
		body = append(body, make([]string, max(0, room-len(body)))...)[:max(0, room)]
	}
	all := append(append(head, body...), foot...)
	if v.lines > 0 {
		all = all[:min(len(all), v.lines)]
	}
	return strings.TrimRight(strings.Join(all, "\n"), "\n")
}

// tables returns the tables, each cut to its part of the room on a terminal.
func (v *topView) tables(now time.Time, room int) []string {
	charges, spenders, outlook := topCharges, len(v.pic.spenders), v.pic.outlook
	buckets := v.section(func(s cli.Screen) { v.buckets(s, now) })
	if v.lines > 0 {
		buckets = window(buckets, v.selected+1, max(3, room/2))
		outlook = outlook[:min(len(outlook), 2)]
		left := max(0, room-len(buckets)-len(outlook)-4) // two headings and two empty lines
		spenders = min(spenders, left*2/5)
		charges = left - spenders
	}
	all := append(buckets, v.section(func(s cli.Screen) { s.Say("%s", strings.Join(outlook, "\n")) })...)
	all = append(append(all, ""), v.section(func(s cli.Screen) { v.charges(s, now, charges) })...)
	return append(append(all, ""), v.section(func(s cli.Screen) { v.spenders(s, now, spenders) })...)
}

// section returns the lines that draw writes.
func (v *topView) section(draw func(cli.Screen)) []string {
	var out bytes.Buffer
	s := v.screen
	s.W = &out
	draw(s)
	if out.Len() == 0 {
		return nil
	}
	return strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
}

// window returns the heading of a table and the lines around the selected one, at most most lines.
func window(table []string, selected, most int) []string {
	if len(table) <= most {
		return table
	}
	first := max(1, min(selected-(most-1)/2, len(table)-most+1))
	return append(table[:1:1], table[first:first+most-1]...)
}

func (v *topView) head(s cli.Screen, now time.Time) {
	line := "quotactl top  " + words.Moment(now.Truncate(time.Second))
	if v.lines > 0 {
		line += "  every " + words.Span(v.every)
	}
	if v.paused {
		line += "  PAUSED"
	}
	s.Say("%s\n", line)
	if v.away != nil {
		s.Say("waiting for the ledger since %s: %v\n", v.since.UTC().Format("15:04:05Z"), v.away)
	}
}

func (v *topView) buckets(s cli.Screen, now time.Time) {
	t := s.Table("", "credential", "bucket", "window", "taken", ">used", ">held", ">limit",
		">remaining", "next free or reset")
	for i, r := range v.rows() {
		mark := " "
		if v.lines > 0 && i == v.selected {
			mark = ">"
		}
		amount := func(n int64) string { return s.Amount(r.bucket.Counts, n) }
		t.AppendRow([]any{mark, r.credential.Credential, r.bucket.Bucket, cli.Window(r.limit),
			s.Bar(r.limit.Used+r.bucket.Held, r.limit.Units, barCells), amount(r.limit.Used),
			amount(r.bucket.Held), amount(r.limit.Units),
			s.Remaining(r.credential, r.bucket, r.limit), s.Until(r.ends(), now)})
	}
	steps := []cli.Step{cli.Shorten("next free or reset"), cli.Shorten("window")}
	if len(v.pic.status.Credentials) == 1 {
		steps = append(steps, cli.Drop("credential"))
	}
	s.Draw(t, append(steps, cli.Drop("held"), cli.Cut("bucket", 12), cli.Cut("credential", 8),
		cli.Drop("limit"), cli.Drop("taken"), cli.Cut("bucket", 8), cli.Drop("used"),
		cli.Drop("next free or reset"), cli.Drop("credential"), cli.Drop("window"))...)
}

// ends returns the end of a suspension, else of the window, else when units come free.
func (r topRow) ends() time.Time {
	for _, at := range []words.Time{r.bucket.SuspendedUntil, r.limit.ResetAt} {
		if !time.Time(at).IsZero() {
			return time.Time(at)
		}
	}
	return time.Time(r.limit.NextFreeAt)
}

func (v *topView) charges(s cli.Screen, now time.Time, most int) {
	if len(v.pic.charges) == 0 {
		s.Say("no charges\n")
		return
	}
	t := s.Table("age", "bucket", ">units", "method", "region", "labels")
	for _, c := range v.pic.charges[:min(len(v.pic.charges), most)] {
		others := without(c.Labels, quota.LabelMethod, quota.LabelRegion, quota.LabelRun)
		t.AppendRow([]any{age(now, c.At), c.Bucket, c.counts.Text(c.Units),
			c.Labels[quota.LabelMethod], c.Labels[quota.LabelRegion], labelText(others)})
	}
	s.Draw(t, cli.Cut("labels", 12), cli.Cut("method", 12), cli.Cut("bucket", 8),
		cli.Drop("labels"), cli.Drop("region"), cli.Drop("method"))
}

func (v *topView) spenders(s cli.Screen, now time.Time, most int) {
	if most == 0 {
		return
	}
	t := s.Table("job or region", "bucket", "last", ">units in 24h")
	for _, one := range v.pic.spenders[:most] {
		t.AppendRow([]any{one.name, one.bucket, age(now, one.at), s.Amount(one.counts, one.units)})
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

func (v *topView) foot(s cli.Screen) {
	switch {
	case v.question != nil:
		s.Say("%s bucket %s of %s? y/n\n", v.question.verb, v.question.bucket, v.question.credential)
	case len(v.message) == 1:
		s.Say("%s\n", v.message[0])
	default:
		fmt.Fprintln(s.W, keysLine(s.Width))
	}
}

// keysLine names the keys, as many as fit.
func keysLine(width int) string {
	line := ""
	for _, key := range []string{"q quit", "up, down select", "e explain", "s suspend", "r resume",
		"p pause"} {
		if width > 0 && len(line)+2+len(key) > width {
			break
		}
		line += key + "  "
	}
	return strings.TrimSpace(line)
}
