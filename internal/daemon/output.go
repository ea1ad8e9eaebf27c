package daemon

import (
	"bytes"
	"io"
	"log/slog"
	"strings"
	"sync"
)

// What of a run's output is logged: a command that never stops writing must not fill the disk.
const (
	mostLines = 1000
	mostLine  = 4 << 10 // bytes; what is longer is cut
)

// output logs what a run writes, line by line.
type output struct {
	log *slog.Logger

	mu      sync.Mutex
	streams []*stream
	lines   int
}

// stream is one of the ways that a run writes to.
type stream struct {
	*output
	name string
	line bytes.Buffer // that has not ended yet
	cut  bool         // of which the end is left out
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
	for rest := text; len(rest) > 0; {
		line, after, ended := bytes.Cut(rest, []byte("\n"))
		room := mostLine - s.line.Len()
		s.cut = s.cut || len(line) > room
		s.line.Write(line[:min(room, len(line))])
		if rest = after; ended {
			s.flush()
		}
	}
	return len(text), nil
}

// flush logs the line, with the lock held.
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

// close logs what has not ended with a line break, and how much was left out.
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
