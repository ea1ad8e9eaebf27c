package youtubetest

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"time"
)

// settings are what POST /standin/settings changes; what is absent stays.
type settings struct {
	Limits      map[string]int64 `json:"limits"`       // units a day by bucket
	MinuteLimit *int64           `json:"minute_limit"` // units
	DaysBack    *int             `json:"days_back"`
	// as ParseFaults reads them; they replace those in force
	Faults *[]string `json:"faults"`
	// a Go duration by which the server's clock is put forward
	Advance string `json:"advance"`
}

// control answers GET /standin/counts with Counts and POST /standin/settings, which changes the
// running server and answers the same. Neither is metered nor asks for a key.
func (s *Server) control(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path {
	case "GET /standin/counts":
	case "POST /standin/settings":
		if err := s.change(r); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	default:
		http.NotFound(w, r)
		return
	}
	writeBody(w, http.StatusOK, encode(s.Counts(), true))
}

// change applies all settings of the request or, if one of them is wrong, none.
func (s *Server) change(r *http.Request) error {
	var c settings
	body := json.NewDecoder(r.Body)
	body.DisallowUnknownFields()
	if err := body.Decode(&c); err != nil {
		return err
	}
	ahead, err := time.ParseDuration(cmp.Or(c.Advance, "0"))
	if err != nil {
		return fmt.Errorf("advance: %w", err)
	}
	if c.Faults != nil {
		faults, err := ParseFaults(*c.Faults...)
		if err != nil {
			return err
		}
		s.SetFaults(faults...)
	}
	defer s.locked()()
	maps.Copy(s.meter.limits, c.Limits)
	if c.MinuteLimit != nil {
		s.MinuteLimit = *c.MinuteLimit
	}
	if c.DaysBack != nil {
		s.DaysBack = *c.DaysBack
	}
	s.ahead += ahead
	return nil
}
