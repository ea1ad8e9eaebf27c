package costs

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/untrusted"
)

// jsonBounds limits the JSON of requests and responses. The largest batches of tokens have 300,000
// values; each takes some hundred bytes of memory.
var jsonBounds = untrusted.Bounds{Values: 1_000_000, Depth: 200, Items: 1_000_000, Text: maxBody}

// parse decodes the response or an event. If the JSON is unusable, the most is booked.
func (o *Observation) parse(data []byte) bool {
	doc, err := untrusted.Decode(trimBody(data), jsonBounds)
	if bad, ok := errors.AsType[*untrusted.Unusable](err); ok {
		o.unusable = bad
	}
	if err != nil {
		return false
	}
	o.doc = doc
	for _, path := range o.quote.table.Zeros {
		untrusted.FillZero(doc, path)
	}
	return true
}

func (o *Observation) addUsage() {
	found := o.addUsageOf(o.doc, o.quote.rules.usage)
	if list, ok := o.doc.([]any); ok && !found { // a stream as one list, or an event per line
		for _, event := range list {
			o.addUsageOf(event, o.quote.rules.usage)
		}
	}
}

// addUsageOf merges the values at the paths into the usage: the keys of an object, other values
// under the last word of the path. The last value of a stream wins, because some upstreams correct
// their first report at its end. It returns whether there was any value.
func (o *Observation) addUsageOf(doc any, paths []string) (found bool) {
	for _, path := range paths {
		for _, at := range untrusted.Values(doc, path) {
			object, ok := at.(map[string]any)
			if !ok {
				object = map[string]any{path[strings.LastIndexByte(path, '.')+1:]: at}
			}
			for key, value := range object {
				found = o.set(key, withoutNegatives(value)) || found
			}
		}
	}
	return found
}

// set records a value of usage, if there is one. A 0 does not replace a number, because some
// gateways end their streams with zeros for unknown values.
func (o *Observation) set(key string, value any) bool {
	before, known := o.usage[key]
	if value == nil || !known && len(o.usage) >= maxUsage {
		return false
	}
	if _, number := before.(float64); number && value == 0.0 {
		return true
	}
	if o.usage == nil {
		o.usage = map[string]any{}
	}
	o.usage[key] = value
	return true
}

// withoutNegatives returns a value of usage without negative numbers, which would reduce a sum.
func withoutNegatives(value any) any {
	switch v := value.(type) {
	case float64:
		if v < 0 {
			return nil
		}
	case map[string]any:
		result := make(map[string]any, len(v))
		for key, value := range v {
			if value = withoutNegatives(value); value != nil {
				result[key] = value
			}
		}
		return result
	}
	return value
}

// names returns the variables of the response, and the variables of the request that settling
// needs.
func (o *Observation) names() variables {
	env := maps.Clone(o.quote.env)
	answerNames(env, o.status, o.header, o.doc, o.size)
	env["usage"] = nil
	if o.usage != nil {
		env["usage"] = o.usage
	}
	return env
}

