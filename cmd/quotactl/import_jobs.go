package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/job"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/schedule"
	"quotabudget/internal/words"
)

// importedJob is a job of a crontab in the form of quota.yaml.
type importedJob struct {
	Name       string      `json:"name"`
	Elsewhere  string      `json:"elsewhere"`
	Schedule   string      `json:"schedule"`
	Timezone   string      `json:"timezone"`
	Cost       []shownCost `json:"cost"`
	Method     string      `json:"method,omitempty"`
	Count      int64       `json:"count,omitempty"`
	Learned    bool        `json:"learned"`
	Settle     string      `json:"settle"`
	Credential string      `json:"credential"`
	Line       int         `json:"line"`
	Runs       int64       `json:"runs"` // runs in the log
	Took       []shownCost `json:"took"` // their total cost
}

// shownCost is a cost in JSON.
type shownCost struct {
	Bucket string `json:"bucket"`
	Units  int64  `json:"units"`
}

// importer reads the jobs of a crontab.
type importer struct {
	*app
	flags    crontabFlags
	src      report.Source
	jobs     []importedJob
	problems []schedule.CronProblem
}

func (im *importer) read(ctx context.Context, lines []schedule.CronLine) error {
	for _, l := range lines {
		calls, err := im.callsOf(l)
		if err != nil {
			calls = nil // an error skips the line
		}
		for _, c := range calls {
			fill := im.exec
			if c.program == "ingestor" {
				fill = im.sweep
			}
			j := importedJob{Cost: []shownCost{}, Elsewhere: im.flags.source, Schedule: l.Spec,
				Timezone: cmp.Or(l.Zone, im.flags.timezone), Line: l.Number}
			if err = fill(ctx, &j, c); err == nil {
				err = im.check(ctx, j)
			}
			if err != nil {
				break
			}
			for n, name := 2, j.Name; im.has(j.Name); n++ {
				j.Name = fmt.Sprintf("%s-%d", name, n)
			}
			im.jobs = append(im.jobs, j)
		}
		if away, ok := errors.AsType[*ledgerError](err); ok {
			return away.error
		}
		if err != nil {
			im.problems = append(im.problems, schedule.CronProblem{CronLine: l, Text: err.Error()})
		}
	}
	slices.SortStableFunc(im.problems, func(a, b schedule.CronProblem) int {
		return cmp.Compare(a.Number, b.Number)
	})
	return nil
}

// check validates a job by the rules of quota.yaml: it replaces the configured jobs with it.
func (im *importer) check(ctx context.Context, j importedJob) error {
	var file map[string]any
	search := im.Search()
	if search.Path = im.src.Config.File; search.Path == "" {
		search.Path = initialFile
	} else if !config.IsPipe(search.Path) {
		text, err := os.ReadFile(search.Path)
		if err == nil {
			err = yaml.Unmarshal(text, &file)
		}
		if err != nil {
			return err
		}
	}
	delete(file, "jobs")
	others, err := yaml.Marshal(file)
	if err != nil {
		return err
	}
	search.Text = append(others, "\njobs:\n"+j.text()...)
	if len(file) == 0 {
		search.Text = []byte("jobs:\n" + j.text())
	}
	_, err = search.Load(ctx)
	if wrong, ok := errors.AsType[*config.Error](err); ok {
		return errors.New(wrong.Problems[0].Text)
	}
	return err
}

// has reports whether an earlier line has a job of that name.
func (im *importer) has(name string) bool {
	return slices.ContainsFunc(im.jobs, func(j importedJob) bool { return j.Name == name })
}

// ledgerError is an error of the ledger, as opposed to a line's.
type ledgerError struct{ error }

// exec fills a job from the flags of quotactl exec.
func (im *importer) exec(ctx context.Context, j *importedJob, call invocation) error {
	sub := &app{cli.Common{Stdout: io.Discard, Stderr: io.Discard,
		Getenv: func(name string) string { return call.env[name] }}}
	root := sub.root(call.words)
	root.SetFlagErrorFunc(cli.FlagError)
	c, args, err := root.Find(call.words)
	if err != nil || c.Name() != "exec" {
		return errors.New("does not run quotactl exec")
	}
	if err := c.ParseFlags(args); err != nil {
		return c.FlagErrorFunc()(c, err)
	}
	command := c.Flags().Args()
	if len(command) == 0 {
		return errors.New("exec has no command")
	}
	flag := func(name string) string { return c.Flags().Lookup(name).Value.String() }
	labels := c.Flags().Lookup("label").Value.(labelFlag).Labels
	j.Name = cmp.Or(labels[quota.LabelJob], job.NameOf(command))
	j.Settle, j.Learned = flag("settle"), flag("learned") == "true"
	if err := quota.CheckName(j.Name); err != nil {
		return fmt.Errorf("%w: name the job with --label job=NAME", err)
	}
	cred, err := im.credential(sub.Common, call, im.Credential)
	if err != nil {
		return err
	}
	j.Credential = cred.Name
	units, err := c.Flags().GetInt64("units")
	if err != nil {
		return err
	}
	if j.Method = flag("method"); j.Method != "" {
		if j.Count, err = c.Flags().GetInt64("count"); err != nil {
			return err
		}
	}
	if units > 0 {
		j.Cost = []shownCost{{cmp.Or(flag("bucket"), quota.DefaultBucket), units}}
	}
	return im.learn(ctx, j, cred, flag("bucket"))
}

