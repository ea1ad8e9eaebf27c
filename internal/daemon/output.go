package daemon

import (
	"io"
	"log/slog"
	"strings"
	"sync/atomic"

	"quotabudget/internal/job"
)

// Limits of a run's logged output, so that a command that keeps writing does not fill the disk.
const (
	maxLines = 1000
	maxLine  = 4 << 10 // bytes; longer lines are cut
)

// output logs what a run writes, line by line.
type output struct {
	log     *slog.Logger
	streams []*job.Lines
	lines   atomic.Int64
}

func (o *output) stream(name string) io.Writer {
	s := &job.Lines{Max: maxLine, Each: func(line string, cut bool) {
		text := strings.ToValidUTF8(strings.TrimSuffix(line, "\r"), "�")
		if cut {
			text += "…"
		}
		if o.lines.Add(1) <= maxLines {
			o.log.Info("output", "stream", name, "text", text)
		}
	}}
	o.streams = append(o.streams, s)
	return s
}

// close logs unfinished lines, and how many lines were dropped. The run must have ended.
func (o *output) close() {
	for _, s := range o.streams {
		s.Flush()
	}
	if left := o.lines.Load() - maxLines; left > 0 {
		o.log.Warn("output left out", "lines", left)
	}
}
