package youtubetest

import (
	"maps"
	"sync"
	"time"
	_ "time/tzdata" // the Pacific day must not depend on the machine's zones
)

// Counts is what the stand-in saw. Requests is the sum of the metered requests in ByMethod,
// Rejected, Refused, NotFound and Continued.
type Counts struct {
	// Units are those of the current Pacific day, by bucket; Total are those of all days.
	Units map[string]int64 `json:"units"`
	Total map[string]int64 `json:"total"`
	// Requests are all that reached the API's paths; ByMethod are those that were metered.
	Requests int64            `json:"requests"`
	ByMethod map[string]int64 `json:"by_method"`
	// Rejected were over a daily or minute limit, Refused had no good key, NotFound named no
	// method. They took no units.
	Rejected int64 `json:"rejected"`
	Refused  int64 `json:"refused"`
	NotFound int64 `json:"not_found"`
	// Continued are the requests of resumable uploads after the one that began each. They took no
	// units.
	Continued int64 `json:"continued"`
	// KeyInURL are the requests whose URL, or form in place of it, carried an API key.
	KeyInURL int64 `json:"key_in_url"`
	// Day is the Pacific day of Units, as 2006-01-02.
	Day string `json:"day"`
}

// Counts are the units and requests so far.
func (s *Server) Counts() Counts {
	s.once.Do(s.start)
	return s.meter.read(s.now())
}

// SetLimit changes the daily units of a bucket while the server runs.
func (s *Server) SetLimit(bucket string, units int64) {
	s.once.Do(s.start)
	s.meter.mu.Lock()
	defer s.meter.mu.Unlock()
	s.meter.limits[bucket] = units
}

// meter counts the units of one project.
type meter struct {
	mu          sync.Mutex
	pacific     *time.Location
	limits      map[string]int64
	minuteLimit int64
	days        map[string]map[string]int64 // Pacific day → bucket → units
	minute      int64                       // minutes since 1970
	inMinute    int64                       // units in that minute
	counts      Counts                      // but Units and Day
}

func (m *meter) start(limits map[string]int64, minuteLimit int64) {
	pacific, err := time.LoadLocation("America/Los_Angeles")
	if err != nil {
		panic(err) // it is embedded
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pacific = pacific
	m.limits = map[string]int64{
		"default": 10_000, "search_list": 100, "video_insert": 100, "video_batch_get_stats": 10_000,
	}
	maps.Copy(m.limits, limits)
	m.minuteLimit = minuteLimit
	m.days = map[string]map[string]int64{}
	m.counts.Total = map[string]int64{}
	m.counts.ByMethod = map[string]int64{}
}

// arrive counts a request and says which one it is, from 1.
func (m *meter) arrive(keyInURL bool) int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.counts.Requests++
	if keyInURL {
		m.counts.KeyInURL++
	}
	return m.counts.Requests
}

// charge takes the method's units, or none and says which limit is reached.
func (m *meter) charge(method method, now time.Time) *apiError {
	m.mu.Lock()
	defer m.mu.Unlock()
	used := m.usedOn(m.day(now))
	limit := m.limits[method.bucket]
	if used[method.bucket]+method.units > limit {
		m.counts.Rejected++
		return errDayExhausted(method.bucket, limit)
	}
	if minute := now.Unix() / 60; minute != m.minute {
		m.minute, m.inMinute = minute, 0
	}
	if m.minuteLimit > 0 && m.inMinute+method.units > m.minuteLimit {
		m.counts.Rejected++
		return errMinuteExhausted(method.bucket, m.minuteLimit)
	}
	m.inMinute += method.units
	used[method.bucket] += method.units
	m.counts.Total[method.bucket] += method.units
	m.counts.ByMethod[method.id]++
	return nil
}

func (m *meter) reject()    { m.add(&m.counts.Rejected) }
func (m *meter) refuse()    { m.add(&m.counts.Refused) }
func (m *meter) notFound()  { m.add(&m.counts.NotFound) }
func (m *meter) continued() { m.add(&m.counts.Continued) }

func (m *meter) add(count *int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	*count++
}

func (m *meter) read(now time.Time) Counts {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.counts
	c.Day = m.day(now)
	c.Units = maps.Clone(m.usedOn(c.Day))
	c.Total = maps.Clone(c.Total)
	c.ByMethod = maps.Clone(c.ByMethod)
	return c
}

// day is the Pacific calendar day of t: 23 hours long in March once, 25 in November.
func (m *meter) day(t time.Time) string { return t.In(m.pacific).Format(time.DateOnly) }

func (m *meter) usedOn(day string) map[string]int64 {
	if m.days[day] == nil {
		m.days[day] = map[string]int64{}
	}
	return m.days[day]
}

// setMinuteLimit changes the units a minute, unless it is nil.
func (m *meter) setMinuteLimit(units *int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if units != nil {
		m.minuteLimit = *units
	}
}
