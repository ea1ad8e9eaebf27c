package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/cobra"

	"quotabudget/internal/catalog"
	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/daemon"
	"quotabudget/internal/ingest"
	"quotabudget/internal/notify"
	"quotabudget/internal/quota"
	"quotabudget/internal/regions"
	"quotabudget/internal/report"
	"quotabudget/internal/words"
	"quotabudget/internal/youtube"
)

// maxPages is far more than any chart has.
const maxPages = 1000

func onceCommand(a *app) *cobra.Command {
	var o onceOptions
	c := a.Command("once", func(c *cobra.Command, _ []string) error {
		if c.Flags().Changed("metrics-file") && o.metrics == "" {
			return cli.Usagef("--metrics-file is empty")
		}
		file := &metricsFile{path: o.metrics, exports: a.Exports(), began: time.Now()}
		file.sum.Outcome = ingest.Failed
		if err := file.check(); err != nil {
			return err
		}
		err := a.sweepOnce(c.Context(), o, file)
		if file.exports {
			a.ExportOnce(c.Context(), "ingestor-once", file.all(err))
		}
		return file.write(err)
	})
	cli.Flags(c.Flags(), "demo", &o.demo)
	c.Flags().StringSliceVar(&o.codes, "region", nil, "")
	cli.Bound(c.RegisterFlagCompletionFunc("region", a.completeRegions))
	cli.Flags(c.Flags(), "metrics-file", &o.metrics, "pages", &o.pages)
	cli.Limit(c.Flags(), 1, maxPages, "pages")
	return c
}

type onceOptions struct {
	demo    bool
	codes   []string // regions
	pages   int
	metrics string // file
}

func (a *app) sweepOnce(ctx context.Context, o onceOptions, file *metricsFile) error {
	var list []regions.Region
	if o.codes != nil {
		var err error
		if list, err = regions.ParseList(o.codes); err != nil {
			return cli.Usagef("%w", err)
		}
	}
	cfg, closeDemo, err := a.loadOrDemo(ctx, o.demo)
	if err != nil {
		return err
	}
	defer closeDemo()
	configured := *cfg
	configured.Jobs = slices.DeleteFunc(slices.Clone(cfg.Jobs), config.OwnJob.IsSweep) // not this
	if list != nil {
		cfg.Ingest.Regions = list
	}
	if o.pages > 0 {
		cfg.Ingest.Pages = o.pages
	}
	if len(cfg.Ingest.Regions) == 0 {
		return cli.Misconfigured(errors.New("no regions are configured"),
			"set regions: under ingest:, or give --region")
	}
	show := newProgress(a, cfg)
	st, err := a.open(ctx, cfg, show.log, nil)
	if err != nil {
		return err
	}
	sweep := st.sweep()
	sweep.Watch = show.watch
	work := &daemon.Config{Spending: st.ledger}
	all := *st // the state of all regions
	all.cfg = &configured
	if work.Lanes, err = all.lanes(sweep, false); err != nil {
		return errors.Join(err, st.Close())
	}
	if sweep.Unpaced, err = work.Unpaced(ctx, st.cred.Name); err != nil {
		show.log.Warn("cannot read which regions have had their floors; pacing all",
			"error", err)
	}
	defer context.AfterFunc(ctx, func() {
		show.log.Warn("stopping after the current page; a second signal stops at once")
	})()
	sum, err := sweep.Execute(ctx)
	show.end()
	file.look(st, sum)
	err = errors.Join(err, a.printSummary(st, sum, o.demo))
	notify.Notice(ctx, report.Source{Config: st.cfg, Ledger: st.ledger}, os.Environ(), st.log, false)
	err = errors.Join(err, st.Close())
	return outcome(sum, err)
}

// outcome returns the error of a sweep that failed, was denied, or did not complete every region.
func outcome(sum ingest.Summary, err error) error {
	if err != nil {
		return err
	}
	switch sum.Outcome {
	case ingest.Complete:
		return nil
	case ingest.Exhausted:
		return &cli.Coded{Code: cli.ExitExhausted}
	}
	code, missing := 0, 0
	for _, r := range sum.Regions {
		if r.Outcome == ingest.Complete || r.Outcome == ingest.Unavailable {
			continue
		}
		missing++
		kind, _ := youtube.KindOf(r.Err()) // Permanent, a failure, if the error is not the upstream's
		if regional := cli.KindCode(kind); code == 0 || code == regional {
			code = regional
		} else {
			code = cli.ExitFailed
		}
	}
	err = fmt.Errorf("incomplete regions: %d of %d", missing, len(sum.Regions))
	return &cli.Coded{Code: code, Err: cli.Hint(err,
		"the result shows why; fetched pages are kept, and the next sweep resumes there")}
}

