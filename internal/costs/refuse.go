package costs

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/untrusted"
	"quotabudget/internal/words"
)

// Refusal classifies a response by the first rule of the list that applies. It returns nil for a
// status below 300 without a rule. Conditions on the request are false here.
func (t *Table) Refusal(status int, h http.Header, body []byte) *Refusal {
	env := variables{dayVariable: t.Day(), methodFact: "", "query": map[string]string{},
		"path": map[string]string{}, "held": map[string]float64{}, "most": map[string]float64{},
		"usage": nil}
	for _, f := range t.facts {
		env[f.name] = ""
	}
	return t.refusal(status, h, body, env)
}

func (t *Table) refusal(status int, h http.Header, body []byte, env variables) *Refusal {
	said := t.Errors.read(body)
	said.fill(env, status, h, len(body))
	for _, rule := range t.Refusals {
		in := func(s statusRange) bool { return s.first <= status && status <= s.last }
		applies := slices.ContainsFunc(rule.Status, in) || len(rule.Status) == 0 && status >= 300
		if applies && (rule.Where == nil || rule.Where.Holds(env)) {
			return t.refused(rule, said, env, h)
		}
	}
	switch { // no rule applies
	case status < 300:
		return nil
	case status == http.StatusTooManyRequests:
		return said.refusal(Throttled)
	case status == http.StatusUnauthorized:
		return said.refusal(BadCredential)
	case status >= 500:
		return said.refusal(Transient)
	}
	return said.refusal(Permanent)
}

// ofSuccess reports whether the rule applies to a status below 300.
func (f refusing) ofSuccess() bool {
	return slices.ContainsFunc(f.Status, func(s statusRange) bool { return s.first < 300 })
}

// refusesSuccess reports whether a rule applies to a status below 300.
func (t *Table) refusesSuccess() bool { return slices.ContainsFunc(t.Refusals, refusing.ofSuccess) }

// readsAnswers reports whether responses to calls of known price are also read.
func (t *Table) readsAnswers() bool {
	return t.refusesSuccess() || slices.ContainsFunc(t.Learn, func(l learning) bool {
		return l.Limit.Path+l.Used.Path+l.Remaining.Path+l.Reset.Path != "" ||
			anyUses(l.formulas(), "answer", "count", "usage")
	})
}

// refused returns the refusal that the rule makes of the response.
func (t *Table) refused(rule refusing, said said, env variables, h http.Header) *Refusal {
	r := said.refusal(rule.Kind)
	r.As = rule.As
	if rule.Kind != Exhausted && rule.Kind != Throttled {
		return r
	}
	r.Bucket, r.Window = rule.Bucket, rule.window
	r.Until, r.Unread = rule.Until.moment(h, said.doc)
	if metric := t.Errors.Metric; metric != nil {
		r.Metric, _ = metric.String(env)
	}
	if since := t.Errors.Since; since != nil {
		text, _ := since.String(env)
		r.Since, _ = time.Parse(time.RFC3339, text)
	}
	if b, ok := t.BucketOfMetric(r.Metric); ok && r.Bucket == "" {
		r.Bucket = b.Name
	}
	return r
}

// said is the reason for an error, as the response states it.
type said struct {
	doc     any
	message string
	own     bool // the message is the API's, not a web page's or a front end's
	reasons []reason
	word    string
	found   map[string]any
	cut     bool // the JSON ends too early
}

func (s said) refusal(kind Kind) *Refusal {
	reason := s.word
	if len(s.reasons) > 0 {
		reason = s.reasons[0].Reason
	}
	return &Refusal{Kind: kind, Reason: untrusted.Plain(reason), Message: untrusted.Plain(s.message)}
}

// fill adds the reason and the response to the variables of expressions.
func (s said) fill(env variables, status int, h http.Header, size int) {
	says := func(words ...string) bool {
		return slices.ContainsFunc(s.reasons, func(r reason) bool {
			return slices.Contains(words, r.Reason)
		})
	}
	only := func(words ...string) bool {
		return !slices.ContainsFunc(s.reasons, func(r reason) bool {
			return !slices.Contains(words, r.Reason)
		})
	}
	env["message"] = ""
	if s.own {
		env["message"] = s.message
	}
	env["reasons"], env["says"], env["only"], env["cut"] = s.reasons, says, only, s.cut
	for name, object := range s.found {
		env[name] = object
	}
	answerNames(env, status, h, s.doc, size)
}

// answerNames adds a response to the variables of expressions.
func answerNames(env variables, status int, h http.Header, doc any, size int) {
	env["status"], env["answer"], env["answer_bytes"] = status, doc, size
	env["header"] = lineOf(h)
	env["count"] = func(path string) any {
		if before, ok := counted(path); ok {
			if _, found := untrusted.Find(doc, before); !found {
				return nil // the list of resources does not exist
			}
		}
		return float64(untrusted.Count(doc, path))
	}
}

