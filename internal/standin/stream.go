package standin

import (
	"encoding/json"
	"net/http"
	"time"
)

// stream is an answer of server-sent events.
type stream struct {
	*call
	flush func() error
	n     int
	half  int // where the fault cut strikes
}

// stream begins an answer of about n events.
func (c *call) stream(n int) *stream {
	c.header("Content-Type", "text/event-stream; charset=utf-8")
	c.header("Cache-Control", "no-cache")
	c.w.WriteHeader(http.StatusOK)
	return &stream{call: c, flush: http.NewResponseController(c.w).Flush, half: n / 2}
}

// event sends an event, named or not, or returns false because the answer ends here.
func (s *stream) event(name string, doc any) bool {
	text, err := json.Marshal(doc)
	return err == nil && s.line(name, string(text))
}

func (s *stream) line(name, data string) bool {
	if s.n++; s.n > 1 && !s.wait(s.s.Pace) || !s.wait(0) {
		return false
	}
	if s.n > s.half {
		switch s.fault {
		case "cut":
			panic(http.ErrAbortHandler)
		case "truncated":
			return false
		case "endless":
			for s.put(": still there\n\n") && s.wait(10*time.Millisecond) {
			}
			return false
		}
	}
	if name != "" {
		name = "event: " + name + "\n"
	}
	return s.put(name + "data: " + data + "\n\n")
}

func (s *stream) put(text string) bool {
	_, err := s.w.Write([]byte(text))
	if err == nil {
		err = s.flush()
	}
	s.gone = err != nil
	return err == nil
}
