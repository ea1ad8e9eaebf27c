package quotatest

import (
	"encoding/json"
	"errors"
	"reflect"
	"time"

	"quotabudget/internal/quota"
)

// decisionAnswer is a decision as the vectors state it. The first group is compared always, where
// absent means false or none; the second only where it is stated.
type decisionAnswer struct {
	Error       string     `json:"error"`
	Allowed     bool       `json:"allowed"`
	Never       bool       `json:"never"`
	Observed    bool       `json:"observed"`
	Replayed    bool       `json:"replayed"`
	Limit       string     `json:"limit"`
	RetryAt     *time.Time `json:"retry_at"`
	Reservation string     `json:"reservation"`

	At        *time.Time `json:"at"`
	Entry     *string    `json:"entry"`
	Units     remaining  `json:"units"`
	Remaining remaining  `json:"remaining"`
	ExpiresAt *time.Time `json:"expires_at"`
}

// always is how many fields of a decisionAnswer are compared always.
const always = 8

// remaining is by bucket; a number alone is that of the bucket "default".
type remaining map[string]int64

func (r *remaining) UnmarshalJSON(text []byte) error {
	var n int64
	if json.Unmarshal(text, &n) == nil {
		*r = remaining{quota.DefaultBucket: n}
		return nil
	}
	return json.Unmarshal(text, (*map[string]int64)(r))
}

func (r *runner) checkDecision(raw json.RawMessage, d quota.Decision, err error) {
	r.t.Helper()
	var want decisionAnswer
	r.want(raw, &want)
	got := decisionAnswer{
		errorName(err), d.Allowed, d.Never, d.Observed, d.Replayed, d.Limit, stated(d.RetryAt),
		d.Reservation, stated(d.At), &d.Entry, d.Units, d.Remaining, stated(d.ExpiresAt),
	}
	if r.coarse {
		got.RetryAt = want.RetryAt
	}
	all, wanted := reflect.ValueOf(&got).Elem(), reflect.ValueOf(want)
	for i := range all.NumField() {
		name := all.Type().Field(i).Name
		if i < always || !wanted.Field(i).IsNil() {
			r.equal(name, all.Field(i).Interface(), wanted.Field(i).Interface())
		}
	}
}

// stated is a time as the vectors state it: nil for none.
func stated(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}

// checkError compares an error, and the units that were given back.
func (r *runner) checkError(raw json.RawMessage, units int64, err error) {
	r.t.Helper()
	var want struct {
		Error string `json:"error"`
		Units int64  `json:"units"`
	}
	r.want(raw, &want)
	r.equal("error", errorName(err), want.Error)
	r.equal("units", units, want.Units)
}

// checkExtended compares when a reservation expires.
func (r *runner) checkExtended(raw json.RawMessage, until time.Time, err error) {
	r.t.Helper()
	var want struct {
		Error     string    `json:"error"`
		ExpiresAt time.Time `json:"expires_at"`
	}
	r.want(raw, &want)
	r.equal("error", errorName(err), want.Error)
	r.equal("expires_at", until, want.ExpiresAt)
}

type usageAnswer struct {
	At      *time.Time     `json:"at"` // compared where it is stated
	Buckets []bucketAnswer `json:"buckets"`
}

type bucketAnswer struct {
	Bucket         string        `json:"bucket"`
	Held           int64         `json:"held"`
	SuspendedUntil *time.Time    `json:"suspended_until"`
	Limits         []limitAnswer `json:"limits"`
}

type limitAnswer struct {
	Used       int64      `json:"used"`
	Others     int64      `json:"others"`
	Remaining  int64      `json:"remaining"`
	NextFreeAt *time.Time `json:"next_free_at"`
}

func (r *runner) checkUsage(raw json.RawMessage, u quota.Usage) {
	r.t.Helper()
	var want, got usageAnswer
	r.want(raw, &want)
	for i := range want.Buckets {
		want.Buckets[i].Bucket = bucketName(want.Buckets[i].Bucket)
	}
	if want.At != nil {
		got.At = stated(u.At)
	}
	for i, b := range u.Buckets {
		bucket := bucketAnswer{b.Bucket, b.Held, stated(b.SuspendedUntil), nil}
		for j, l := range b.Limits {
			limit := limitAnswer{l.Used, l.Others, l.Remaining, stated(l.NextFreeAt)}
			if r.coarse {
				limit.NextFreeAt = want.Buckets[i].Limits[j].NextFreeAt
			}
			bucket.Limits = append(bucket.Limits, limit)
		}
		got.Buckets = append(got.Buckets, bucket)
	}
	r.equal("usage", got, want)
}

