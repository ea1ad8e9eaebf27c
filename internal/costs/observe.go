package costs

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"mime"
	"net/http"
	"slices"
	"strings"

	"quotabudget/internal/quota"
	"quotabudget/internal/untrusted"
)

// Bounds of the memory for a response.
const (
	maxAnswer = 8 << 20 // bytes of JSON
	maxEvent  = 1 << 20 // bytes of an event of a stream
	maxUsage  = 1000    // values of usage
)

// Observation reads a response as it is passed on, and returns its outcome at the end. It never
// blocks. It keeps at most 8 MiB of JSON; of a stream, one event.
type Observation struct {
	quote  Quote
	status int
	header http.Header

	head    []byte // start of the body, until it shows the format
	begun   bool   // the format is known
	body    []byte
	keeps   bool // the body is kept, up to a bound
	dropped bool // the body was longer than the bound
	size    int  // bytes in all
	events  *eventReader
	seen    map[string]bool // events with usage so far, by name
	refused *Refusal        // from an event
	cut     bool            // the response broke off

	doc   any            // the JSON of the response, or of the last event
	usage map[string]any // usage reported so far
	// Results of an asynchronous call: the units in the lines so far, by bucket, why a line is
	// unreadable, and facts in them without a row.
	sums     map[string]float64
	unread   error
	unlisted []Unlisted
	unusable error // set for JSON that is ambiguous or too large
}

// Observe returns an Observation of the response to the quoted request.
func (q Quote) Observe(status int, h http.Header) *Observation {
	return &Observation{quote: q, status: status, header: h}
}

// headSize is how many bytes of a body show its format.
const headSize = 64

// begin chooses how to read the body: by its first bytes, because servers send JSON and events
// under other Content-Types, else by its Content-Type. Before the end, it may wait for more bytes.
func (o *Observation) begin(p []byte, end bool) {
	o.head = append(o.head, p...)
	head := trimBody(o.head)
	if len(head) < len("event:") && len(o.head) < headSize && !end {
		return
	}
	kind, _, _ := mime.ParseMediaType(o.header.Get("Content-Type"))
	isJSON := bytes.HasPrefix(head, []byte("{")) || bytes.HasPrefix(head, []byte("["))
	events := kind == "text/event-stream" || bytes.HasPrefix(head, []byte("data:")) ||
		bytes.HasPrefix(head, []byte("event:"))
	lines := strings.Contains(kind, "ndjson") || strings.Contains(kind, "jsonl") ||
		strings.Contains(kind, "json-seq")
	priced := o.quote.rules != nil
	switch {
	case o.status >= 300:
		o.keeps = true
	case priced && (isJSON && lines || !isJSON && events):
		o.events = &eventReader{max: maxEvent, lines: isJSON, handle: o.event}
	default:
		o.keeps = (isJSON || kind == "" || strings.Contains(kind, "json")) &&
			(priced || o.quote.table.readsAnswers())
	}
	p, o.head, o.begun = o.head, nil, true
	o.take(p)
}

// Write reads the next bytes of the body, unpacked. It returns no error.
func (o *Observation) Write(p []byte) (int, error) {
	o.size += len(p)
	if o.begun {
		o.take(p)
	} else {
		o.begin(p, false)
	}
	return len(p), nil
}

// take reads the next bytes in the format that begin chose.
func (o *Observation) take(p []byte) {
	limit := maxAnswer
	if o.status >= 300 {
		limit = untrusted.MaxError
	}
	switch {
	case o.events != nil:
		_, _ = o.events.Write(p)
	case !o.keeps || o.dropped:
	case len(o.body)+len(p) > limit && o.status < 300:
		o.body, o.dropped = nil, true
	default:
		o.body = append(o.body, p[:min(len(p), limit-len(o.body))]...)
	}
}

// Cut reports that the response broke off: the usage so far may be too low.
func (o *Observation) Cut() { o.cut = true }

// event reads an event of a stream. Servers that omit the empty lines send several events as one.
func (o *Observation) event(name string, data []byte) {
	if o.one(name, data) || !bytes.ContainsRune(data, '\n') {
		return
	}
	for line := range bytes.SplitSeq(data, []byte("\n")) {
		o.one(name, line)
	}
}

