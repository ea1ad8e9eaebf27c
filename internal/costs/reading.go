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

// parse decodes the answer, or an event, as each library would.
func (o *Observation) parse(data []byte) bool {
	last, first, err := answer.ParseBoth(data)
	if err != nil {
		return false
	}
	o.readings[0].doc, o.readings[1].doc = last, first
	o.twice = o.twice || !reflect.DeepEqual(last, first)
	return true
}

func (o *Observation) addUsage() {
	for i := range o.readings {
		o.readings[i].addUsage(o.quote.rules.usage)
	}
}

// addUsage lays what is at the paths of usage over what is known: the keys of an object, anything
// else by the last word of its path. A number that a stream has told before does not get less.
func (r *reading) addUsage(paths []string) {
	for _, path := range paths {
		found, _ := answer.Find(r.doc, path)
		object, ok := found.(map[string]any)
		if !ok {
			object = map[string]any{path[strings.LastIndexByte(path, '.')+1:]: found}
		}
		for key, value := range object {
			value = believed(value)
			if r.usage == nil && value != nil {
				r.usage = map[string]any{}
			}
			if value != nil && len(r.usage) < maxUsage && !less(value, r.usage[key]) {
				r.usage[key] = value
			}
		}
	}
}

// less reports whether a value is a number, and less than another one.
func less(value, than any) bool {
	n, ok := value.(float64)
	most, known := than.(float64)
	return ok && known && n < most
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
