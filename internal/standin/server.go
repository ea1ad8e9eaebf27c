package standin

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Server is the stand-in of one API, for one account. Its fields are set before the first request.
// It is safe for use by many goroutines.
type Server struct {
	// Now is the clock of the account; nil means time.Now.
	Now func() time.Time
	// Limits by bucket, or by bucket and part (output/claude-x). A bucket that is named has these
	// in place of its defaults.
	Limits map[string][]Limit
	// Prices are millionths of a dollar for one of something; see docs/standins.md. What has no
	// price takes no money.
	Prices map[string]float64
	// Keys are the credentials of the account; none means that any will do, but there must be one.
	Keys []string
	// Latency is how long every answer takes to begin, Pace how long each event of a stream takes.
	Latency, Pace time.Duration
	// Rows are how many things there are of each kind, so the most that a list holds; 0 means 3.
	Rows int
	// Faults are what goes wrong, such as 503@3, the first that matches a request; see FaultKinds.
	Faults []string

	name string
	api  api

	once   sync.Once
	mu     sync.Mutex // guards what follows, and what settings change
	meter  meter
	counts Counts
	zone   *time.Location
	faults []fault
	ahead  time.Duration
	seen   seen
	begun  map[string]generation // background responses that were not fetched yet
}

// Counts is what a stand-in saw.
type Counts struct {
	// Units are what was billed, by bucket.
	Units map[string]int64 `json:"units"`
	// Requests are all that arrived.
	Requests int64 `json:"requests"`
	// Denied were over a limit, Failed got another error.
	Denied int64 `json:"denied"`
	Failed int64 `json:"failed"`
	// Cut are the answers that the client did not wait for, Open are those under way.
	Cut  int64 `json:"cut"`
	Open int64 `json:"open"`
}

// api is how one API meters, answers and refuses.
type api struct {
	limits  map[string][]Limit
	prices  map[string]float64
	refills bool   // limits of a duration refill all the time
	zone    string // of calendar windows; "" is UTC
	key     func(*http.Request) string
	serve   func(*call)
	// fail answers an error in the API's own shape; deny one for a limit, or for money if it names
	// the bucket money.
	fail func(c *call, status int, message string)
	deny func(c *call, d denial)
	// failed is the bucket that a request counts in when the server fails, "" for none; every says
	// that each request counts there that names it, also if it is wrong or over a limit.
	failed func(*call) string
	every  bool
}

// youTubeName is the name of the stand-in that New does not make: see YouTube.
const youTubeName = "youtube"

var apis = map[string]api{
	"anthropic":        anthropic,
	"generic":          generic,
	"github":           github,
	"google-analytics": analytics,
	"google-maps":      googleMaps,
	"openai":           openai,
	"shopify":          shopify,
	"x":                x,
}

// Names are the APIs that there is a stand-in for, sorted.
func Names() []string { return slices.Sorted(maps.Keys(apis)) }

// New is the stand-in of an API, with its default limits.
func New(name string) (*Server, error) {
	a, ok := apis[name]
	if !ok {
		return nil, fmt.Errorf("%w: %q is not one of %s", errUnknown, name,
			strings.Join(Names(), ", "))
	}
	return &Server{name: name, api: a}, nil
}

// Check returns what is wrong with the limits, prices and faults.
func (s *Server) Check() error {
	var errs []error
	for bucket := range s.Limits {
		whole, _, _ := strings.Cut(bucket, "/")
		if _, ok := s.api.limits[whole]; !ok {
			errs = append(errs, fmt.Errorf("%s has no bucket %q: its buckets are %s", s.name,
				bucket, strings.Join(slices.Sorted(maps.Keys(s.api.limits)), ", ")))
		}
	}
	for name, price := range s.Prices {
		if !priced(price) {
			errs = append(errs, fmt.Errorf("price %s=%g: it is from 0 to 1e9", name, price))
		}
		if _, ok := s.api.prices[name]; !ok {
			errs = append(errs, fmt.Errorf("%s has no price %q: its prices are %s", s.name, name,
				cmp.Or(strings.Join(slices.Sorted(maps.Keys(s.api.prices)), ", "), "none")))
		}
	}
	_, err := parseFaults(s.name, s.Faults)
	return errors.Join(append(errs, err)...)
}

