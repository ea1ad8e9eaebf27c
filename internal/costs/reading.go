package costs

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"quotabudget/internal/costs/answer"
)

// reading is the answer as some library reads it.
type reading struct {
	doc   any
	usage map[string]any
}

// parse decodes the response, or an event, as each library would.
func (o *Observation) parse(data []byte) bool {
	last, first, err := answer.ParseBoth(data)
	if err != nil {
		return false
	}
	o.readings[0].doc, o.readings[1].doc = last, first
	o.twice = o.twice || !reflect.DeepEqual(last, first)
	for _, path := range o.quote.table.zeros {
		answer.FillZero(last, path)
		answer.FillZero(first, path)
	}
	return true
}

func (o *Observation) addUsage() {
	for i := range o.readings {
		r := &o.readings[i]
		found := r.addUsage(r.doc, o.quote.rules.usage)
		if list, ok := r.doc.([]any); ok && !found { // a stream as one list, or a line an event
			for _, event := range list {
				r.addUsage(event, o.quote.rules.usage)
			}
		}
	}
}

// addUsage lays what is at the paths of usage over what is known: the keys of an object, anything
// else by the last word of its path. The last value of a stream wins: some upstreams correct at its
// end what they reported at its beginning. It returns whether anything was there.
func (r *reading) addUsage(doc any, paths []string) (found bool) {
	for _, path := range paths {
		for _, at := range answer.Values(doc, path) {
			object, ok := at.(map[string]any)
			if !ok {
				object = map[string]any{path[strings.LastIndexByte(path, '.')+1:]: at}
			}
			for key, value := range object {
				found = r.set(key, believed(value)) || found
			}
		}
	}
	return found
}

// set notes a value of usage, if there is one. A 0 does not replace a number: some gateways end
// their streams with zeros instead of leaving out what they do not know.
func (r *reading) set(key string, value any) bool {
	before, known := r.usage[key]
	if value == nil || !known && len(r.usage) >= maxUsage {
		return false
	}
	if _, number := before.(float64); number && value == 0.0 {
		return true
	}
	if r.usage == nil {
		r.usage = map[string]any{}
	}
	r.usage[key] = value
	return true
}

// believed is a value of usage without what is less than nothing: it would make up for the rest.
func believed(value any) any {
	switch v := value.(type) {
	case float64:
		if v < 0 {
			return nil
		}
	case map[string]any:
		kept := make(map[string]any, len(v))
		for key, value := range v {
			if value = believed(value); value != nil {
				kept[key] = value
			}
		}
		return kept
	}
	return value
}

// outcome is what one reading of the answer means.
func (o *Observation) outcome(r reading) (out Outcome) {
	env := maps.Clone(o.quote.env)
	answerNames(env, o.status, o.header, r.doc, o.size)
	env["usage"] = nil
	if r.usage != nil {
		env["usage"] = r.usage
	}
	o.quote.useResponse(env, &out)
	out.Refusal = o.refusal(env)
	out.Lessons, out.Unread = o.lessons(r.doc, env)
	if out.Refusal != nil && out.Refusal.Unread != "" {
		out.Unread = union(out.Unread, []string{out.Refusal.Unread})
	}
	o.settle(&out, r.doc, env)
	return out
}

// add makes of two meanings of an answer one that is not less than either.
func (out *Outcome) add(other Outcome) {
	out.Resources = nil // which of them the answer has is not known
	for i, c := range other.Costs {
		out.Costs[i].Units = max(out.Costs[i].Units, c.Units)
	}
	out.Missing, out.Unread = union(out.Missing, other.Missing), union(out.Unread, other.Unread)
	out.Lessons = union(out.Lessons, other.Lessons)
}

// union is a list with what it lacks of more.
func union[T comparable](list, more []T) []T {
	for _, v := range more {
		if !slices.Contains(list, v) {
			list = append(list, v)
		}
	}
	return list
}
