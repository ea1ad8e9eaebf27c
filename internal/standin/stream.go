package standin

import (
	"encoding/json"
	"maps"
	"net/http"
	"time"
)

// stream is a response of server-sent events.
type stream struct {
	*call
	n, half  int    // events sent; where the faults cut, truncated and endless strike
	ended    bool   // nothing more is sent
	template object // members of every event
}

// stream begins a response of about n events.
func (c *call) stream(n int) *stream {
	c.header("Content-Type", "text/event-stream; charset=utf-8")
	c.header("Cache-Control", "no-cache")
	c.w.WriteHeader(http.StatusOK)
	return &stream{call: c, half: n / 2}
}

// events sends the events that the spec has for a stream, for each piece of the text those that
// come for each.
func (s *stream) events(name string, g generation, values object) {
	for _, e := range s.s.api.Streams[name] {
		pieces := []string{""}
		if e.Each {
			pieces = g.pieces()
		}
		for _, piece := range pieces {
			values["piece"], values["number"] = piece, s.n
			s.event(s.expand(e.Name, values), s.fill(e.Data, values).(object))
		}
	}
}

// event sends an event unless the response has ended. name may be "".
func (s *stream) event(name string, doc object) {
	all := maps.Clone(doc)
	maps.Copy(all, s.template)
	if name != "" {
		all["type"] = name
	}
	text, _ := json.Marshal(all) // our own types cannot fail
	s.line(name, string(text))
}

func (s *stream) line(name, data string) {
	if s.n++; s.ended || s.n > 1 && !s.wait(s.s.Pace) || !s.wait(0) {
		s.ended = true
		return
	}
	if s.n > s.half {
		switch s.fault {
		case "cut":
			panic(http.ErrAbortHandler)
		case "truncated":
			s.ended = true
		case "endless":
			for !s.ended && s.wait(10*time.Millisecond) {
				s.put(": still there\n\n")
			}
			s.ended = true
		}
	}
	if name != "" {
		name = "event: " + name + "\n"
	}
	s.put(name + "data: " + data + "\n\n")
}

func (s *stream) put(text string) {
	if s.ended {
		return
	}
	_, err := s.w.Write([]byte(text))
	if err == nil {
		err = http.NewResponseController(s.w).Flush()
	}
	s.disconnected = err != nil
	s.ended = s.disconnected
}