func (s *Server) start() {
	limits, prices := maps.Clone(s.api.limits), maps.Clone(s.api.prices)
	maps.Copy(limits, s.Limits)
	for name, price := range s.Prices {
		prices[name] = price
	}
	s.Prices = prices
	s.meter = meter{limits, s.api.refills, map[string][]*rate{}, map[string]int64{}}
	var err error
	if s.faults, err = parseFaults(s.name, s.Faults); err != nil {
		panic(err) // Check returns it
	}
	s.Rows = cmp.Or(s.Rows, 3)
	s.zone, _ = time.LoadLocation(s.api.zone) // it is embedded
}

// locked starts the server if need be, and locks it until the function that is returned is called.
func (s *Server) locked() (unlock func()) {
	s.once.Do(s.start)
	s.mu.Lock()
	return s.mu.Unlock
}

// now is the time of the account. The server is locked.
func (s *Server) now() time.Time {
	clock := s.Now
	if clock == nil {
		clock = time.Now
	}
	return clock().Add(s.ahead).In(s.zone)
}

// Counts are the units and requests so far.
func (s *Server) Counts() Counts {
	defer s.locked()()
	c := s.counts
	c.Units = maps.Clone(s.meter.units)
	return c
}

// maxBody is how many bytes of a request's body are read.
const maxBody = 8 << 20

// ServeHTTP answers the API, which is metered, and the controls under /standin/, which are not.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/standin/") {
		s.control(w, r)
		return
	}
	c := s.arrive(w, r)
	defer c.leave()
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	switch c.body = body; {
	case err != nil && !errors.As(err, new(*http.MaxBytesError)):
		return // the client is gone
	case !c.wait(s.Latency):
		return
	case err != nil:
		c.fail(http.StatusRequestEntityTooLarge, "the request is too large")
	case !s.knows(s.api.key(r)):
		c.fail(http.StatusUnauthorized, "the credential is not valid")
	case !c.failing():
		s.api.serve(c)
	}
}

func (s *Server) knows(key string) bool {
	return key != "" && (len(s.Keys) == 0 || slices.Contains(s.Keys, key))
}

// arrive counts a request and chooses what goes wrong with it.
func (s *Server) arrive(w http.ResponseWriter, r *http.Request) *call {
	defer s.locked()()
	s.counts.Requests++
	s.counts.Open++
	c := &call{s: s, w: w, r: r, now: s.now(), number: s.counts.Requests}
	c.fault = strike(s.faults, c.number, nil)
	return c
}

// settings are what POST /standin/settings changes; what is absent stays.
type settings struct {
	Limits  map[string][]Limit `json:"limits"`
	Prices  map[string]float64 `json:"prices"`
	Faults  *[]string          `json:"faults"` // in place of those in force
	Advance string             `json:"advance"`
}

// control answers GET /standin/counts with Counts and POST /standin/settings, which changes the
// running server and answers the same.
func (s *Server) control(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path {
	case "GET /standin/counts":
	case "POST /standin/settings":
		if err := s.change(http.MaxBytesReader(w, r.Body, 1<<20)); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s.Counts())
}

// change applies all settings or, if one of them is wrong, none.
func (s *Server) change(body io.Reader) error {
	var c settings
	in := json.NewDecoder(body)
	in.DisallowUnknownFields()
	if err := in.Decode(&c); err != nil {
		return err
	}
	ahead, err := time.ParseDuration(cmp.Or(c.Advance, "0"))
	if err != nil || ahead < 0 {
		return fmt.Errorf("advance: %q is not a duration", c.Advance)
	}
	changed := &Server{name: s.name, api: s.api, Limits: c.Limits, Prices: c.Prices}
	if c.Faults != nil {
		changed.Faults = *c.Faults
	}
	if err := changed.Check(); err != nil {
		return err
	}
	defer s.locked()()
	if c.Faults != nil {
		s.faults, _ = parseFaults(s.name, changed.Faults)
	}
	for bucket, limits := range c.Limits {
		s.meter.change(bucket, limits)
	}
	maps.Copy(s.Prices, c.Prices)
	s.ahead += ahead
	return nil
}

// change gives a bucket other limits. What was used of them before is forgotten.
func (m *meter) change(bucket string, limits []Limit) {
	m.limits[bucket] = limits
	maps.DeleteFunc(m.rates, func(name string, _ []*rate) bool {
		return name == bucket || strings.HasPrefix(name, bucket+"/")
	})
}