type reservationAnswer struct {
	ID        string     `json:"id"`
	Units     int64      `json:"units"`
	Drawn     int64      `json:"drawn"`
	Left      int64      `json:"left"`
	CreatedAt *time.Time `json:"created_at"`
	ExpiresAt *time.Time `json:"expires_at"`
	Manual    bool       `json:"manual"`
	Note      string     `json:"note"`
}

func (r *runner) checkReservations(raw json.RawMessage, list []quota.Reservation) {
	r.t.Helper()
	want, got := []reservationAnswer{}, []reservationAnswer{}
	r.want(raw, &want)
	for _, v := range list {
		got = append(got, reservationAnswer{v.ID, v.Units, v.Drawn, v.Left, stated(v.CreatedAt),
			stated(v.ExpiresAt), v.Manual, v.Note})
	}
	r.equal("reservations", got, want)
}

// checkLearned compares what is stated of at and reset.
func (r *runner) checkLearned(raw json.RawMessage, l quota.Learned) {
	r.t.Helper()
	var want struct {
		Thought int64      `json:"thought"`
		Units   int64      `json:"units"`
		Reset   *time.Time `json:"reset"`
	}
	r.want(raw, &want)
	r.equal("thought", l.Thought, want.Thought)
	r.equal("units", l.Units, want.Units)
	r.equal("reset", stated(l.Reset), want.Reset)
}

type entryAnswer struct {
	At     *time.Time   `json:"at"`
	ID     string       `json:"id"`
	Units  int64        `json:"units"`
	Total  int64        `json:"total"`
	Labels quota.Labels `json:"labels"`
}

func (r *runner) checkEntries(raw json.RawMessage, list []quota.Entry) {
	r.t.Helper()
	want, got := []entryAnswer{}, []entryAnswer{}
	r.want(raw, &want)
	for _, e := range list {
		if len(e.Labels) == 0 {
			e.Labels = nil
		}
		got = append(got, entryAnswer{stated(e.At), e.ID, e.Units, e.Total, e.Labels})
	}
	r.equal("entries", got, want)
}

func (r *runner) checkTakings(raw json.RawMessage, list []quota.Taking) {
	r.t.Helper()
	entries := make([]quota.Entry, len(list))
	for i, t := range list {
		entries[i] = quota.Entry{At: t.At, ID: t.ID, Units: t.Units, Labels: t.Labels}
	}
	r.checkEntries(raw, entries)
}

func (r *runner) want(raw json.RawMessage, into any) {
	r.t.Helper()
	if raw == nil {
		raw = json.RawMessage("{}")
	}
	r.fatal(strict(raw, into))
}

// equal compares what JSON makes of both.
func (r *runner) equal(what string, got, want any) {
	r.t.Helper()
	a, err := json.Marshal(got)
	b, err2 := json.Marshal(want)
	r.fatal(errors.Join(err, err2))
	if string(a) != string(b) {
		r.t.Errorf("%s: %s = %s, want %s", r.step, what, a, b)
	}
}

func (r *runner) fatal(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatalf("%s: %v", r.step, err)
	}
}

// errorNames is what the vectors call the errors.
var errorNames = []struct {
	name string
	err  error
}{
	{"cost_exceeds_limit", quota.ErrCostExceedsLimit}, {"no_bucket", quota.ErrNoBucket},
	{"no_reservation", quota.ErrNoReservation}, {"reservation_short", quota.ErrReservationShort},
	{"settled_late", quota.ErrSettledLate}, {"no_entry", quota.ErrNoEntry},
	{"key_reused", quota.ErrKeyReused},
	{"malformed", quota.ErrMalformed}, {"span_changed", quota.ErrSpanChanged},
	{"span_short", quota.ErrSpanShort},
}

func errorName(err error) string {
	if err == nil {
		return ""
	}
	for _, e := range errorNames {
		if errors.Is(err, e.err) {
			return e.name
		}
	}
	return "unexpected: " + err.Error()
}
