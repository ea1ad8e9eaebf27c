package youtubetest

import (
	"maps"
	"net/http"
	"slices"

	"quotabudget/internal/strike"
)

// Fault affects the requests that match all of its conditions. A zero condition matches every
// request.
type Fault struct {
	// Kind is one of FaultKinds.
	Kind string
	strike.When
	// Region is the request's regionCode, Page its page number, from 1.
	Region string
	Page   int64
}

// effect is what a kind of fault does to the metering and the response.
type effect int

const (
	none     effect = iota
	refuses         // an error before metering, not billed
	rejects         // an error before metering, as over a limit
	replaces        // a different response, after metering
	garbles         // a damaged response, after metering
)

// kinds lists the effect of each kind of fault, and its error if it has one.
var kinds = map[string]struct {
	effect
	err func(method) *apiError
}{
	"403-disabled": {refuses, func(method) *apiError { return errNotConfigured() }},
	"403-blocked":  {refuses, errKeyBlocked},
	"403-quota":    {rejects, func(method) *apiError { return errQuotaExceeded() }},
	"403-daily":    {rejects, func(method) *apiError { return errDailyLimitOld() }},
	"429":          {rejects, func(m method) *apiError { return errRate(m.bucket, "minute", 1) }},
	"429-day":      {rejects, func(m method) *apiError { return errRate(m.bucket, "day", 1) }},
	"429-bare":     {rejects, func(method) *apiError { return errRateBare() }},
	"400-token":    {replaces, func(method) *apiError { return errPageToken() }},
	"404-chart":    {replaces, func(method) *apiError { return errNoChart() }},
	"500":          {replaces, func(method) *apiError { return errBackend(500) }},
	"503":          {replaces, func(method) *apiError { return errBackend(503) }},
	"500-html":     {effect: replaces},
	"500-null":     {effect: replaces},
	"200-html":     {effect: replaces},
	"hang":         {effect: replaces},
	"drop":         {effect: replaces},
	"cut":          {effect: garbles},
	"truncated":    {effect: garbles},
	"repeat":       {effect: garbles},
}

// FaultKinds returns the kinds of fault, sorted:
//
//	200-html 500-html   a page of HTML instead of JSON
//	400-token 404-chart invalidPageToken, videoChartNotFound
//	403-blocked         API_KEY_SERVICE_BLOCKED
//	403-disabled        accessNotConfigured
//	403-daily 403-quota dailyLimitExceeded, quotaExceeded
//	429 429-day         rateLimitExceeded, with details: by the minute, by the day
//	429-bare            rateLimitExceeded without details
//	500 503             backendError
//	500-null            an error whose message is null
//	cut                 the connection is dropped in the middle of the body
//	drop                the connection is dropped before the answer
//	hang                no answer until the client goes away
//	repeat              the first id of the page comes again as its last
//	truncated           half the JSON, with status 200
func FaultKinds() []string { return slices.Sorted(maps.Keys(kinds)) }

// ParseFaults reads faults of the form KIND[@FROM[-[TO]]][/EVERY][:REGION][#PAGE][*TIMES]:
//
//	503@3        the third request
//	503@3-       the third and all that follow
//	500-html/10  every tenth
//	hang:BR#2    page 2 of Brazil, always
//	drop:BR*2    the first two requests for Brazil
func ParseFaults(specs ...string) ([]Fault, error) {
	var all []Fault
	for _, spec := range specs {
		var f Fault
		var err error
		f.Kind, f.When, err = strike.Parse(spec, FaultKinds(), map[byte]func(string) error{
			':': func(region string) error {
				f.Region = region
				return nil
			},
			'#': func(page string) (err error) {
				f.Page, err = strike.Positive(page)
				return err
			},
		})
		if err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	return all, nil
}

// SetFaults replaces the faults while the server runs.
func (s *Server) SetFaults(faults ...Fault) {
	defer s.locked()()
	s.Faults, s.struck = slices.Clone(faults), make([]int64, len(faults))
}

// nextFault returns the first fault that matches the numbered request, or the zero Fault.
func (s *Server) nextFault(r *http.Request, number int64) Fault {
	defer s.locked()()
	q := newQuery(r)
	for i, f := range s.Faults {
		if f.Hits(number, s.struck[i]) && f.matches(q) {
			s.struck[i]++
			return f
		}
	}
	return Fault{}
}

func (f Fault) matches(q *query) bool {
	return (f.Region == "" || f.Region == q.Get("regionCode")) &&
		(f.Page == 0 || f.Page == q.page())
}

func (f Fault) effect() effect { return kinds[f.Kind].effect }

// apiError returns the fault's error.
func (f Fault) apiError(m method) *apiError { return kinds[f.Kind].err(m) }

// replace sends the fault's response instead of the real one.
func (f Fault) replace(w http.ResponseWriter, r *http.Request, m method) {
	switch f.Kind {
	case "hang":
		<-r.Context().Done()
	case "drop":
		panic(http.ErrAbortHandler)
	case "200-html":
		writeHTML(w, http.StatusOK, "Sorry")
	case "500-html":
		writeHTML(w, http.StatusInternalServerError, "Server Error")
	case "500-null":
		writeBody(w, http.StatusInternalServerError,
			[]byte(`{"error":{"code":500,"message":null}}`))
	default:
		writeError(w, f.apiError(m))
	}
}
