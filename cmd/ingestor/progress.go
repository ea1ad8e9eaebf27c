package main

import (
	"bytes"
	"io"
	"log/slog"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/ingest"
)

// show reports on a sweep while it runs: with bars on a terminal, with a log line for each event
// otherwise.
type show struct {
	log      *slog.Logger
	stderr   io.Writer
	bars     *bars // nil without a terminal
	trackers map[string]*progress.Tracker
	pages    int
}

// bars are drawn on standard error from start to stop.
type bars struct {
	progress.Writer
	ended chan struct{} // nil before start
}

func newProgress(a *app, cfg *config.Config) *show {
	s := &show{log: a.Logger(), stderr: a.Stderr, pages: cfg.Ingest.Pages}
	if s.bars = a.newBars(); s.bars == nil {
		return s
	}
	s.bars.SetNumTrackersExpected(len(cfg.Ingest.Regions))
	s.bars.Style().Visibility.ETA = false
	s.bars.Style().Visibility.Percentage = false
	s.trackers = make(map[string]*progress.Tracker)
	common := a.Common
	common.Stderr = logAbove{s.bars, a.Stderr}
	if common.LogLevel == "info" {
		common.LogLevel = "warn" // the bars say the rest
	}
	s.log = common.Logger()
	return s
}

// newBars draws on standard error; nil where nobody looks at it, or where lines of a log are
// wanted.
func (a *app) newBars() *bars {
	if !cli.IsTerminal(a.Stderr) || a.LogFormat == "json" || a.LogLevel == "debug" ||
		a.Getenv("TERM") == "dumb" {
		return nil
	}
	bars := &bars{Writer: progress.NewWriter()}
	bars.SetOutputWriter(a.Stderr)
	bars.SetStyle(progress.StyleBlocks)
	bars.SetTrackerLength(20)
	bars.SetTrackerPosition(progress.PositionRight)
	bars.SetMessageLength(16)
	bars.SetUpdateFrequency(50 * time.Millisecond)
	return bars
}

func (b *bars) start() {
	b.ended = make(chan struct{})
	go func() {
		defer close(b.ended)
		b.Render()
	}()
}

// stop draws the last state, and waits until it is drawn.
func (b *bars) stop() {
	for { // a Stop before the drawing has begun is not heard
		b.Stop()
		select {
		case <-b.ended:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

var pageUnits = progress.Units{Notation: " pages",
	NotationPosition: progress.UnitsNotationPositionAfter, Formatter: progress.FormatNumber}

func (s *show) begin() {
	if s.bars != nil {
		s.bars.start()
	}
}

func (s *show) watch(e ingest.Event) {
	if s.bars == nil {
		return
	}
	t := s.trackers[e.Region]
	if t == nil {
		t = &progress.Tracker{Message: e.Region, Total: int64(s.pages), Units: pageUnits}
		s.trackers[e.Region] = t
		s.bars.AppendTracker(t)
	}
	t.SetValue(int64(e.Pages))
	switch e.Outcome {
	case "":
	case ingest.Complete:
		t.UpdateTotal(int64(e.Pages)) // it may have had fewer pages than could be read
		t.MarkAsDone()
	default:
		t.UpdateMessage(e.Region + " " + string(e.Outcome))
		t.MarkAsErrored()
	}
}

func (s *show) interrupted() {
	const text = "ending after the page under way; a second signal ends at once"
	if s.bars == nil {
		s.log.Warn(text)
		return
	}
	io.WriteString(s.stderr, "\r") // over the ^C of the terminal, which would shift the bars
	s.bars.SetPinnedMessages(text)
}

func (s *show) end() {
	if s.bars == nil {
		return
	}
	for _, t := range s.trackers {
		if !t.IsDone() {
			t.MarkAsErrored()
		}
	}
	s.bars.stop()
}

type logAbove struct {
	bars   *bars
	stderr io.Writer
}

func (l logAbove) Write(line []byte) (int, error) {
	if !l.bars.IsRenderInProgress() {
		return l.stderr.Write(line)
	}
	l.bars.Log("%s", bytes.TrimRight(line, "\n"))
	return len(line), nil
}
