package standin

import (
	"io"
	"maps"
	"net/http"
	"sync"
	"time"
)

// YouTube is an http.Handler that simulates the YouTube Data API, and Google's metering of it, for
// one project. Its fields are set before the first request. The zero value serves generated charts
// under the default limits and accepts any key. It is safe for concurrent use.
type YouTube struct {
	// Now is the clock for Pacific days and minutes; nil means time.Now.
	Now func() time.Time
	// Charts are the charts to serve; nil means Generator{}.Charts().
	Charts *Charts
	// DaysBack selects the day of Charts: 0 is its latest, 1 the one before.
	DaysBack int
	// Limits are the units per Pacific day by bucket. The defaults are: default 10,000,
	// search_list 100, video_insert 100, video_batch_get_stats 10,000. A limit of 0 denies all.
	Limits map[string]int64
	// MinuteLimit is the units per minute over all buckets; 0 means none.
	MinuteLimit int64
	// Keys are the project's API keys. If empty, any key is valid, but a request needs one.
	Keys []string
	// Tokens are users' OAuth tokens. A request needs a token or a key. If Tokens is empty, any
	// token is valid; otherwise, every write needs one.
	Tokens []string
	// Latency is added to every response.
	Latency time.Duration
	// PageMove is the number of places that a chart moves down at each page read: the last
	// PageMove IDs of a page are repeated at the beginning of the next, and as many never appear.
	PageMove int
	// Faults are the faults to inject, such as 503@3 or hang:BR#2; the first one that matches a
	// request applies. See FaultKinds.
	Faults []string
	// Cloud serves the stand-in's own metering.
	Cloud Cloud

	once     sync.Once
	engine   *Server           // its lock guards the fields below
	counts   YouTubeCounts     // except for those that the engine counts
	reads    map[string]int    // pages read, by chart
	sessions map[string]*media // resumable uploads, by upload_id
	usage    map[use]int64     // units, for Cloud
	tokens   map[string]granted
}

// YouTubeCounts holds the units and requests of a YouTube stand-in. Requests is the sum of the
// metered requests in ByMethod, Rejected, Refused, NotFound and Continued.
type YouTubeCounts struct {
	// Units are the units of the current Pacific day, by bucket, Total those of all days.
	Units map[string]int64 `json:"units"`
	Total map[string]int64 `json:"total"`
	// Requests counts all requests to the API's paths, ByMethod the metered ones.
	Requests int64            `json:"requests"`
	ByMethod map[string]int64 `json:"by_method"`
	// Rejected requests were over a daily or minute limit, Refused ones had no valid key,
	// NotFound ones matched no method. They took no units.
	Rejected int64 `json:"rejected"`
	Refused  int64 `json:"refused"`
	NotFound int64 `json:"not_found"`
	// Continued counts the requests of resumable uploads after the first. They took no units.
	Continued int64 `json:"continued"`
	// KeyInURL counts requests with an API key in the URL, or in the form of an overridden GET.
	KeyInURL int64 `json:"key_in_url"`
	// Day is the Pacific day of Units, as 2006-01-02.
	Day string `json:"day"`
}

// minuteBucket counts the units of all buckets, for the limit per minute. Counts omits it.
const minuteBucket = "minute"

func (s *YouTube) start() {
	if s.Charts == nil {
		s.Charts = defaultCharts()
	}
	clock := func() time.Time { // Now may be set later
		if s.Now == nil {
			return time.Now()
		}
		return s.Now()
	}
	limits := map[string][]Limit{}
	if s.MinuteLimit > 0 {
		limits[minuteBucket] = []Limit{{Units: s.MinuteLimit, Calendar: "minute"}}
	}
	for bucket, units := range s.Limits {
		limits[bucket] = perDay(units)
	}
	s.engine = &Server{Now: clock, Latency: s.Latency, Faults: s.Faults, Limits: limits,
		name: youTubeName, api: api{spec: specs()[youTubeName], serve: s.serve,
			change: s.change, counts: func() any { return s.Counts() }}}
	s.counts.ByMethod = map[string]int64{}
	s.reads, s.sessions = map[string]int{}, map[string]*media{}
	s.usage, s.tokens = map[use]int64{}, map[string]granted{}
}

func perDay(units int64) []Limit { return []Limit{{Units: units, Calendar: "day"}} }

// Check validates the faults.
func (s *YouTube) Check() error {
	_, err := parseFaults(youTubeName, s.Faults)
	return err
}

// locked starts the server if necessary and locks it. The caller calls unlock.
func (s *YouTube) locked() (unlock func()) {
	s.once.Do(s.start)
	return s.engine.locked()
}

// Counts returns the units and requests so far.
func (s *YouTube) Counts() YouTubeCounts {
	defer s.locked()()
	c, now, m := s.counts, s.engine.now(), &s.engine.meter
	c.Day, c.Units, c.Total = now.Format(time.DateOnly), map[string]int64{}, maps.Clone(m.units)
	delete(c.Total, minuteBucket)
	for bucket := range c.Total {
		for _, r := range m.ratesOf(bucket) {
			if r.turn(now); r.used > 0 {
				c.Units[bucket] = int64(r.used)
			}
		}
	}
	c.ByMethod = maps.Clone(c.ByMethod)
	c.Requests, c.Rejected = s.engine.counts.Requests, s.engine.counts.Denied
	return c
}