// one reads the usage and a refusal in one event. It returns false if the event is not JSON.
func (o *Observation) one(name string, data []byte) bool {
	rules := o.quote.rules
	has := func(path string) bool {
		last := path[strings.LastIndexByte(path, '.')+1:]
		return last == "*" || bytes.Contains(data, []byte(`"`+last+`"`))
	}
	fails := o.quote.table.refusesSuccess() && o.refused == nil && has("error")
	if !fails && !slices.ContainsFunc(rules.usage, has) {
		return true
	}
	if !o.parse(data) {
		return false
	}
	if fails {
		o.refused = o.quote.table.refusal(o.status, o.header, data, maps.Clone(o.quote.env))
	}
	kind, _ := untrusted.FindText(o.doc, "type")
	name = cmp.Or(name, kind)
	if len(rules.events) > 0 && name != "" && !slices.Contains(rules.events, name) {
		return true
	}
	if o.seen == nil {
		o.seen = map[string]bool{}
	}
	o.seen[name] = true
	o.addUsage()
	return true
}

// Close ends the response, which may be incomplete.
func (o *Observation) Close() Outcome {
	if !o.begun {
		o.begin(nil, true)
	}
	if o.events != nil {
		o.events.close()
		// A stream without its last event ended too early.
		if names := o.quote.rules.events; len(names) > 0 {
			o.cut = o.cut || !o.seen[names[len(names)-1]]
		}
	}
	o.doc = nil // of an event
	if o.sums != nil && o.events.tooLong > 0 {
		o.unread = fmt.Errorf("a line is longer than %d bytes", maxAnswer)
	}
	if len(o.body) > 0 {
		o.parse(o.body)
	}
	if o.quote.rules != nil {
		o.addUsage()
	}
	o.cut = o.cut && !json.Valid(trimBody(o.body)) // valid JSON is complete
	env, out := o.names(), Outcome{Unlisted: o.unlisted}
	o.quote.useResponse(env, &out)
	out.Refusal = o.refusal(env)
	out.Lessons, out.Unread = o.lessons(o.doc, env)
	if out.Refusal != nil && out.Refusal.Unread != "" {
		out.Unread = union(out.Unread, []string{out.Refusal.Unread})
	}
	o.settle(&out, env)
	return out
}

func (o *Observation) refusal(env variables) *Refusal {
	t := o.quote.table
	if o.status == http.StatusNotModified || o.status < 300 && !t.refusesSuccess() {
		return nil
	}
	r := o.refused
	if r == nil {
		r = t.refusal(o.status, o.header, o.body, maps.Clone(env))
	}
	if r != nil {
		r.Bucket = cmp.Or(o.quote.names[r.Bucket], r.Bucket)
	}
	return r
}

// Early returns what the headers report about the limits. An upstream writes them before it knows
// the usage of the call.
func (o *Observation) Early() []Lesson {
	if len(o.quote.table.Learn) == 0 {
		return nil
	}
	env := maps.Clone(o.quote.env)
	answerNames(env, o.status, o.header, nil, 0)
	env["usage"] = nil
	all, _ := o.lessons(nil, env)
	return slices.DeleteFunc(all, func(l Lesson) bool { return !l.Header })
}

// lessons returns what the response reports about the buckets, and its unreadable values. For a
// split bucket, the report is about the part that the request was charged to.
func (o *Observation) lessons(doc any, env variables) (all []Lesson, unread []string) {
	for _, rule := range o.quote.table.Learn {
		part, charged := o.quote.names[rule.Bucket]
		if !charged && len(o.quote.table.bucketNamed(rule.Bucket).Split) > 0 ||
			rule.Where != nil && !rule.Where.Holds(env) {
			continue
		}
		l, wrong := rule.lesson(o.header, doc, env)
		l.Bucket = cmp.Or(part, rule.Bucket)
		unread = union(unread, wrong)
		if l.Remaining >= 0 || !l.Reset.IsZero() {
			all = append(all, l)
		}
	}
	return all, unread
}

