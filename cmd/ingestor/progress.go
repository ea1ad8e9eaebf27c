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
	bars     progress.Writer // nil without a terminal, or where lines of a log are wanted
	ended    chan struct{}   // closed when the bars are drawn for the last time
	trackers map[string]*progress.Tracker
	pages    int
}

func newProgress(a *app, cfg *config.Config) *show {
	s := &show{log: a.Logger(), stderr: a.Stderr, pages: cfg.Ingest.Pages,
		ended: make(chan struct{}), trackers: make(map[string]*progress.Tracker)}
	if !cli.IsTerminal(a.Stderr) || a.LogFormat == "json" || a.LogLevel == "debug" ||
		a.Getenv("TERM") == "dumb" {
		return s
	}
	s.bars = progress.NewWriter()
	s.bars.SetOutputWriter(a.Stderr)
	s.bars.SetStyle(progress.StyleBlocks)
	s.bars.SetTrackerLength(20)
	s.bars.SetTrackerPosition(progress.PositionRight)
	s.bars.SetMessageLength(16)
	s.bars.SetUpdateFrequency(50 * time.Millisecond)
	s.bars.SetNumTrackersExpected(len(cfg.Ingest.Regions))
	s.bars.Style().Visibility.ETA = false
	s.bars.Style().Visibility.Percentage = false
	common := a.Common
	common.Stderr = logAbove{s.bars, a.Stderr}
	if common.LogLevel == "info" {
		common.LogLevel = "warn" // the bars show the rest
	}
	s.log = common.Logger()
	return s
}

var pageUnits = progress.Units{Notation: " pages",
	NotationPosition: progress.UnitsNotationPositionAfter, Formatter: progress.FormatNumber}

func (s *show) begin() {
	if s.bars != nil {
		go func() {
			defer close(s.ended)
			s.bars.Render()
		}()
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

// end draws the last state, and waits until it is drawn.
func (s *show) end() {
	if s.bars == nil {
		return
	}
	for _, t := range s.trackers {
		if !t.IsDone() {
			t.MarkAsErrored()
		}
	}
	for { // a Stop before the drawing has begun does nothing
		s.bars.Stop()
		select {
		case <-s.ended:
			return
		case <-time.After(10 * time.Millisecond):
		}
	}
}

type logAbove struct {
	bars   progress.Writer
	stderr io.Writer
}

func (l logAbove) Write(line []byte) (int, error) {
	if !l.bars.IsRenderInProgress() {
		return l.stderr.Write(line)
	}
	l.bars.Log("%s", bytes.TrimRight(line, "\n"))
	return len(line), nil
}