// SetLimit changes a bucket's daily units while the server runs.
func (s *YouTube) SetLimit(bucket string, units int64) {
	defer s.locked()()
	s.setLimit(bucket, units)
}

// setLimit changes a bucket's limit and keeps its use. The caller holds the lock.
func (s *YouTube) setLimit(bucket string, units int64) {
	s.engine.meter.limits[bucket] = perDay(units)
	for _, r := range s.engine.meter.ratesOf(bucket) {
		r.Units = units
	}
}

// SetFaults replaces the faults while the server runs. It panics if one is invalid.
func (s *YouTube) SetFaults(specs ...string) {
	s.once.Do(s.start)
	if err := s.engine.apply(controls{Faults: &specs}, func() {}); err != nil {
		panic(err)
	}
}

// ServeHTTP serves the metered API under /youtube/v3/, and unmetered the controls under /standin/
// and the paths of Cloud.
func (s *YouTube) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.once.Do(s.start)
	if s.serveCloud(w, r) {
		return
	}
	r, err := overridden(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	s.engine.ServeHTTP(w, r)
}

func (s *YouTube) serve(c *call) {
	q := newQuery(c)
	if q.Has("key") {
		c.count(&s.counts.KeyInURL)
	}
	if isUpload(c.r) && q.Has("upload_id") {
		c.count(&s.counts.Continued)
		s.continueUpload(c)
		return
	}
	m := methodOf(c.r)
	if m.id == "" {
		c.count(&s.counts.NotFound)
		c.html(http.StatusNotFound, "Not Found")
		return
	}
	if problem := s.credentialProblem(c.r, m); problem != "" {
		c.count(&s.counts.Refused)
		c.fail(problem, nil)
	}
	fault := c.s.api.Faults[c.fault]
	c.failIf(fault.Refuses, m, &s.counts.Refused)
	c.failIf(fault.Rejects, m, &c.s.counts.Denied)
	s.charge(c, m)
	c.replace(m)
	if isUpload(c.r) {
		s.upload(c, m, q)
	} else if served, ok := s.served()[m.id]; ok {
		c.youTube(served.list(q))
	} else {
		c.youTube(m.emptyAnswer())
	}
}

// charge charges the method's units. If they do not fit, it charges none and sends the error of the
// limit: a 403 for the daily limit of the default bucket, a 429 for others.
func (s *YouTube) charge(c *call, m method) {
	d := c.take([]cost{one(m.bucket, m.units), one(minuteBucket, m.units)})
	if d != nil {
		c.count(&c.s.counts.Denied)
		if d.bucket == "default" {
			c.fail("quotaExceeded", nil)
		}
		c.failRate(m.bucket, d.limit.Calendar, d.limit.Units)
	}
	defer s.locked()()
	s.counts.ByMethod[m.id]++
	s.usage[use{c.now.Unix() / 60, m.bucket}] += m.units
}

// day returns the index of the charts' day to serve.
func (s *YouTube) day() int { return max(0, s.Charts.Days()-1-s.DaysBack) }

// youTubeSettings is the body of POST /standin/settings.
type youTubeSettings struct {
	controls
	Limits map[string]int64 `json:"limits"` // units per day by bucket
}

func (s *YouTube) change(body io.Reader) error {
	var c youTubeSettings
	if err := decode(body, &c); err != nil {
		return err
	}
	return s.engine.apply(c.controls, func() {
		for bucket, units := range c.Limits {
			s.setLimit(bucket, units)
		}
	})
}

// failRate sends the 429 of a limit per day or per minute.
func (c *call) failRate(bucket, per string, limit int64) {
	name := c.s.api.Metrics[bucket]
	quotaLimit, unit := name[1]+"PerDayPerProject", "1/d/{project}"
	if per == "minute" {
		quotaLimit, unit = name[1]+"PerMinutePerProject", "1/min/{project}"
	}
	c.fail("rateLimitExceeded", object{"metric": name[0], "period": per, "bucket": bucket,
		"quota_limit": quotaLimit, "unit": unit, "limit": decimal(limit)})
}

// failIf sends the error with that name and adds one to counter, unless it is nil. It does nothing
// if name is "".
func (c *call) failIf(name string, m method, counter *int64) {
	if name == "" {
		return
	}
	if counter != nil {
		c.count(counter)
	}
	if name == "minute" || name == "day" {
		c.failRate(m.bucket, name, 1)
	}
	c.fail(name, object{"called": m.id})
}

// replace sends the response of a fault that replaces the real one, and ends the handler.
func (c *call) replace(m method) {
	c.failIf(c.s.api.Faults[c.fault].Replaces, m, nil)
	switch c.fault {
	case "200-html":
		c.html(200, "Sorry")
	case "500-html":
		c.html(500, "Server Error")
	case "500-null":
		c.json(500, object{"error": object{"code": 500, "message": nil}})
	case "drop", "hang":
		c.dropResponse()
	default:
		return
	}
	panic(errEnded)
}
