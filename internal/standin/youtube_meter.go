package standin

import (
	_ "embed"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	_ "time/tzdata" // the Pacific day must not depend on the machine's zones
)

// YouTubeCounts is what the stand-in has counted. Requests is the sum of the metered requests in
// ByMethod, Rejected, Refused, NotFound and Continued.
type YouTubeCounts struct {
	// Units are those of the current Pacific day, by bucket; Total those of all days.
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
	// KeyInURL counts requests with an API key in the URL, or in a form in place of it.
	KeyInURL int64 `json:"key_in_url"`
	// Day is the Pacific day of Units, as 2006-01-02.
	Day string `json:"day"`
}

// youTubeMeter counts the units of one project.
type youTubeMeter struct {
	YouTubeCounts // without Units and Day
	pacific       *time.Location
	limits        map[string]int64
	days          map[string]map[string]int64 // Pacific day → bucket → units
	minute        int64                       // minutes since 1970
	inMinute      int64                       // units in that minute
	uses          map[use]int64               // units, for Cloud
	noted         int64                       // minute of the last use
	tokens        map[string]granted          // of service accounts
}

func newMeter(limits map[string]int64) youTubeMeter {
	pacific, _ := time.LoadLocation("America/Los_Angeles") // the zone data are embedded
	m := youTubeMeter{
		YouTubeCounts: YouTubeCounts{Total: map[string]int64{}, ByMethod: map[string]int64{}},
		pacific:       pacific, days: map[string]map[string]int64{},
		limits: map[string]int64{"default": 10_000, "search_list": 100, "video_insert": 100,
			"video_batch_get_stats": 10_000},
	}
	maps.Copy(m.limits, limits)
	return m
}

// day returns the Pacific calendar day of t and its used units by bucket. One day a year has 23
// hours and one 25.
func (m *youTubeMeter) day(t time.Time) (day string, used map[string]int64) {
	day = t.In(m.pacific).Format(time.DateOnly)
	if m.days[day] == nil {
		m.days[day] = map[string]int64{}
	}
	return day, m.days[day]
}

// Counts returns the units and requests so far.
func (s *YouTube) Counts() YouTubeCounts {
	now := s.now()
	defer s.locked()()
	c := s.meter.YouTubeCounts
	day, units := s.meter.day(now)
	c.Day, c.Units = day, maps.Clone(units)
	c.Total, c.ByMethod = maps.Clone(c.Total), maps.Clone(c.ByMethod)
	return c
}

// SetLimit changes a bucket's daily units while the server runs.
func (s *YouTube) SetLimit(bucket string, units int64) {
	defer s.locked()()
	s.meter.limits[bucket] = units
}

// arrive counts a request and returns its number, from 1.
func (s *YouTube) arrive(keyInURL bool) int64 {
	defer s.locked()()
	s.meter.Requests++
	if keyInURL {
		s.meter.KeyInURL++
	}
	return s.meter.Requests
}

// count increments a counter of the meter.
func (s *YouTube) count(what *int64) {
	defer s.locked()()
	*what++
}

// charge takes the method's units, or takes none and returns the limit's error.
func (s *YouTube) charge(method method) *apiError {
	now := s.now()
	defer s.locked()()
	m := &s.meter
	_, used := m.day(now)
	limit := m.limits[method.bucket]
	if used[method.bucket]+method.units > limit {
		m.Rejected++
		return errDayExhausted(method.bucket, limit)
	}
	if minute := now.Unix() / 60; minute != m.minute {
		m.minute, m.inMinute = minute, 0
	}
	if s.MinuteLimit > 0 && m.inMinute+method.units > s.MinuteLimit {
		m.Rejected++
		return errRate(method.bucket, "minute", s.MinuteLimit)
	}
	m.inMinute += method.units
	used[method.bucket] += method.units
	m.Total[method.bucket] += method.units
	m.ByMethod[method.id]++
	m.record(now, method.bucket, method.id, method.units)
	return nil
}

// methodsTSV lists ID, HTTP method, path, bucket and units of every method in the discovery
// document.
//
//go:embed methods.tsv
var methodsTSV string

// method is a priced operation of the API.
type method struct {
	id, verb, path, bucket string
	units                  int64
}

var methods = sync.OnceValue(func() []method {
	var all []method
	for _, f := range tsv(methodsTSV) {
		units, _ := strconv.ParseInt(f[4], 10, 64)
		all = append(all, method{f[0], f[1], f[2], f[3], units})
	}
	return all
})

func tsv(text string) [][]string {
	var rows [][]string
	for line := range strings.Lines(text) {
		rows = append(rows, strings.Split(strings.TrimSuffix(line, "\n"), "\t"))
	}
	return rows
}

// methodOf returns the method that a request calls. Media uploads use the paths of their methods.
func methodOf(r *http.Request) (method, bool) {
	path := strings.TrimPrefix(r.URL.Path, "/resumable")
	path = strings.TrimPrefix(path, "/upload")
	for _, m := range methods() {
		if m.verb == r.Method && m.matches(path) {
			return m, true
		}
	}
	return method{}, false
}

func (m method) matches(path string) bool {
	stem, variable := strings.CutSuffix(m.path, "{id}")
	id, ok := strings.CutPrefix(path, stem)
	return ok && variable == (id != "") && !strings.Contains(id, "/")
}

// emptyAnswer returns the response of a method that is priced but not served: no content, a bare
// resource, or an empty list.
func (m method) emptyAnswer() any {
	resource := strings.TrimSuffix(strings.Split(m.id, ".")[1], "s")
	switch m.verb {
	case http.MethodDelete:
		return nil
	case http.MethodGet:
		return newList(resource+"List", nil)
	}
	return item{Kind: "youtube#" + resource, Etag: etagOf(m.id), ID: "standin"}
}

// maxForm bounds the parameters read from a body, in bytes.
const maxForm = 1 << 20

// overridden converts a POST with X-HTTP-Method-Override: GET, which clients send when a URL gets
// too long, into that GET. The form's parameters join those of the URL.
func overridden(r *http.Request) (*http.Request, error) {
	if r.Method != http.MethodPost || r.Header.Get("X-Http-Method-Override") != http.MethodGet {
		return r, nil
	}
	body, err := io.ReadAll(io.LimitReader(r.Body, maxForm))
	if err != nil {
		return nil, fmt.Errorf("form: %w", err)
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, fmt.Errorf("form: %w", err)
	}
	get := r.Clone(r.Context())
	get.Method = http.MethodGet
	get.URL.RawQuery = strings.Trim(get.URL.RawQuery+"&"+form.Encode(), "&")
	return get, nil
}

// credentialError returns why the request may not call the method, or nil. A request may have an
// API key, a user's token, or both; each must be valid.
func (s *YouTube) credentialError(r *http.Request, m method) *apiError {
	key := r.Header.Get("X-Goog-Api-Key")
	if key == "" {
		key = r.URL.Query().Get("key")
	}
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	switch {
	case token != "" && len(s.Tokens) > 0 && !slices.Contains(s.Tokens, token):
		return newError(http.StatusUnauthorized, "global", "authError",
			"Request had invalid authentication credentials.").rpc()
	case token == "" && len(s.Tokens) > 0 && m.verb != http.MethodGet:
		return newError(http.StatusUnauthorized, "global", "required",
			"API keys are not supported by this API. Expected OAuth2 access token.").rpc()
	case key == "" && token == "":
		return errKeyMissing()
	case key != "" && len(s.Keys) > 0 && !slices.Contains(s.Keys, key):
		return errKeyInvalid()
	}
	return nil
}
