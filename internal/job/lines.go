package job

import "bytes"

// Lines is an io.Writer that splits text into lines.
type Lines struct {
	Max int // bytes of a line; the rest of a longer one is dropped
	// Each is called with each line without its end. cut means that the line was longer.
	Each func(line string, cut bool)

	line []byte // the unfinished line
	cut  bool
}

// Write never fails.
func (l *Lines) Write(text []byte) (int, error) {
	for remaining := text; len(remaining) > 0; {
		part, after, ended := bytes.Cut(remaining, []byte("\n"))
		room := l.Max - len(l.line)
		l.cut = l.cut || len(part) > room
		l.line = append(l.line, part[:min(room, len(part))]...)
		if remaining = after; ended {
			l.end()
		}
	}
	return len(text), nil
}

// Flush ends the last line, if it is unfinished.
func (l *Lines) Flush() {
	if len(l.line) > 0 {
		l.end()
	}
}

func (l *Lines) end() {
	l.Each(string(l.line), l.cut)
	l.line, l.cut = l.line[:0], false
}
