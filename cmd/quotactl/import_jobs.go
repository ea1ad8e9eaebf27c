package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/crontab"
	"quotabudget/internal/job"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

// importedJob is a job of a crontab, as quota.yaml has it.
type importedJob struct {
	Name       string      `json:"name"`
	Elsewhere  string      `json:"elsewhere"`
	Schedule   string      `json:"schedule"`
	Timezone   string      `json:"timezone"`
	Cost       []quotaCost `json:"cost"`
	Method     string      `json:"method,omitempty"`
	Count      int64       `json:"count,omitempty"`
	Learned    bool        `json:"learned"`
	Settle     string      `json:"settle"`
	Credential string      `json:"credential"`
	Line       int         `json:"line"`
	Runs       int64       `json:"runs"` // in the log
	Took       []quotaCost `json:"took"` // by them together
}

type quotaCost struct {
	Bucket string `json:"bucket"`
	Units  int64  `json:"units"`
}

// importer reads the jobs of a crontab.
type importer struct {
	*app
	flags    crontabFlags
	src      report.Source
	jobs     []importedJob
	problems []crontab.Problem
}

func (im *importer) sorted() []crontab.Problem {
	slices.SortStableFunc(im.problems, func(a, b crontab.Problem) int {
		return cmp.Compare(a.Number, b.Number)
	})
	return im.problems
}

func (im *importer) read(ctx context.Context, lines []crontab.Line) error {
	for _, l := range lines {
		calls, err := execsOf(l)
		for _, words := range calls {
			var j importedJob
			if j, err = im.job(ctx, l, words); err != nil {
				break
			}
			same := slices.IndexFunc(im.jobs, func(o importedJob) bool { return o.Name == j.Name })
			if same >= 0 {
				err = fmt.Errorf("the job of line %d is called %s, too: "+
					"give one of them --label job=NAME", im.jobs[same].Line, j.Name)
				break
			}
			im.jobs = append(im.jobs, j)
		}
		if away, ok := errors.AsType[*ledgerError](err); ok {
			return away.error
		}
		if err != nil {
			im.problems = append(im.problems, crontab.Problem{Number: l.Number, Text: err.Error()})
		}
	}
	return nil
}

// ledgerError is an error that is none of the line's.
type ledgerError struct{ error }

// execsOf are the words of each call of quotactl exec in a line, without the program.
func execsOf(l crontab.Line) (calls [][]string, err error) {
	if !strings.Contains(l.Command, "quotactl") {
		return nil, nil
	}
	file, err := syntax.NewParser(syntax.Variant(syntax.LangPOSIX)).Parse(
		strings.NewReader(l.Command), "")
	if err != nil {
		return nil, fmt.Errorf("the command cannot be read: %w", err)
	}
	cfg := &expand.Config{Env: expand.FuncEnviron(func(name string) string { return l.Env[name] })}
	syntax.Walk(file, func(n syntax.Node) bool {
		call, ok := n.(*syntax.CallExpr)
		if !ok {
			return true
		}
		var words []string
		for _, w := range call.Args {
			text, err := expand.Literal(cfg, w)
			if err != nil { // a command's output, say: as it is written
				var b strings.Builder
				syntax.NewPrinter().Print(&b, w)
				text = b.String()
			}
			words = append(words, text)
		}
		at := slices.IndexFunc(words, func(w string) bool { return filepath.Base(w) == "quotactl" })
		if at >= 0 && slices.Contains(words[at:], "exec") {
			calls = append(calls, words[at+1:])
		}
		return true
	})
	return calls, nil
}

