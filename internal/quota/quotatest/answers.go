package quotatest

import (
	"encoding/json"
	"maps"
	"reflect"
	"time"

	"quotabudget/internal/quota"
)

// decisionWant is a decision as the vectors state it. What stands in the first group is compared
// always, absent meaning false or none; what stands in the second only where it is stated.
type decisionWant struct {
	Error       string     `json:"error"`
	Allowed     bool       `json:"allowed"`
	Never       bool       `json:"never"`
	Observed    bool       `json:"observed"`
	Replayed    bool       `json:"replayed"`
	Limit       string     `json:"limit"`
	RetryAt     *time.Time `json:"retry_at"`
	Reservation string     `json:"reservation"`

	At        *time.Time       `json:"at"`
	Entry     *string          `json:"entry"`
	Units     map[string]int64 `json:"units"`
	Remaining json.RawMessage  `json:"remaining"` // a number means that of the bucket "default"
	ExpiresAt *time.Time       `json:"expires_at"`
}

func (r *runner) checkDecision(raw json.RawMessage, d quota.Decision, err error) {
	r.t.Helper()
	var w decisionWant
	r.want(raw, &w)
	r.equal("error", errorName(err), w.Error)
	r.equal("allowed", d.Allowed, w.Allowed)
	r.equal("never", d.Never, w.Never)
	r.equal("observed", d.Observed, w.Observed)
	r.equal("replayed", d.Replayed, w.Replayed)
	r.equal("limit", d.Limit, w.Limit)
	r.equalTime("retry_at", d.RetryAt, timeOf(w.RetryAt))
	r.equal("reservation", d.Reservation, w.Reservation)
	if w.At != nil {
		r.equalTime("at", d.At, *w.At)
	}
	if w.Entry != nil {
		r.equal("entry", d.Entry, *w.Entry)
	}
	if w.Units != nil {
		r.equal("units", d.Units, w.Units)
	}
	if w.ExpiresAt != nil {
		r.equalTime("expires_at", d.ExpiresAt, *w.ExpiresAt)
	}
	if w.Remaining != nil {
		remaining := map[string]int64{quota.DefaultBucket: 0}
		var n int64
		if json.Unmarshal(w.Remaining, &n) == nil {
			remaining[quota.DefaultBucket] = n
		} else {
			clear(remaining)
			r.want(w.Remaining, &remaining)
		}
		if !maps.Equal(d.Remaining, remaining) {
			r.t.Errorf("%s: remaining = %v, want %v", r.step, d.Remaining, remaining)
		}
	}
}

func (r *runner) checkError(raw json.RawMessage, err error) {
	r.t.Helper()
	var w struct {
		Error string `json:"error"`
	}
	r.want(raw, &w)
	r.equal("error", errorName(err), w.Error)
}

func (r *runner) checkRelease(raw json.RawMessage, left int64, err error) {
	r.t.Helper()
	var w struct {
		Error string `json:"error"`
		Units int64  `json:"units"`
	}
	r.want(raw, &w)
	r.equal("error", errorName(err), w.Error)
	r.equal("units", left, w.Units)
}

type usageWant struct {
	At      *time.Time `json:"at"`
	Buckets []struct {
		Bucket         string     `json:"bucket"`
		Held           int64      `json:"held"`
		SuspendedUntil *time.Time `json:"suspended_until"`
		Limits         []struct {
			Used       int64      `json:"used"`
			Remaining  int64      `json:"remaining"`
			NextFreeAt *time.Time `json:"next_free_at"`
		} `json:"limits"`
	} `json:"buckets"`
}

func (r *runner) checkUsage(raw json.RawMessage, u quota.Usage) {
	r.t.Helper()
	var w usageWant
	r.want(raw, &w)
	if w.At != nil {
		r.equalTime("at", u.At, *w.At)
	}
	if len(u.Buckets) != len(w.Buckets) {
		r.t.Fatalf("%s: %d buckets, want %d: %+v", r.step, len(u.Buckets), len(w.Buckets), u)
	}
	for i, want := range w.Buckets {
		got := u.Buckets[i]
		r.equal("bucket", got.Bucket, bucketName(want.Bucket))
		r.equal("held", got.Held, want.Held)
		r.equalTime("suspended_until", got.SuspendedUntil, timeOf(want.SuspendedUntil))
		if len(got.Limits) != len(want.Limits) {
			r.t.Fatalf("%s: %d limits, want %d: %+v", r.step, len(got.Limits), len(want.Limits), got)
		}
		for j, l := range want.Limits {
			r.equal("used", got.Limits[j].Used, l.Used)
			r.equal("remaining", got.Limits[j].Remaining, l.Remaining)
			r.equalTime("next_free_at", got.Limits[j].NextFreeAt, timeOf(l.NextFreeAt))
		}
	}
}

type reservationWant struct {
	ID        string    `json:"id"`
	Units     int64     `json:"units"`
	Drawn     int64     `json:"drawn"`
	Left      int64     `json:"left"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at"`
	Manual    bool      `json:"manual"`
	Note      string    `json:"note"`
}

func (r *runner) checkReservations(raw json.RawMessage, list []quota.Reservation) {
	r.t.Helper()
	want := []reservationWant{}
	r.want(raw, &want)
	got := make([]reservationWant, len(list))
	for i, v := range list {
		got[i] = reservationWant{v.ID, v.Units, v.Drawn, v.Left, v.CreatedAt.UTC(), v.ExpiresAt.UTC(), v.Manual, v.Note}
	}
	r.equal("reservations", got, want)
}

type entryWant struct {
	At     time.Time         `json:"at"`
	ID     string            `json:"id"`
	Units  int64             `json:"units"`
	Total  int64             `json:"total"`
	Labels map[string]string `json:"labels"`
}

func (r *runner) checkEntries(raw json.RawMessage, list []quota.Entry) {
	r.t.Helper()
	want := []entryWant{}
	r.want(raw, &want)
	got := make([]entryWant, len(list))
	for i, e := range list {
		got[i] = entryWant{At: e.At.UTC(), ID: e.ID, Units: e.Units, Total: e.Total}
		if len(e.Labels) > 0 {
			got[i].Labels = e.Labels
		}
	}
	r.equal("entries", got, want)
}

func (r *runner) equal(what string, got, want any) {
	r.t.Helper()
	if !reflect.DeepEqual(got, want) {
		r.t.Errorf("%s: %s = %v, want %v", r.step, what, got, want)
	}
}

func (r *runner) equalTime(what string, got, want time.Time) {
	r.t.Helper()
	if !got.Equal(want) {
		r.t.Errorf("%s: %s = %s, want %s", r.step, what, got.UTC().Format(time.RFC3339Nano), want.UTC().Format(time.RFC3339Nano))
	}
}
