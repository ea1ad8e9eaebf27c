package costs

import (
	"time"

	"quotabudget/internal/quota"
)

// Outcome is what a response reports about a call.
type Outcome struct {
	Costs   []quota.Cost // usage by bucket; the maximum if the response does not report it
	Missing []string     // what the answer should have said and did not
	Pending string       // path of a request for the end of the call; Costs are none yet
	Done    bool         // the response is about the end of a call that another response began
	Results string       // then, path of a request for what it used, line by line; or ""
	Lessons []Lesson
	// Unlisted is what the response names, where that differs from the request, and the list has no
	// row for.
	Unlisted []Unlisted
	Unread   []string // rate-limit values that cannot be read: "retry-after: soon"
	Refusal  *Refusal // nil for a success
}

// Lesson is what an answer tells about a limit of the upstream's.
type Lesson struct {
	Bucket    string       // the part that the call was charged to, where it is split
	Window    quota.Window // of the limit; zero where the list does not say
	Limit     int64        // 0 where it does not say
	Remaining int64        // -1 where it does not say
	Reset     Moment
	Why       string // where it says so: "x-ratelimit-remaining"
	Header    bool   // it is said in a header, so maybe before the upstream knew what the call took
}

// Moment is a time that an answer tells: At, or After some time from now. The zero Moment is none.
type Moment struct {
	At    time.Time
	After time.Duration
}

// Time is the moment as seen at now; zero where there is none.
func (m Moment) Time(now time.Time) time.Time {
	if m.After > 0 {
		return now.Add(m.After)
	}
	return m.At
}

// IsZero reports whether the answer tells no time.
func (m Moment) IsZero() bool { return m == Moment{} }

// Kind is what a refusal means for the caller.
type Kind string

// The kinds of refusals.
const (
	Permanent     Kind = "permanent"      // this request will fail however often it is sent
	Transient     Kind = "transient"      // the upstream failed: retry a few times
	Throttled     Kind = "throttled"      // too many requests in a short time: retry after a while
	Exhausted     Kind = "exhausted"      // a bucket is empty: retry after its reset, not before
	BadCredential Kind = "bad credential" // the credential is wrong, missing or blocked
)

// Refusal is what an answer that is no success says.
type Refusal struct {
	Kind    Kind
	As      string // what the list calls it besides: "no chart"
	Reason  string // the upstream's word for it: "quotaExceeded"
	Message string // as plain text in one line

	// Of an Exhausted or Throttled bucket:
	Bucket string    // "" where the answer does not say: what the call was charged to
	Metric string    // the upstream's name for the bucket; the list may lack it
	Window bool      // until the end of the bucket's calendar window
	Until  Moment    // zero where the answer does not say
	Since  time.Time // when the upstream's window began; zero where it does not say
	Unread string    // what it says of Until, if that cannot be read
}