// union appends to a list the items of more that it lacks.
func union[T comparable](list, more []T) []T {
	for _, v := range more {
		if !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}

// Outcome is what a response reports about a call.
type Outcome struct {
	Costs   []quota.Cost // usage by bucket; the maximum if the response does not report it
	Missing []string     // what the response should have reported and did not
	Pending string       // path of a request for the end of the call; Costs are not final yet
	Done    bool         // the response is about the end of a call that another response began
	Results string       // path of a request for the usage of an ended call, line by line; or ""
	Lessons []Lesson
	// Unlisted holds what the response names if it differs from the request and the list has no row
	// for it.
	Unlisted []Unlisted
	Unread   []string // rate-limit values that cannot be read: "retry-after: soon"
	Refusal  *Refusal // nil for a success
}

// Lesson is what a response reports about a limit of the upstream.
type Lesson struct {
	Bucket    string       // for a split bucket, the part that the call was charged to
	Window    quota.Window // of the limit; zero if the list has none
	Limit     int64        // 0 if not reported
	Remaining int64        // -1 if not reported
	Reset     Moment
	Why       string // where it was reported: "x-ratelimit-remaining"
	Header    bool   // reported in a header, possibly before the upstream counted the call
}

// Moment is a time in a response: At, or After some time from now. The zero Moment means no time.
type Moment struct {
	At    time.Time
	After time.Duration
}

// Time returns the time of the moment for a response that came at now; zero if there is none.
func (m Moment) Time(now time.Time) time.Time {
	if m.After > 0 {
		return now.Add(m.After)
	}
	return m.At
}

// IsZero reports whether the response has no such time.
func (m Moment) IsZero() bool { return m == Moment{} }

// Kind classifies a refusal by what the caller can do about it.
type Kind string

// The kinds of refusals.
const (
	Permanent     Kind = "permanent"      // this request will fail however often it is sent
	Transient     Kind = "transient"      // the upstream failed: retry a few times
	Throttled     Kind = "throttled"      // too many requests in a short time: retry after a while
	Exhausted     Kind = "exhausted"      // a bucket is empty: retry after its reset, not before
	BadCredential Kind = "bad credential" // the credential is wrong, missing or blocked
)

// Refusal is what an unsuccessful response reports.
type Refusal struct {
	Kind    Kind
	As      string // the reason to report instead, by the list: "no chart"
	Reason  string // the upstream's word for it: "quotaExceeded"
	Message string // as plain text in one line

	// The fields below are about the bucket of an Exhausted or Throttled refusal.

	Bucket string    // "" if not reported: the bucket that the call was charged to
	Metric string    // the upstream's name for the bucket; the list may lack it
	Window bool      // the refusal lasts until the end of the bucket's calendar window
	Until  Moment    // when the refusal ends; zero if not reported
	Since  time.Time // when the upstream's window began; zero if not reported
	Unread string    // the text for Until, if that cannot be read
}

// async describes calls that continue after their response. A later response reports the end.
type async struct {
	Poll    *formula      // path of the request that polls the call
	Done    *formula      // true if the response reports the end
	Results *formula      // path of the results, one per line; or nil
	Lapse   time.Duration // of the hold, from the response on
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

// Async reports whether the call may continue after its response.
func (q Quote) Async() bool { return q.rules != nil && q.rules.async != nil }

// Pending returns the duration of the hold of an asynchronous call, and the headers of the requests
// that poll for its end.
func (q Quote) Pending() (lapse time.Duration, headers map[string]string) {
	return q.rules.async.Lapse, maps.Clone(q.rules.async.Headers)
}

// ObserveLines returns an Observation of the results of an asynchronous call. Each line of them is
// a response.
func (q Quote) ObserveLines(h http.Header) *Observation {
	o := q.Observe(http.StatusOK, h)
	o.begun, o.sums = true, map[string]float64{}
	o.events = &eventReader{max: maxAnswer, lines: true, handle: o.line}
	return o
}

// line adds the usage in a line of the results.
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

// Save returns the parts of the quote that are needed to settle the call.
func (q Quote) Save() Saved {
	s := Saved{Quote: q, Facts: map[string]string{}, Names: q.names}
	s.Query, _ = q.env["query"].(map[string]string)
	s.Path, _ = q.env["path"].(map[string]string)
	s.Day, _ = q.env[dayVariable].(string)
	for _, f := range q.table.facts {
		if text, ok := q.env[f.name].(string); ok {
			s.Facts[f.name] = text
		}
	}
	return s
}

// Resume restores a saved quote. It returns quota.ErrUnpriced if the list no longer has the method.
func (t *Table) Resume(s Saved) (Quote, error) {
	m, ok := t.methods[s.Method]
	if !ok || m.rules == nil || m.rules.async == nil {
		return Quote{}, fmt.Errorf("%w: %q", quota.ErrUnpriced, s.Method)
	}
	q := s.Quote
	q.table, q.rules, q.names = t, m.rules, s.Names
	q.env = variables{dayVariable: s.Day, methodFact: s.Method, "query": s.Query, "path": s.Path}
	for name, fact := range s.Facts {
		q.env[name] = fact
	}
	q.keep()
	return q, nil
}
