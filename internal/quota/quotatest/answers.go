package quotatest

import (
	"encoding/json"
	"errors"
	"reflect"
	"regexp"
	"strings"
	"time"

	"quotabudget/internal/quota"
)

// always lists the fields of an answer that are always compared: a field the vector leaves out must
// be empty. Other fields are compared only if the vector states them.
var always = map[string]string{
	"charge":       "error allowed never observed replayed limit retry_at reservation",
	"buckets":      "held suspended_until limits",
	"limits":       "used others remaining next_free_at",
	"reservations": "id units drawn left created_at expires_at manual note",
	"entries":      "at id units total labels",
	"sums":         "at labels units charges",
	"learn":        "error thought units reset",
	"release":      "error units",
	"extend":       "error expires_at",
	"between":      "units",
	"buckets_of":   "bucket units noted",
}

// sameAs maps verbs to others with the same kind of answer.
var sameAs = map[string]string{"reserve": "charge", "settle": "charge", "adjust": "charge",
	"takings": "entries", "sums_after": "sums"}

// check compares an answer with the expected one, want.
func (r *runner) check(verb string, want json.RawMessage, answer any, err error) {
	r.t.Helper()
	got := shown(answer)
	if fields, ok := got.(map[string]any); ok || answer == nil {
		if fields == nil {
			fields = map[string]any{}
		}
		if err != nil {
			fields["error"] = errorName(err)
		}
		got = fields
	} else if err != nil {
		r.t.Fatalf("%s: %v", r.step, err)
	}
	var wanted any = map[string]any{}
	if want != nil {
		decode(r.t, want, &wanted)
	}
	if kind, ok := sameAs[verb]; ok {
		verb = kind
	}
	r.compare(verb, verb, got, wanted)
}

// compare compares the part of an answer at the path at.
func (r *runner) compare(kind, at string, got, want any) {
	r.t.Helper()
	list, _ := want.([]any)
	gotList, isList := got.([]any)
	fields, _ := want.(map[string]any)
	gotFields, isObject := got.(map[string]any)
	switch {
	case isList || len(list) > 0:
		if len(list) != len(gotList) {
			r.t.Errorf("%s: %s = %v, want %v", r.step, at, got, want)
			return
		}
		for i := range list {
			r.compare(kind, at, gotList[i], list[i])
		}
	case isObject && always[kind] != "" || kind == "usage":
		names := strings.Fields(always[kind])
		for name := range fields {
			names = append(names, name)
		}
		for _, name := range names {
			r.compare(name, at+"."+name, gotFields[name], fields[name])
		}
	default:
		if n, number := want.(float64); number && isObject { // units of the bucket "default"
			want = shown(map[string]int64{quota.DefaultBucket: int64(n)})
		}
		want = shown(want)
		if !reflect.DeepEqual(got, want) && !(empty(got) && empty(want)) {
			r.t.Errorf("%s: %s = %v, want %v", r.step, at, got, want)
		}
	}
}

func empty(v any) bool {
	value := reflect.ValueOf(v)
	return v == nil || value.IsZero() ||
		(value.Kind() == reflect.Map || value.Kind() == reflect.Slice) && value.Len() == 0
}

var capital = regexp.MustCompile(`([a-z])([A-Z])`)

// shown returns a value as JSON decodes it, with the names of the vectors. Zero times are nil.
func shown(v any) (plain any) {
	text, err := json.Marshal(v)
	if err == nil {
		err = json.Unmarshal(text, &plain)
	}
	if err != nil {
		panic(err) // cannot happen: answers contain only strings, numbers and times
	}
	return renamed(plain)
}

func renamed(v any) any {
	switch v := v.(type) {
	case []any:
		for i := range v {
			v[i] = renamed(v[i])
		}
	case map[string]any:
		fields := map[string]any{}
		for name, field := range v {
			fields[strings.ToLower(capital.ReplaceAllString(name, "${1}_$2"))] = renamed(field)
		}
		return fields
	case string:
		if at, err := time.Parse(time.RFC3339Nano, v); err == nil && at.IsZero() {
			return nil
		}
	}
	return v
}

// errorNames maps the names of errors in the vectors to the errors.
var errorNames = map[string]error{
	"cost_exceeds_limit": quota.ErrCostExceedsLimit, "no_bucket": quota.ErrNoBucket,
	"no_reservation": quota.ErrNoReservation, "reservation_short": quota.ErrReservationShort,
	"settled_late": quota.ErrSettledLate, "no_entry": quota.ErrNoEntry,
	"key_reused": quota.ErrKeyReused, "malformed": quota.ErrMalformed,
	"span_changed": quota.ErrSpanChanged, "span_short": quota.ErrSpanShort,
}

func errorName(err error) string {
	for name, is := range errorNames {
		if errors.Is(err, is) {
			return name
		}
	}
	if err != nil {
		return "unexpected: " + err.Error()
	}
	return ""
}
