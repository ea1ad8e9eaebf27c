package standin

import (
	"net/http"
)

// effect is what a kind of fault does to the metering and the response.
type effect int

const (
	none     effect = iota
	refuses         // an error before metering, not billed
	rejects         // an error before metering, as over a limit
	replaces        // a different response, after metering
	garbles         // a damaged response, after metering
)

// youTubeFaults lists the effect of each kind of fault, and its error if it has one.
var youTubeFaults = map[string]struct {
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

// SetFaults replaces the faults while the server runs. It panics if one is invalid.
func (s *YouTube) SetFaults(specs ...string) {
	faults, err := parseFaults(youTubeName, specs)
	if err != nil {
		panic(err)
	}
	defer s.locked()()
	s.faults = faults
}

// nextFault returns the first fault that matches the numbered request, or none.
func (s *YouTube) nextFault(r *http.Request, number int64) youTubeFault {
	defer s.locked()()
	q := newQuery(r)
	return youTubeFault(strike(s.faults, number, func(f fault) bool {
		return (f.region == "" || f.region == q.Get("regionCode")) &&
			(f.page == 0 || f.page == q.page())
	}))
}

// youTubeFault is the kind of a fault, "" for none.
type youTubeFault string

func (f youTubeFault) effect() effect { return youTubeFaults[string(f)].effect }

// apiError returns the fault's error.
func (f youTubeFault) apiError(m method) *apiError { return youTubeFaults[string(f)].err(m) }

// replace sends the fault's response instead of the real one.
func (f youTubeFault) replace(w http.ResponseWriter, r *http.Request, m method) {
	switch f {
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
