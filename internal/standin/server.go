package standin

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
)

// Server is the stand-in of one API, for one account. Its fields are set before the first request.
// It is safe for concurrent use.
type Server struct {
	// Now is the clock of the account; nil means time.Now.
	Now func() time.Time
	// Limits are by bucket, or by bucket and part (output/claude-x). They replace the defaults of
	// their buckets.
	Limits map[string][]Limit
	// Prices are in millionths of a dollar, by the names in docs/standins.md. The default is 0.
	Prices map[string]float64
	// Keys are the credentials of the account. If empty, any is valid, but a request needs one.
	Keys []string
	// AdminKey is the key for bills and limits. If it is "", any of Keys is valid.
	AdminKey string
	// Latency delays the beginning of every response, Pace each event of a stream.
	Latency, Pace time.Duration
	// Rows is the number of objects of each kind, and the maximum length of a list; 0 means 3.
	Rows int
	// Faults are the faults to inject, such as 503@3; the first one that matches a request
	// applies. See FaultKinds.
	Faults []string

	name string
	api  api

	once     sync.Once
	patterns []*regexp.Regexp // of the routes

	mu     sync.Mutex // guards the fields below, and Prices
	meter  meter
	counts Counts
	bills  map[figure]float64
	zone   *time.Location
	faults []fault
	ahead  time.Duration   // added to the clock
	jobs   map[string]*job // by ID
	files  map[string]*upload
}

// Counts holds the units and requests of a stand-in.
type Counts struct {
	// Units are the billed units by bucket.
	Units map[string]int64 `json:"units"`
	// Requests counts all requests.
	Requests int64 `json:"requests"`
	// Denied counts the requests over a limit, Failed those with another error.
	Denied int64 `json:"denied"`
	Failed int64 `json:"failed"`
	// Cut counts the responses whose client disconnected, Open those under way.
	Cut  int64 `json:"cut"`
	Open int64 `json:"open"`
}

// api is how one API meters, responds and refuses.
type api struct {
	spec
	routes []route
	// bucket returns the request's part of a bucket of the spec. If bucket is nil, buckets have no
	// parts.
	bucket func(c *call, name string) string

	// serve sends the response to a request. It must check the credential and the fault, and read
	// the body.
	serve func(*call)
	// counts returns the body of GET /standin/counts, and change applies that of POST
	// /standin/settings.
	counts func() any
	change func(body io.Reader) error
}

// route serves the requests that match a pattern: a regular expression for "GET /path" in which
// {name} matches one segment of the path.
type route struct {
	pattern string
	serve   func(*call)
	part    string // the endpoint's part of a bucket, if it has its own
}

// segment finds the names in patterns.
var segment = regexp.MustCompile(`\{[a-z]+\}`)

// compile compiles a route's pattern.
func compile(pattern string) *regexp.Regexp {
	return regexp.MustCompile("(?s)^(?:" + segment.ReplaceAllString(pattern, "([^/]+)") + ")$")
}

// youTubeName names the stand-in that New does not create: see YouTube.
const youTubeName = "youtube"

var apis = map[string]api{
	"anthropic": {routes: anthropicRoutes, bucket: (*call).modelBucket},
	"azure-openai": modelAPI("POST /openai/deployments/{deployment}/chat/completions",
		(*call).chat),
	"bedrock": modelAPI("POST /model/{model}/converse", (*call).generateContent),
	"gemini": modelAPI("POST /v1(?:beta)?/models/{model}:(?:streamG|g)enerateContent",
		(*call).generateContent),
	"generic":          {routes: genericRoutes},
	"github":           {routes: githubRoutes, bucket: githubResource},
	"google-analytics": {routes: analyticsRoutes, bucket: analyticsPart},
	"google-maps":      {routes: mapsRoutes},
	"mistral":          modelAPI("POST /v1/chat/completions", (*call).chat),
	"notion":           {routes: anyRequest},
	"openai":           {routes: openAIRoutes, bucket: (*call).modelBucket},
	"openrouter":       modelAPI("POST /api/v1/chat/completions", (*call).chat),
	"reddit":           {routes: anyRequest},
	"shopify":          {routes: shopifyRoutes},
	"slack":            {routes: anyRequest, bucket: slackBucket},
	"x": {routes: xRoutes, bucket: func(c *call, name string) string {
		return part(name, c.route.part)
	}},
}

