package daemon

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"sync"
)

// Bounds of a run's logged output: a command that never stops writing must not fill the disk.
const (
	mostLines = 1000
	mostLine  = 4 << 10 // bytes; longer lines are cut
)

// output logs what a run writes, line by line.
type output struct {
	log *slog.Logger

	mu      sync.Mutex
	streams []*stream
	lines   int
}

// stream is the run's standard output or standard error.
type stream struct {
	*output
	name string
	line bytes.Buffer // the unfinished line
	cut  bool         // the line was too long
}

func (o *output) stream(name string) io.Writer {
	s := &stream{output: o, name: name}
	o.streams = append(o.streams, s)
	return s
}

// Write never fails.
func (s *stream) Write(text []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for remaining := text; len(remaining) > 0; {
		line, after, ended := bytes.Cut(remaining, []byte("\n"))
		room := mostLine - s.line.Len()
		s.cut = s.cut || len(line) > room
		s.line.Write(line[:min(room, len(line))])
		if remaining = after; ended {
			s.flush()
		}
	}
	return len(text), nil
}

// flush logs the line. The caller holds the lock.
func (s *stream) flush() {
	text := strings.ToValidUTF8(strings.TrimSuffix(s.line.String(), "\r"), "�")
	if s.cut {
		text += "…"
	}
	s.line.Reset()
	s.cut = false
	if s.lines++; s.lines <= mostLines {
		s.log.Info("output", "stream", s.name, "text", text)
	}
}

// close logs unfinished lines, and how many lines were dropped.
func (o *output) close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	for _, s := range o.streams {
		if s.line.Len() > 0 {
			s.flush()
		}
	}
	if left := o.lines - mostLines; left > 0 {
		o.log.Warn("output left out", "lines", left)
	}
}
