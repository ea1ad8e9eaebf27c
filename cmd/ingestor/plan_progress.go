package main

import (
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"

	"quotabudget/internal/plan"
)

// playing shows how far a plan has been played, on a terminal, once that takes longer than a
// moment.
type playing struct {
	bars    *bars // nil without a terminal
	tracker *progress.Tracker
	begun   time.Time
	from    time.Time
}

const shownAfter = 500 * time.Millisecond

func (a *app) watchPlan(p plan.Plan) *playing {
	w := &playing{bars: a.newBars(), begun: time.Now(), from: p.From}
	days := progress.Units{Notation: " days", Formatter: progress.FormatNumber,
		NotationPosition: progress.UnitsNotationPositionAfter}
	w.tracker = &progress.Tracker{Message: "playing", Total: daysOf(p.To.Sub(p.From)), Units: days}
	return w
}

func daysOf(d time.Duration) int64 { return int64(d / (24 * time.Hour)) }

func (w *playing) played(at time.Time) {
	if w.bars == nil || time.Since(w.begun) < shownAfter {
		return
	}
	w.draw()
	w.tracker.SetValue(daysOf(at.Sub(w.from)))
}

// searches says that the plan was played, and that a better one is looked for, nobody knows for how
// long.
func (w *playing) searches() {
	if w.bars == nil {
		return
	}
	w.tracker.MarkAsDone()
	w.tracker = &progress.Tracker{Message: "suggesting", RemoveOnCompletion: true}
	if w.bars.ended != nil {
		w.bars.AppendTracker(w.tracker)
	}
	w.draw()
}

func (w *playing) draw() {
	if w.bars.ended != nil {
		return
	}
	w.tracker.RemoveOnCompletion = true
	w.bars.AppendTracker(w.tracker)
	w.bars.start()
}

func (w *playing) end() {
	if w.bars == nil || w.bars.ended == nil {
		return
	}
	w.tracker.MarkAsDone()
	w.bars.stop()
}
