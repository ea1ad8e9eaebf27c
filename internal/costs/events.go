package costs

import "bytes"

// eventReader reads a stream of server-sent events or JSON lines as it passes. It keeps at most one
// event in memory, and skips events longer than max.
type eventReader struct {
	max    int  // bytes of an event
	lines  bool // each line is the data of an event
	handle func(name string, data []byte)

	tooLong int // number of skipped events

	line, data, name []byte
	length           int  // of the line, including dropped bytes
	skip             bool // the rest of the event, because it is too long
	begun, cr        bool
}

// Write reads the next bytes of the stream. It returns no error.
func (e *eventReader) Write(p []byte) (int, error) {
	size := len(p)
	for len(p) > 0 {
		if e.cr && p[0] == '\n' { // the end of a line, cut in two
			e.cr, p = false, p[1:]
			continue
		}
		e.cr = false
		end := bytes.IndexAny(p, "\r\n")
		if end < 0 {
			e.add(p)
			break
		}
		e.add(p[:end])
		e.cr = p[end] == '\r'
		p = p[end+1:]
		e.endLine()
	}
	return size, nil
}

// close ends the stream. The lines since the last empty line are an event, even if the last line is
// not terminated, because some servers omit both.
func (e *eventReader) close() {
	if e.length > 0 {
		e.endLine()
	}
	e.endEvent()
}

func (e *eventReader) add(p []byte) {
	e.length += len(p)
	if len(e.line)+len(e.data)+len(p) > e.max {
		e.skip, e.line, e.data = true, nil, nil
	}
	if !e.skip {
		e.line = append(e.line, p...)
	}
}

func (e *eventReader) endLine() {
	line, empty := e.line, e.length == 0
	e.line, e.length = e.line[:0], 0
	if !e.begun {
		line, e.begun = bytes.TrimPrefix(line, byteOrderMark), true
	}
	if empty {
		e.endEvent()
		return
	}
	if e.lines {
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

func (e *eventReader) endEvent() {
	if e.skip {
		e.tooLong++
	} else if len(e.data) > 0 {
		e.handle(string(e.name), e.data[:len(e.data)-1])
	}
	e.skip, e.data, e.name = false, e.data[:0], e.name[:0]
}

// byteOrderMark is sent by some servers before their text.
var byteOrderMark = []byte("\ufeff")

// separator precedes each value of application/json-seq.
const separator = 0x1e

// trimBody returns the text of a response without a byte order mark, white space around it and
// separators.
func trimBody(data []byte) []byte {
	data = bytes.TrimSpace(bytes.TrimPrefix(bytes.TrimSpace(data), byteOrderMark))
	if bytes.HasPrefix(data, []byte{separator}) {
		data = bytes.ReplaceAll(data, []byte{separator}, []byte{' '})
	}
	return data
}