// progress reports on a sweep while it runs: on a terminal, a line for each region and one for the
// current page; otherwise, a log line for each event.
type progress struct {
	log   *slog.Logger
	w     io.Writer // nil without a terminal, or if logs are on
	pages int
}

// clearLine moves to the beginning of the line and clears it.
const clearLine = "\r\x1b[K"

func newProgress(a *app, cfg *config.Config) *progress {
	p := &progress{log: a.Logger(), pages: cfg.Ingest.Pages}
	if !cli.IsTerminal(a.Stderr) || a.LogFormat == "json" || a.LogLevel == "debug" ||
		a.Getenv("TERM") == "dumb" {
		return p
	}
	p.w = a.Stderr
	common := a.Common
	common.Stderr = logAbove{a.Stderr}
	if common.LogLevel == "info" {
		common.LogLevel = "warn" // the lines of the regions show the rest
	}
	p.log = common.Logger()
	return p
}

func (p *progress) watch(e ingest.Event) {
	switch {
	case p.w == nil:
	case e.Outcome == "":
		fmt.Fprintf(p.w, "%s%s: page %d of %d", clearLine, e.Region, e.Pages, p.pages)
	default:
		fmt.Fprintf(p.w, "%s%s: %s, %s\n", clearLine, e.Region, e.Outcome,
			words.Plural(int64(e.Pages), "page"))
	}
}

func (p *progress) end() {
	if p.w != nil {
		io.WriteString(p.w, clearLine)
	}
}

// logAbove writes log lines above the line of the current page.
type logAbove struct{ w io.Writer }

func (l logAbove) Write(line []byte) (int, error) {
	if _, err := fmt.Fprintf(l.w, "%s%s", clearLine, line); err != nil {
		return 0, err
	}
	return len(line), nil
}

// metricsFile writes the metrics of a single sweep to a file, for the textfile collector of
// Prometheus's node exporter.
type metricsFile struct {
	path    string // "" for none
	exports bool   // the metrics are also sent to an OpenTelemetry collector
	began   time.Time
	sum     ingest.Summary
	rest    prometheus.Gatherer // final state of budget and charts; nil if they were never open
}

// check returns an error if the file cannot be created. Callers use it before they spend units.
func (m *metricsFile) check() error {
	if m.path == "" {
		return nil
	}
	try, err := os.CreateTemp(filepath.Dir(m.path), filepath.Base(m.path))
	if err != nil {
		return m.problem(err)
	}
	return errors.Join(try.Close(), os.Remove(try.Name()))
}

// look reads the state of budget and charts at the end of a sweep, before ledger and catalogue are
// closed.
func (m *metricsFile) look(st *deps, sum ingest.Summary) {
	m.sum = sum
	if m.path == "" && !m.exports {
		return
	}
	registry := prometheus.NewRegistry()
	charts := func() (*catalog.Catalog, []string) { return st.catalog, regionNames(st.cfg) }
	registry.MustRegister(daemon.BuildInfo("ingestor"),
		daemon.NewBudgetMetrics(func() []*quota.Budget { return []*quota.Budget{st.budget} }, st.log),
		daemon.NewChartMetrics(charts, false, st.log))
	m.rest = prometheus.GathererFunc(again(registry.Gather()))
}

func again[T any](gathered T, err error) func() (T, error) {
	return func() (T, error) { return gathered, err }
}

// all returns the metrics of the sweep, which ended with err.
func (m *metricsFile) all(ended error) prometheus.Gatherers {
	once := daemon.OnceMetrics{Began: m.began, ExitCode: cli.Code(ended), Summary: m.sum}
	all := prometheus.Gatherers{once.Registry()}
	if m.rest != nil {
		all = append(all, m.rest)
	}
	return all
}

// write replaces the file in one step, whatever the result of the sweep. It returns the program's
// error: a file that cannot be written needs attention even if the sweep succeeded.
func (m *metricsFile) write(ended error) error {
	if m.path == "" {
		return ended
	}
	err := prometheus.WriteToTextfile(m.path, m.all(ended))
	if err == nil {
		return ended
	}
	if code := cli.Code(ended); code == cli.ExitOK || code == cli.ExitExhausted {
		return m.problem(err)
	}
	return errors.Join(ended, m.problem(err))
}

func (m *metricsFile) problem(err error) error {
	if about, ok := errors.AsType[*fs.PathError](err); ok {
		err = about.Err
	}
	return cli.Hint(fmt.Errorf("cannot write the metrics file %s: %w", m.path, err),
		"its folder must exist and be writable by the user that runs this")
}