// lesson returns what a response reports about the limit, and the values that cannot be read.
func (l learning) lesson(h http.Header, doc any, env variables) (learned Lesson,
	unread []string) {
	var wrong [4]string
	var ok, usedOK bool
	var used int64
	from := l.Remaining
	learned = Lesson{Window: l.window}
	learned.Limit, wrong[0], _ = l.Limit.amount(h, doc, env, partLimit)
	learned.Remaining, wrong[1], ok = l.Remaining.amount(h, doc, env, partRemaining)
	used, wrong[2], usedOK = l.Used.amount(h, doc, env, partUsed)
	if !ok && usedOK && learned.Limit > 0 {
		learned.Remaining, from, ok = max(learned.Limit-used, 0), l.Used, true
	}
	if learned.Why, learned.Header = from.String(), from.Path == ""; !ok {
		learned.Remaining, learned.Why, learned.Header = -1, l.Reset.String(), false
	}
	learned.Reset, wrong[3] = l.Reset.moment(h, doc)
	empty := func(text string) bool { return text == "" }
	return learned, union(nil, slices.DeleteFunc(wrong[:], empty))
}

// String returns the header, the path or the expression.
func (p place) String() string {
	if p.units != nil {
		return p.units.Text
	}
	return p.Header + p.Path
}

// settle sets the usage of the call. If the response does not report it, settle uses the maximum:
// with an estimate, a caller could pay less than the upstream bills.
func (o *Observation) settle(out *Outcome, env variables) {
	rules := o.quote.rules
	if rules == nil {
		out.Costs = slices.Clone(o.quote.Costs)
		return
	}
	if p := rules.async; p != nil && o.status < 300 {
		path, target := p.Poll, &out.Pending // the response that reports the usage, if not this one
		if out.Done = o.sums != nil || p.Done.Holds(env); out.Done {
			path, target = p.Results, &out.Results
		}
		if path != nil {
			if text, err := path.String(env); err == nil && strings.HasPrefix(text, "/") {
				*target = text
			}
		}
	}
	free := rules.free != nil && o.sums == nil && rules.free.Holds(env)
	for _, held := range o.quote.Costs {
		cost := quota.Cost{Bucket: held.Bucket, Units: held.Units}
		if free {
			cost.Units = 0
		} else if units, err := o.truth(held, env); err != nil {
			cost.Units = max(held.Units, held.Most)
			out.Missing = append(out.Missing, o.missing(err)...)
		} else {
			cost.Units = units
		}
		out.Costs = append(out.Costs, cost)
	}
	if out.Pending != "" {
		out.Missing = nil // not yet
	}
	slices.Sort(out.Missing)
	out.Missing = slices.Compact(out.Missing)
}

var (
	errNoEnd  = errors.New("the end of the answer")
	errNoJSON = errors.New("the answer's JSON")
)

// truth returns the units that the call took from a bucket.
func (o *Observation) truth(held quota.Cost, env variables) (int64, error) {
	rules, whole := o.quote.rules, quota.WholeOf(held.Bucket)
	f := rules.settles[whole]
	if o.status >= 400 {
		f = rules.failed[whole]
	}
	if f == nil {
		return held.Units, nil
	}
	units, err := int64(0), o.unread
	if o.sums != nil && err == nil {
		units, err = f.Round(o.sums[whole])
	} else if err == nil {
		units, err = f.Units(env)
	}
	reads := f.Uses("answer", "count") || f.Uses("usage") && o.events == nil
	switch {
	case o.unusable != nil && f.Uses("answer", "count", "usage"):
		return 0, o.unusable
	case err != nil:
		return 0, err
	case reads && o.size > 0 && env["answer"] == nil && o.sums == nil:
		return 0, errNoJSON
	case o.cut && units < max(held.Units, held.Most) &&
		f.Uses("usage", "answer", "count", "answer_bytes"):
		return 0, errNoEnd
	case units > quota.MaxUnits:
		return 0, fmt.Errorf("%d units: %d at most", units, int64(quota.MaxUnits))
	}
	return units, nil
}

// missing returns why the usage is unknown.
func (o *Observation) missing(err error) []string {
	encoding := o.header.Get("Content-Encoding")
	switch {
	case encoding != "" && !strings.EqualFold(encoding, "identity"):
		return []string{fmt.Sprintf("a body that can be read: it is packed as %.20q, and only "+
			"gzip was asked for", encoding)}
	case o.dropped:
		return []string{fmt.Sprintf("the answer is longer than %d bytes", maxAnswer)}
	case o.events != nil && o.events.tooLong > 0:
		return []string{fmt.Sprintf("an event is longer than %d bytes", maxEvent)}
	}
	if missing, ok := err.(*missingError); ok {
		return missing.Paths
	}
	return []string{err.Error()}
}
