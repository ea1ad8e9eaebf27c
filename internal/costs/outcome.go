package costs

import (
	"time"

	"quotabudget/internal/quota"
)

// Outcome is what a response reports about a call.
type Outcome struct {
	Costs   []quota.Cost // usage by bucket; the maximum if the response does not report it
	Missing []string     // what the response should have reported and did not
	Pending string       // path of a request for the end of the call; Costs are none yet
	Done    bool         // the response is about the end of a call that another response began
	Results string       // then, path of a request for what it used, line by line; or ""
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

// Moment is a time in a response: At, or After some time from now. The zero Moment is none.
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

	// Of an Exhausted or Throttled bucket:
	Bucket string    // "" if not reported: the bucket that the call was charged to
	Metric string    // the upstream's name for the bucket; the list may lack it
	Window bool      // until the end of the bucket's calendar window
	Until  Moment    // zero if not reported
	Since  time.Time // when the upstream's window began; zero if not reported
	Unread string    // the text for Until, if that cannot be read
}
