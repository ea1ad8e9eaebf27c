package main

import (
	"fmt"
	"io"
	"log/slog"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/ingest"
	"quotabudget/internal/words"
)

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

func (p *progress) interrupted() {
	p.log.Warn("ending after the page under way; a second signal ends at once")
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