// sweep fills a job from the flags of ingestor once.
func (im *importer) sweep(ctx context.Context, j *importedJob, call invocation) error {
	in := im.src.Config.Ingest
	var sub cli.Common
	var regions []string
	pages, demo := in.Pages, false
	c := &cobra.Command{FParseErrWhitelist: cobra.FParseErrWhitelist{UnknownFlags: true}}
	sub.Bind(c)
	c.Flags().StringSliceVar(&regions, "region", nil, "")
	cli.Flags(c.Flags(), "pages", &pages, "demo", &demo)
	if err := c.ParseFlags(call.words); err != nil {
		return cli.FlagError(c, err)
	}
	if demo {
		return errors.New("ingestor once --demo spends nothing")
	}
	cred, err := im.credential(sub, call, cmp.Or(im.Credential, in.Credential))
	if err != nil {
		return err
	}
	if regions == nil {
		regions = im.src.Regions()
	}
	j.Name, j.Credential, j.Settle = config.DefaultJob, cred.Name, "report"
	j.Method, j.Count = report.PageMethod, int64(len(regions)*pages)
	return im.learn(ctx, j, cred, "")
}

// credential returns the credential that a call spends from. It must be in the configuration.
func (im *importer) credential(flags cli.Common, c invocation, usual string) (config.Credential,
	error) {
	own := cmp.Or(flags.Config, c.env["QUOTA_CONFIG"])
	if own != "" && !sameFile(own, im.src.Config.File, c.env["HOME"]) {
		return config.Credential{}, fmt.Errorf(
			"it uses another configuration, %s: import it with --config %[1]s", own)
	}
	return im.src.Config.Credential(cmp.Or(flags.Credential, usual))
}

// sameFile reports whether two paths name one file. cron starts a command in the home folder, to
// which its paths are relative.
func sameFile(own, configured, home string) bool {
	if !filepath.IsAbs(own) {
		own = filepath.Join(home, own)
	}
	a, err := os.Stat(own)
	b, failed := os.Stat(configured)
	return err == nil && failed == nil && os.SameFile(a, b)
}

// learn adds the job's history from the log and, if nothing else says what it holds, its hold.
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
	j.Learned = true // also for a proxy that holds nothing: only the usage of its requests is known
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
		j.Cost = []shownCost{{cmp.Or(bucket, quota.DefaultBucket), 1}}
	}
	return nil
}

// shownCosts returns costs in JSON.
func shownCosts(costs []quota.Cost) []shownCost {
	return cli.Each(costs, func(c quota.Cost) shownCost { return shownCost{c.Bucket, c.Units} })
}

// text formats a job as an item of a list in YAML.
func (j importedJob) text() string {
	var b strings.Builder
	line := func(format string, args ...any) {
		fmt.Fprintf(&b, "    "+format+"\n", args...)
	}
	fmt.Fprintf(&b, "  - name: %s\n", j.Name)
	if j.Runs > 0 {
		var means []string
		for _, c := range j.Took {
			means = append(means, words.Mean(c.Units, j.Runs)+" of "+c.Bucket)
		}
		line("# by the log, its last %d runs took %s each", j.Runs, strings.Join(means, " and "))
	}
	line("elsewhere: %s", quoted(j.Elsewhere))
	line("schedule: %s", quoted(j.Schedule))
	line("timezone: %s", word(j.Timezone))
	line("cost: %s", j.cost())
	line("settle: %s", word(j.Settle))
	line("credential: %s", j.Credential)
	return b.String()
}

func (j importedJob) cost() string {
	if j.Method != "" {
		return fmt.Sprintf("{method: %s, count: %d}", word(j.Method), j.Count)
	}
	var items []string
	for _, c := range j.Cost {
		items = append(items, fmt.Sprintf("{bucket: %s, units: %d}", word(c.Bucket), c.Units))
	}
	switch {
	case j.Learned:
		return "{learned: true, " + items[0][1:]
	case len(items) == 1:
		return items[0]
	}
	return "[" + strings.Join(items, ", ") + "]"
}

var wordForm = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9._/+-]*$`)

// word quotes text unless YAML reads it unchanged. "UTC # x" needs quotes, because # begins a
// comment.
func word(text string) string {
	if wordForm.MatchString(text) {
		return text
	}
	return quoted(text)
}

// quoted quotes a string as JSON does, which is valid YAML, too.
func quoted(text string) string {
	b, _ := json.Marshal(text) // cannot fail: a string
	return string(b)
}
