package standin

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// Server is an http.Handler that acts like the YouTube Data API for one project. Its fields are
// set before the first request. The zero value serves generated charts under the default limits
// and accepts any key. It is safe for concurrent use.
type YouTube struct {
	// Now is the clock for Pacific days and minutes; nil means time.Now.
	Now func() time.Time
	// Charts are the charts to serve; nil means Generator{}.Charts().
	Charts *Charts
	// DaysBack selects the day of Charts: 0 is its latest, 1 the one before.
	DaysBack int
	// Limits are the units per Pacific day by bucket. The defaults are: default 10,000,
	// search_list 100, video_insert 100, video_batch_get_stats 10,000. Zero is a limit.
	Limits map[string]int64
	// MinuteLimit is the units per minute over all buckets; 0 means none.
	MinuteLimit int64
	// Keys are the project's API keys. If empty, any key is valid, but a request needs one.
	Keys []string
	// Tokens are users' OAuth tokens, each as good as a key. If empty, any token is valid. If
	// not, every write needs one.
	Tokens []string
	// Latency is added to every response.
	Latency time.Duration
	// PageMove is how many places a chart moves down at each page read: the last PageMove IDs of
	// a page come again at the head of the next, and as many never appear.
	PageMove int
	// Faults are the faults to inject, such as 503@3 or hang:BR#2; the first one that matches a
	// request applies. See FaultKinds.
	Faults []string
	// Cloud serves the stand-in's own metering.
	Cloud Cloud

	once     sync.Once
	mu       sync.Mutex // guards the fields below, and those that settings change
	meter    youTubeMeter
	faults   []fault
	reads    map[string]int    // pages read, by chart
	sessions map[string]*media // resumable uploads, by upload_id
	ahead    time.Duration     // added to the clock
}

// Check returns what is wrong with the faults.
func (s *YouTube) Check() error {
	_, err := parseFaults(youTubeName, s.Faults)
	return err
}

func (s *YouTube) start() {
	if s.Charts == nil {
		s.Charts = defaultCharts()
	}
	s.meter = newMeter(s.Limits)
	var err error
	if s.faults, err = parseFaults(youTubeName, s.Faults); err != nil {
		panic(err) // Check returns it
	}
	s.reads, s.sessions = map[string]int{}, map[string]*media{}
}

// locked starts the server if necessary and locks it. The caller calls unlock.
func (s *YouTube) locked() (unlock func()) {
	s.once.Do(s.start)
	s.mu.Lock()
	return s.mu.Unlock
}

// ServeHTTP serves the metered API under /youtube/v3/, and unmetered the controls under /standin/
// and the paths of Cloud.
func (s *YouTube) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if strings.HasPrefix(r.URL.Path, "/standin/") {
		s.control(w, r)
		return
	}
	if s.cloud(w, r) {
		return
	}
	if r.URL.Path == "/token" && len(s.Cloud.Accounts) > 0 {
		s.token(w, r)
		return
	}
	r, err := overridden(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	number := s.arrive(r.URL.Query().Has("key"))
	if !pause(r, s.Latency) {
		return
	}
	if isUpload(r) && r.URL.Query().Has("upload_id") {
		s.count(&s.meter.Continued)
		s.continueUpload(w, r, s.nextFault(r, number))
		return
	}
	method, ok := methodOf(r)
	if !ok {
		s.count(&s.meter.NotFound)
		writeHTML(w, http.StatusNotFound, "Not Found")
		return
	}
	if e := s.credentialError(r, method); e != nil {
		s.count(&s.meter.Refused)
		writeError(w, e)
		return
	}
	fault := s.nextFault(r, number)
	if e := s.admit(method, fault); e != nil {
		writeError(w, e)
		return
	}
	s.deliver(w, r, method, fault)
}

// admit charges the request to the project, or returns why not.
func (s *YouTube) admit(m method, f youTubeFault) *apiError {
	switch f.effect() {
	case refuses:
		s.count(&s.meter.Refused)
		return f.apiError(m)
	case rejects:
		s.count(&s.meter.Rejected)
		return f.apiError(m)
	}
	return s.charge(m)
}

// deliver answers a charged request, as far as the fault allows.
func (s *YouTube) deliver(w http.ResponseWriter, r *http.Request, m method, f youTubeFault) {
	if f.effect() == replaces {
		f.replace(w, r, m)
		return
	}
	if isUpload(r) {
		s.upload(w, r, m, f)
		return
	}
	body := m.emptyAnswer()
	if route, ok := routes[m.id]; ok {
		q := newQuery(r)
		q.checkParts(route.parts)
		if body = route.serve(s, q); q.err != nil {
			writeError(w, q.err)
			return
		}
	}
	f.write(w, r, body)
}

func (s *YouTube) now() time.Time {
	clock := time.Now
	if s.Now != nil {
		clock = s.Now
	}
	now := clock()
	defer s.locked()()
	return now.Add(s.ahead)
}

// day returns the index of the charts' day to serve.
func (s *YouTube) day() int {
	defer s.locked()()
	return max(0, s.Charts.Days()-1-s.DaysBack)
}

// pause waits for d. It returns false if the client disconnects first.
func pause(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	select {
	case <-time.After(d):
		return true
	case <-r.Context().Done():
		return false
	}
}

// youTubeSettings is the body of POST /standin/settings. Absent fields stay unchanged.
type youTubeSettings struct {
	Limits      map[string]int64 `json:"limits"`       // units per day by bucket
	MinuteLimit *int64           `json:"minute_limit"` // units
	DaysBack    *int             `json:"days_back"`
	// in the form of YouTube.Faults; they replace the current ones
	Faults *[]string `json:"faults"`
	// one of CloudFaults, or "" for none
	CloudFault *string `json:"cloud_fault"`
	// a Go duration by which the server's clock is advanced
	Advance string `json:"advance"`
}

// control serves GET /standin/counts, which returns Counts, and POST /standin/settings, which
// changes the running server and returns the same. Both are unmetered and need no key.
func (s *YouTube) control(w http.ResponseWriter, r *http.Request) {
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

// change applies all settings of the request, or none if one is invalid.
func (s *YouTube) change(r *http.Request) error {
	var c youTubeSettings
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
		if err := (&YouTube{Faults: *c.Faults}).Check(); err != nil {
			return err
		}
		s.SetFaults(*c.Faults...)
	}
	if c.CloudFault != nil && *c.CloudFault != "" &&
		!slices.Contains(CloudFaults(), *c.CloudFault) {
		return fmt.Errorf("cloud_fault: %q is not one of %s", *c.CloudFault,
			strings.Join(CloudFaults(), ", "))
	}
	defer s.locked()()
	maps.Copy(s.meter.limits, c.Limits)
	if c.MinuteLimit != nil {
		s.MinuteLimit = *c.MinuteLimit
	}
	if c.DaysBack != nil {
		s.DaysBack = *c.DaysBack
	}
	if c.CloudFault != nil {
		s.Cloud.Fault = *c.CloudFault
	}
	s.ahead += ahead
	return nil
}
