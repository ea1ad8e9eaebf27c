package standin

import (
	"encoding/json"
	"maps"
	"net/http"
)

// stream collects the events of a response.
type stream struct {
	*call
	parts    [][]byte
	template object // members of every event
}

// send sends the events.
func (s *stream) send() {
	s.header("Content-Type", "text/event-stream; charset=utf-8")
	s.header("Cache-Control", "no-cache")
	s.w.WriteHeader(http.StatusOK)
	s.write(s.parts, s.s.Pace, ": still there\n\n")
}

// sendStream sends a stream of the spec.
func (c *call) sendStream(name string, g generation, values object) {
	out := stream{call: c}
	out.events(name, g, values)
	out.send()
}

// events adds the events that the spec has for a stream, for each piece of the text those that
// come for each.
func (s *stream) events(name string, g generation, values object) {
	for _, e := range s.s.api.Streams[name] {
		pieces := []string{""}
		if e.Each {
			pieces = g.pieces()
		}
		for _, piece := range pieces {
			values["piece"], values["number"] = piece, len(s.parts)
			s.event(s.expand(e.Name, values), s.fill(e.Data, values).(object))
		}
	}
}

// event adds an event. name may be "".
func (s *stream) event(name string, doc object) {
	all := maps.Clone(doc)
	maps.Copy(all, s.template)
	line := ""
	if name != "" {
		all["type"], line = name, "event: "+name+"\n"
	}
	text, _ := json.Marshal(all) // our own types cannot fail
	s.parts = append(s.parts, []byte(line+"data: "+string(text)+"\n\n"))
}