// job is what a call of exec says of its job.
func (im *importer) job(ctx context.Context, l crontab.Line, words []string) (j importedJob,
	err error) {
	sub := &app{cli.Common{Stdout: io.Discard, Stderr: io.Discard,
		Getenv: func(name string) string { return l.Env[name] }}}
	root := sub.root()
	root.SetFlagErrorFunc(cli.FlagError)
	c, rest, err := root.Find(words)
	if err != nil || c.Name() != "exec" {
		return j, errors.New("it does not run quotactl exec")
	}
	if err := c.ParseFlags(rest); err != nil {
		return j, c.FlagErrorFunc()(c, err)
	}
	command := c.Flags().Args()
	if len(command) == 0 {
		return j, errors.New("exec has no command")
	}
	flag := func(name string) string { return c.Flags().Lookup(name).Value.String() }
	labels := c.Flags().Lookup("label").Value.(labelFlag).Labels
	j = importedJob{Cost: []quotaCost{}, Name: cmp.Or(labels[quota.LabelJob], nameOf(command[0])),
		Elsewhere: im.flags.source, Schedule: l.Spec, Timezone: cmp.Or(l.Zone, im.flags.timezone),
		Settle: flag("settle"), Line: l.Number, Learned: flag("learned") == "true"}
	if err := quota.CheckName(j.Name); err != nil {
		return j, fmt.Errorf("%w: name the job with --label job=NAME", err)
	}
	own := cmp.Or(sub.Config, l.Env["QUOTA_CONFIG"])
	if file, _ := filepath.Abs(own); own != "" && file != im.src.Config.File {
		return j, fmt.Errorf("it uses another configuration, %s: import it with --config %[1]s",
			own)
	}
	cred, err := im.src.Config.Credential(cmp.Or(sub.Credential, im.Credential))
	if err != nil {
		return j, err
	}
	j.Credential = cred.Name
	units, err := c.Flags().GetInt64("units")
	if err != nil {
		return j, err
	}
	if j.Method = flag("method"); j.Method != "" {
		if j.Count, err = c.Flags().GetInt64("count"); err != nil {
			return j, err
		}
	}
	if units > 0 {
		j.Cost = []quotaCost{{cmp.Or(flag("bucket"), quota.DefaultBucket), units}}
	}
	return j, im.learn(ctx, &j, cred, flag("bucket"))
}

// learn adds what the log says of a job, and what it holds where only the log does.
func (im *importer) learn(ctx context.Context, j *importedJob, cred config.Credential,
	bucket string) error {
	b := cred.Budget(im.src.Ledger, im.src.Config.Table(cred), im.Logger())
	h, err := job.ReadHistory(ctx, b, b.Buckets())
	if err != nil {
		return &ledgerError{err}
	}
	took, runs := h.Took(j.Name)
	j.Runs, j.Took = runs, shownCosts(took)
	if !j.Learned && (j.Method != "" || len(j.Cost) > 0) {
		return nil
	}
	j.Learned = true // a proxy that holds nothing, too: what its requests took is all that is known
	buckets := b.Buckets()
	if bucket != "" {
		buckets = []string{bucket}
	}
	learned, err := h.Learned(j.Name, buckets)
	switch {
	case err == nil && len(learned) > 0:
		j.Method, j.Count, j.Cost = "", 0, shownCosts(learned)
		j.Learned = len(learned) == 1
	case j.Method != "":
		j.Learned = false
	case len(j.Cost) == 0:
		j.Cost = []quotaCost{{cmp.Or(bucket, quota.DefaultBucket), 1}}
	}
	return nil
}

func shownCosts(costs []quota.Cost) []quotaCost {
	shown := []quotaCost{}
	for _, c := range costs {
		shown = append(shown, quotaCost{c.Bucket, c.Units})
	}
	return shown
}

// text is the jobs as items of a list in YAML.
func (im *importer) text(indent string) string {
	var b strings.Builder
	for _, j := range im.jobs {
		b.WriteString(j.text(indent))
	}
	return b.String()
}

func (j importedJob) text(indent string) string {
	var b strings.Builder
	line := func(format string, args ...any) {
		fmt.Fprintf(&b, "%s  "+format+"\n", append([]any{indent}, args...)...)
	}
	fmt.Fprintf(&b, "%s- name: %s\n", indent, j.Name)
	if j.Runs > 0 {
		var means []string
		for _, c := range j.Took {
			mean := float64(c.Units) / float64(j.Runs)
			means = append(means, fmt.Sprintf("%.4g of %s", mean, c.Bucket))
		}
		line("# by the log, its last %d runs took %s each", j.Runs, strings.Join(means, " and "))
	}
	line("elsewhere: %s", quoted(j.Elsewhere))
	line("schedule: %s", quoted(j.Schedule))
	line("timezone: %s", j.Timezone)
	line("cost: %s", j.cost())
	line("settle: %s", j.Settle)
	line("credential: %s", j.Credential)
	return b.String()
}

func (j importedJob) cost() string {
	if j.Method != "" {
		return fmt.Sprintf("{method: %s, count: %d}", j.Method, j.Count)
	}
	var items []string
	for _, c := range j.Cost {
		items = append(items, fmt.Sprintf("{bucket: %s, units: %d}", c.Bucket, c.Units))
	}
	switch {
	case j.Learned:
		return "{learned: true, " + items[0][1:]
	case len(items) == 1:
		return items[0]
	}
	return "[" + strings.Join(items, ", ") + "]"
}

// quoted is a text as JSON has it, which YAML reads, too.
func quoted(text string) string {
	b, _ := json.Marshal(text) // a text
	return string(b)
}