// Names returns the APIs that New accepts, sorted.
func Names() []string { return slices.Sorted(maps.Keys(apis)) }

// New returns the stand-in of an API, with its default limits.
func New(name string) (*Server, error) {
	a, ok := apis[name]
	if !ok {
		return nil, fmt.Errorf("no such stand-in: %q is not one of %s", name,
			strings.Join(Names(), ", "))
	}
	s := &Server{name: name, api: a}
	s.api.spec, s.api.serve = specs()[name], (*call).answer
	s.api.counts, s.api.change = func() any { return s.Counts() }, s.change
	return s, nil
}

// Check validates the limits, prices and faults.
func (s *Server) Check() error {
	var errs []error
	for bucket := range s.Limits {
		whole, _, _ := strings.Cut(bucket, "/")
		if _, ok := s.api.Limits[whole]; !ok {
			errs = append(errs, fmt.Errorf("%s has no bucket %q: its buckets are %s", s.name,
				bucket, strings.Join(slices.Sorted(maps.Keys(s.api.Limits)), ", ")))
		}
	}
	for name, price := range s.Prices {
		if !priced(price) {
			errs = append(errs, fmt.Errorf("price %s=%g: must be from 0 to 1e9", name, price))
		}
		if _, ok := s.api.Prices[name]; !ok {
			errs = append(errs, fmt.Errorf("%s has no price %q: its prices are %s", s.name, name,
				cmp.Or(strings.Join(slices.Sorted(maps.Keys(s.api.Prices)), ", "), "none")))
		}
	}
	_, err := parseFaults(s.name, s.Faults)
	return errors.Join(append(errs, err)...)
}

func (s *Server) start() {
	limits, prices := maps.Clone(s.api.Limits), maps.Clone(s.api.Prices)
	maps.Copy(limits, s.Limits)
	maps.Copy(prices, s.Prices)
	s.Prices = prices
	s.meter = meter{limits, s.api.Refills, map[string][]*rate{}, map[string]int64{}}
	s.bills = map[figure]float64{}
	s.Rows = cmp.Or(s.Rows, 3)
	s.jobs, s.files = map[string]*job{}, map[string]*upload{}
	for _, r := range s.api.routes {
		s.patterns = append(s.patterns, compile(r.pattern))
	}
	s.zone, _ = time.LoadLocation(s.api.Zone) // the zone data are embedded
	var err error
	if s.faults, err = parseFaults(s.name, s.Faults); err != nil {
		panic(err) // Check would have returned it
	}
}

// locked starts the server if necessary and locks it. The caller calls unlock.
func (s *Server) locked() (unlock func()) {
	s.once.Do(s.start)
	s.mu.Lock()
	return s.mu.Unlock
}

// now returns the account's time. The caller holds the lock.
func (s *Server) now() time.Time {
	now := time.Now()
	if s.Now != nil {
		now = s.Now()
	}
	return now.Add(s.ahead).In(s.zone)
}

// Counts returns the units and requests so far.
func (s *Server) Counts() Counts {
	defer s.locked()()
	c := s.counts
	c.Units = maps.Clone(s.meter.units)
	return c
}

// maxBody is the maximum size of a request's body.
const maxBody = 8 << 20

// ServeHTTP serves the metered API, and unmetered the controls under /standin/.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/standin/") {
		s.control(w, r)
		return
	}
	c := s.arrive(w, r)
	defer c.leave()
	for name, value := range s.api.Headers {
		c.header(name, c.expand(value, nil))
	}
	if !c.wait(s.Latency) {
		return
	}
	c.serve(s.api.serve)
}