// lineOf returns the function header of expressions. It joins the values of a repeated header (RFC
// 9110, section 5.3), so that none hides behind the first.
func lineOf(h http.Header) func(name string) string {
	return func(name string) string { return strings.Join(h.Values(name), ", ") }
}

// read reads the reason in an error body by the rules of the list. A message may repeat the
// caller's words, so a body in another form, or an ambiguous one, has no reason.
func (form errorForm) read(body []byte) said {
	s := said{reasons: []reason{}, found: map[string]any{}}
	for _, f := range form.Found {
		s.found[f.key] = map[string]any{}
	}
	body = trimBody(body)
	switch {
	case len(body) >= untrusted.MaxError:
		s.message = fmt.Sprintf("the error is longer than %d bytes", untrusted.MaxError)
		return s
	case len(body) == 0 || body[0] != '{' && body[0] != '[':
		s.message = string(body) // a line of text
		if m := titleForm.FindSubmatch(body); m != nil {
			s.message = string(m[1])
		} else if bytes.HasPrefix(body, []byte("<")) {
			s.message = ""
		}
		return s
	case !json.Valid(body):
		s.cut = true
		return s
	}
	var err error
	if s.doc, err = untrusted.Decode(body, jsonBounds); err != nil {
		s.message = err.Error()
		return s
	}
	if list, ok := s.doc.([]any); ok { // some front ends put the object into an array
		if s.doc = nil; len(list) > 0 {
			s.doc = list[0]
		}
	}
	form.look(&s)
	return s
}

// look finds the message, the reasons and the objects in the response's JSON.
func (form errorForm) look(s *said) {
	for _, path := range form.Message {
		if s.message = untrusted.FirstText(s.doc, path); s.message != "" {
			s.own = true
			break
		}
	}
	if form.Word != "" {
		s.word = untrusted.FirstText(s.doc, form.Word)
	}
	for _, w := range form.Reasons {
		for _, item := range w.in(s.doc) {
			if name := untrusted.FirstText(item, w.Name); name != "" {
				s.reasons = append(s.reasons, reason{Reason: name,
					Domain: untrusted.FirstText(item, w.Domain)})
			}
		}
	}
	for _, f := range form.Found {
		for _, item := range f.value.in(s.doc) {
			if f.value.Take != "" {
				item, _ = untrusted.Find(item, f.value.Take)
			}
			if object, ok := item.(map[string]any); ok {
				s.found[f.key] = object
				break
			}
		}
	}
}

// in returns the objects at the path that meet the condition. Without a path it returns the
// response.
func (i items) in(doc any) (all []any) {
	objects := []any{doc}
	if i.At != "" {
		objects = untrusted.Items(doc, i.At)
	}
	for _, item := range objects {
		_, object := item.(map[string]any)
		if object && (i.Where == nil || i.Where.Holds(variables{"item": item})) {
			all = append(all, item)
		}
	}
	return all
}

// moment returns the time at the place, or zero, and the text there if it cannot be
// read.
func (p place) moment(h http.Header, doc any) (m Moment, unread string) {
	if p.after > 0 {
		return Moment{After: p.after}, ""
	}
	text, value := p.value(h, doc, "t", "reset")
	at, after, ok := ParseMoment(value, p.As)
	if !ok || time.Until(at) > farthest {
		return m, p.unread(text)
	}
	return Moment{At: at, After: after}, ""
}

// amount returns the number at the place, false if there is none, and the text there if it is
// unreadable.
func (p place) amount(h http.Header, doc any, env variables, part limitPart) (
	n int64, unread string, ok bool) {
	if p.units != nil {
		value, err := p.units.Value(env)
		return int64(value), "", err == nil && value >= 0 && value <= quota.MaxUnits
	}
	text, value := p.value(h, doc, paramsOf[part]...)
	if n, ok = parseAmount(value, part); !ok {
		unread = p.unread(text)
	}
	return n, unread, ok
}

// paramsOf lists the parameters of a RateLimit or RateLimit-Policy header for each part.
var paramsOf = map[limitPart][]string{partLimit: {"q", "limit"}, partUsed: {"used"},
	partRemaining: {"r", "remaining"}}

// unread describes an unreadable text at the place. It returns "" for a missing text, for -1, and
// for a time of 0s, which all mean none.
func (p place) unread(text string) string {
	if strings.TrimSpace(text) == "-1" || strings.Trim(text, "0.smh ") == "" {
		return ""
	}
	return p.String() + ": " + words.Clip(untrusted.Plain(text))
}

// value returns the text at the place, and the first of the parameters in it, or the whole text if
// it has none of them. Both are "" if the place is missing.
func (p place) value(h http.Header, doc any, params ...string) (text, value string) {
	if p.Header != "" {
		text = lineOf(h)(p.Header)
	} else if p.Path != "" {
		text, _ = untrusted.FindText(doc, p.Path)
	}
	value, ok := fieldParam(text, p.Policy, params...)
	if !ok {
		value = text
	}
	return text, value
}

// titleForm matches the title of a page.
var titleForm = regexp.MustCompile(`(?is)<title[^>]*>(.*?)</title>`)
