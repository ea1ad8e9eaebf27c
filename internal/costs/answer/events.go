package answer

import "bytes"

// Events reads a stream of server-sent events or of JSON lines as it is passed on. It keeps at most
// one event, and skips events longer than Max.
type Events struct {
	Max    int  // bytes of an event
	Lines  bool // each line is the data of an event
	Handle func(name string, data []byte)

	TooLong int // events that were passed over

	line, data, name []byte
	length           int  // of the line, whether it is held or not
	skip             bool // the rest of the event: it is too long
	begun, cr        bool
}

// Write reads the next bytes of the stream.
func (e *Events) Write(p []byte) {
	for len(p) > 0 {
		if e.cr && p[0] == '\n' { // the end of a line, cut in two
			e.cr, p = false, p[1:]
			continue
		}
		e.cr = false
		end := bytes.IndexAny(p, "\r\n")
		if end < 0 {
			e.add(p)
			return
		}
		e.add(p[:end])
		e.cr = p[end] == '\r'
		p = p[end+1:]
		e.endLine()
	}
}

// Close ends the stream. The lines since the last empty line are an event, and the last line needs
// no end: some servers leave both out.
func (e *Events) Close() {
	if e.length > 0 {
		e.endLine()
	}
	e.endEvent()
}

func (e *Events) add(p []byte) {
	e.length += len(p)
	if len(e.line)+len(e.data)+len(p) > e.Max {
		e.skip, e.line, e.data = true, nil, nil
	}
	if !e.skip {
		e.line = append(e.line, p...)
	}
}

func (e *Events) endLine() {
	line, empty := e.line, e.length == 0
	e.line, e.length = e.line[:0], 0
	if !e.begun {
		line, e.begun = bytes.TrimPrefix(line, mark), true
	}
	if empty {
		e.endEvent()
		return
	}
	if e.Lines {
		e.data = append(append(e.data, line...), '\n')
		e.endEvent()
		return
	}
	field, value, _ := bytes.Cut(line, []byte(":"))
	value = bytes.TrimPrefix(value, []byte(" "))
	switch {
	case e.skip:
	case string(field) == "event":
		e.name = append(e.name[:0], value...)
	case string(field) == "data":
		e.data = append(append(e.data, value...), '\n')
	}
}

func (e *Events) endEvent() {
	if e.skip {
		e.TooLong++
	} else if len(e.data) > 0 {
		e.Handle(string(e.name), e.data[:len(e.data)-1])
	}
	e.skip, e.data, e.name = false, e.data[:0], e.name[:0]
}