// answer reads the body, checks the credential and calls the route's handler.
func (c *call) answer() {
	var err error
	if c.route.pattern != uploadPattern { // its handler reads the body as a stream
		c.body, err = io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, maxBody))
	}
	required, key := c.s.api.Requires, c.s.api.key(c.r)
	valid := key != "" && (len(c.s.Keys) == 0 || slices.Contains(c.s.Keys, key))
	if c.s.AdminKey != "" && strings.HasPrefix(c.r.URL.Path, "/v1/organization") {
		valid = key == c.s.AdminKey // the paths of bills and limits
	}
	switch {
	case errors.As(err, new(*http.MaxBytesError)):
		c.fail("413", nil)
	case err != nil:
		return // the client has disconnected
	case !valid:
		c.fail("401", nil)
	}
	c.failEarly()
	if required != "" && c.r.Header.Get(required) == "" {
		c.fail("no header", nil)
	}
	if c.route.serve == nil {
		c.fail("404", nil)
	}
	c.route.serve(c)
}

// arrive counts a request and chooses its route and its fault.
func (s *Server) arrive(w http.ResponseWriter, r *http.Request) *call {
	defer s.locked()()
	s.counts.Requests++
	s.counts.Open++
	c := &call{s: s, w: w, r: r, now: s.now(), number: s.counts.Requests}
	for i, pattern := range s.patterns {
		m := pattern.FindStringSubmatch(r.Method + " " + r.URL.Path)
		if m != nil && c.match == nil {
			c.route, c.match = s.api.routes[i], m
		}
	}
	c.fault = strike(s.faults, c)
	return c
}

// control serves GET /standin/counts, and POST /standin/settings, which changes the running server.
// Both return the counts.
func (s *Server) control(w http.ResponseWriter, r *http.Request) {
	switch r.Method + " " + r.URL.Path {
	case "GET /standin/counts":
	case "POST /standin/settings":
		if err := s.api.change(http.MaxBytesReader(w, r.Body, 1<<20)); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
	default:
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(s.api.counts())
}

// controls are the settings that all stand-ins have. Absent fields stay unchanged.
type controls struct {
	Faults  *[]string `json:"faults"`  // replaces Server.Faults
	Advance string    `json:"advance"` // Go duration to move the clock forward by
}

// settings is the body of POST /standin/settings.
type settings struct {
	controls
	Limits map[string][]Limit `json:"limits"`
	Prices map[string]float64 `json:"prices"`
	// Used is the use of another program to bill, by day, model and name of the figure.
	Used map[string]map[string]map[string]float64 `json:"used"`
}

// decode reads settings and rejects unknown fields.
func decode(body io.Reader, into any) error {
	in := json.NewDecoder(body)
	in.DisallowUnknownFields()
	return in.Decode(into)
}

func (s *Server) change(body io.Reader) error {
	var c settings
	if err := decode(body, &c); err != nil {
		return err
	}
	changed := &Server{name: s.name, api: s.api, Limits: c.Limits, Prices: c.Prices}
	if err := changed.Check(); err != nil {
		return err
	}
	return s.apply(c.controls, func() {
		for bucket, limits := range c.Limits {
			s.meter.change(bucket, limits)
		}
		maps.Copy(s.Prices, c.Prices)
		for day, models := range c.Used {
			for model, figures := range models {
				for name, amount := range figures {
					s.bills[figure{day, model, name}] += amount
				}
			}
		}
	})
}

// apply changes the faults and the clock, and calls change, with the server locked. If a setting is
// invalid, it changes nothing.
func (s *Server) apply(c controls, change func()) error {
	ahead, err := time.ParseDuration(cmp.Or(c.Advance, "0"))
	if err != nil || ahead < 0 {
		return fmt.Errorf("advance: %q is not a duration", c.Advance)
	}
	var faults []fault
	if c.Faults != nil {
		if faults, err = parseFaults(s.name, *c.Faults); err != nil {
			return err
		}
	}
	defer s.locked()()
	if c.Faults != nil {
		s.faults = faults
	}
	s.ahead += ahead
	change()
	return nil
}
