package costs

import (
	"cmp"
	"fmt"
	"maps"
	"net/http"
	"time"

	"quotabudget/internal/costs/formula"
	"quotabudget/internal/quota"
)

// async describes calls that end after their response. Another response reports the end.
type async struct {
	Poll    *formula.Formula // path of the request that polls the call
	Done    *formula.Formula // whether the response reports the end
	Results *formula.Formula // path of the results, one per line; or nil
	Lapse   time.Duration    // of the hold, from the response on
	Headers map[string]string
}

// Async reports whether the list has such calls.
func (t *Table) Async() bool {
	for _, m := range t.methods {
		if m.rules != nil && m.rules.async != nil {
			return true
		}
	}
	return false
}

// Async reports whether the call may end after its response.
func (q Quote) Async() bool { return q.rules != nil && q.rules.async != nil }

// Pending returns how long the hold of a call lasts whose end another response reports, and the
// headers of requests that poll for it.
func (q Quote) Pending() (lapse time.Duration, headers map[string]string) {
	return q.rules.async.Lapse, maps.Clone(q.rules.async.Headers)
}

// ObserveLines returns an Observation of the results of an asynchronous call, in which each line is
// a response.
func (q Quote) ObserveLines(h http.Header) *Observation {
	o := q.Observe(http.StatusOK, h)
	o.begun, o.sums = true, map[string]float64{}
	o.events = &eventReader{max: maxAnswer, lines: true, handle: o.line}
	return o
}

// line adds the usage in one line of results.
func (o *Observation) line(_ string, data []byte) {
	o.usage, o.doc = nil, nil
	if !o.parse(data) {
		o.unread = cmp.Or(o.unread, errNoJSON)
		return
	}
	o.addUsage()
	env := o.names()
	var named Outcome
	o.quote.useResponse(env, &named)
	o.unlisted = union(o.unlisted, named.Unlisted)
	rules := o.quote.rules
	if rules.free != nil && rules.free.Holds(env) {
		return
	}
	for bucket, f := range rules.settles {
		value, err := f.Value(env)
		if err == nil {
			_, err = f.Round(value)
		}
		o.unread = cmp.Or(o.unread, err)
		o.sums[bucket] += value
	}
}

// Saved is a quote that another process can resume.
type Saved struct {
	Quote
	Facts, Query, Path, Names map[string]string
	Day                       string
}

// Save returns the parts of the quote that settle the call.
func (q Quote) Save() Saved {
	s := Saved{Quote: q, Facts: map[string]string{}, Names: q.names}
	s.Query, _ = q.env["query"].(map[string]string)
	s.Path, _ = q.env["path"].(map[string]string)
	s.Day, _ = q.env[formula.Day].(string)
	for _, f := range q.table.facts {
		if text, ok := q.env[f.name].(string); ok {
			s.Facts[f.name] = text
		}
	}
	return s
}

// Resume returns a saved quote. Errors: quota.ErrUnpriced, if the list has lost the method.
func (t *Table) Resume(s Saved) (Quote, error) {
	m, ok := t.methods[s.Method]
	if !ok || m.rules == nil || m.rules.async == nil {
		return Quote{}, fmt.Errorf("%w: %q", quota.ErrUnpriced, s.Method)
	}
	q := s.Quote
	q.table, q.rules, q.names = t, m.rules, s.Names
	q.env = formula.Env{formula.Day: s.Day, methodFact: s.Method, "query": s.Query, "path": s.Path}
	for name, fact := range s.Facts {
		q.env[name] = fact
	}
	q.keep()
	return q, nil
}
