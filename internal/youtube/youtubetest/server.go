package youtubetest

import (
	"net/http"
	"strings"
	"sync"
	"time"
)

// Server answers as the YouTube Data API does, for one project. Its fields are set once, before the
// first request; the zero value serves generated charts under the default limits and accepts any
// key. It is safe for use by many goroutines.
type Server struct {
	// Now is the clock that says which Pacific day and which minute it is; nil means time.Now.
	Now func() time.Time
	// Charts is what is served; nil means Generator{}.Charts().
	Charts *Charts
	// DaysBack chooses the day of Charts: 0 is its latest, 1 the one before.
	DaysBack int
	// Limits are the units a Pacific day for each bucket. A bucket not named keeps its default:
	// default 10,000, search_list 100, video_insert 100, video_batch_get_stats 10,000. Zero is a
	// limit.
	Limits map[string]int64
	// MinuteLimit is the units a minute over all buckets; 0 means no such limit.
	MinuteLimit int64
	// Keys are the API keys of the project; none means that any key will do, but there must be one.
	Keys []string
	// Tokens are the OAuth tokens of users, any of which is as good as a key; none means that any
	// will do. With them, what writes is asked for one.
	Tokens []string
	// Latency is how long every answer takes.
	Latency time.Duration
	// PageMove is by how many places a chart moves down each time one of its pages is read: the
	// last PageMove ids of a page come again at the head of the next, and as many are never seen.
	PageMove int
	// Faults are what goes wrong, the first that matches a request; see ParseFaults.
	Faults []Fault

	once     sync.Once
	charts   *Charts
	meter    meter
	faults   faults
	moves    moves
	sessions sessions
	setting  setting
}

// setting is what can be changed while the server runs.
type setting struct {
	mu       sync.Mutex
	daysBack int
	ahead    time.Duration // what was added to the clock
}

// ServeHTTP answers the API under /youtube/v3/, which is metered, and the controls under /standin/,
// which are not.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.once.Do(s.start)
	if strings.HasPrefix(r.URL.Path, "/standin/") {
		s.control(w, r)
		return
	}
	r, err := overridden(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	number := s.meter.arrive(r.URL.Query().Has("key"))
	if !pause(r, s.Latency) {
		return
	}
	if continuesUpload(r) {
		s.meter.continued()
		s.continueUpload(w, r, s.faults.next(r, number))
		return
	}
	method, ok := methodOf(r)
	if !ok {
		s.meter.notFound()
		writeHTML(w, http.StatusNotFound, "Not Found")
		return
	}
	if e := s.credentialError(r, method); e != nil {
		s.meter.refuse()
		writeError(w, e)
		return
	}
	fault := s.faults.next(r, number)
	if !s.admit(w, method, fault) {
		return
	}
	s.deliver(w, r, method, fault)
}

func (s *Server) start() {
	if s.charts = s.Charts; s.charts == nil {
		s.charts = defaultCharts()
	}
	s.meter.start(s.Limits, s.MinuteLimit)
	s.faults.set(s.Faults)
	s.setting.daysBack = s.DaysBack
}

// admit charges the request to the project, or answers why not.
func (s *Server) admit(w http.ResponseWriter, m method, f Fault) bool {
	switch f.effect() {
	case refuses:
		s.meter.refuse()
		writeError(w, f.apiError(m))
		return false
	case rejects:
		s.meter.reject()
		writeError(w, f.apiError(m))
		return false
	}
	if e := s.meter.charge(m, s.now()); e != nil {
		writeError(w, e)
		return false
	}
	return true
}

// deliver answers a request that was charged, in the way the fault allows.
func (s *Server) deliver(w http.ResponseWriter, r *http.Request, m method, f Fault) {
	if f.effect() == replaces {
		f.replace(w, r, m)
		return
	}
	if isUpload(r) {
		s.upload(w, r, m, f)
		return
	}
	body, e := s.answer(m, r)
	if e != nil {
		writeError(w, e)
		return
	}
	if l, ok := body.(*list); ok && f.Kind == "repeat" {
		l.repeatFirst()
	}
	f.write(w, r, body)
}

// answer is the body that the method has for the request.
func (s *Server) answer(m method, r *http.Request) (any, *apiError) {
	if serve, ok := s.routes()[m.id]; ok {
		return serve(query{r.URL.Query()})
	}
	return m.emptyAnswer(), nil
}

// routes are the methods that are served from the charts.
func (s *Server) routes() map[string]func(query) (any, *apiError) {
	return map[string]func(query) (any, *apiError){
		"youtube.videos.list":          s.videosList,
		"youtube.videos.batchGetStats": s.videosBatchGetStats,
		"youtube.videoCategories.list": s.videoCategoriesList,
		"youtube.i18nRegions.list":     s.i18nRegionsList,
		"youtube.i18nLanguages.list":   s.i18nLanguagesList,
		"youtube.channels.list":        s.channelsList,
		"youtube.search.list":          s.searchList,
	}
}

func (s *Server) now() time.Time {
	s.setting.mu.Lock()
	ahead := s.setting.ahead
	s.setting.mu.Unlock()
	if s.Now != nil {
		return s.Now().Add(ahead)
	}
	return time.Now().Add(ahead)
}

// day is the index of the day of the charts that is served.
func (s *Server) day() int {
	s.setting.mu.Lock()
	defer s.setting.mu.Unlock()
	return max(0, s.charts.Days()-1-s.setting.daysBack)
}

// pause waits for d, or returns false because the client went away.
func pause(r *http.Request, d time.Duration) bool {
	if d <= 0 {
		return true
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-r.Context().Done():
		return false
	}
}
