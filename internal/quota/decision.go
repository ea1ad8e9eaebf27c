package quota

import (
	"strings"
	"time"
)

// Decision is a ledger's answer. A refused charge is an answer, not an error.
type Decision struct {
	Allowed     bool
	Never       bool             // no waiting helps: the cost is larger than a limit
	Observed    bool             // recorded in observe mode although it would have been denied
	Replayed    bool             // repeats the answer to an earlier request with the same key
	Late        bool             `json:",omitempty"` // Settle only: the hold had become a charge
	Unmetered   bool             // passes as configured: the ledger could not be reached
	At          time.Time        // by the ledger's clock; when allowed, the stamp of its entry
	Entry       string           // ID of the entry that was written; "" for none
	Units       map[string]int64 // requested, by bucket; Settle: booked; Adjust: may be negative
	Remaining   map[string]int64 // units that another charge could take, by bucket with a limit
	RetryAt     time.Time        // when denied: the earliest moment at which it would fit
	Limit       string           // when denied: what denies longest, a limit or Suspended
	Reservation string           // ID, when units were set aside
	ExpiresAt   time.Time        // of the reservation
}

// Suspended, as Decision.Limit, means that the upstream or a person has closed the bucket.
const Suspended = "suspended"

// TooManyEstimates, as Decision.Limit of a reservation, means that the estimates in flight could be
// too low by more than Slack. Reserving the maximum instead may be allowed.
const TooManyEstimates = "estimates"

// RunMax, as Decision.Limit, means that a run has used all that its job may use in one run. Such a
// denial has no RetryAt.
const RunMax = "max"

// LimitKind returns Limit for a metric: without the label's value, of which there may be many.
func (d Decision) LimitKind() string {
	if IsLabelBucket(d.Limit) {
		kind, _, _ := strings.Cut(d.Limit, "=")
		return kind
	}
	return d.Limit
}

// RetryAfter returns how long until the cost fits if no caller charges meanwhile; 0 if allowed.
func (d Decision) RetryAfter() time.Duration {
	if d.Allowed || d.RetryAt.IsZero() {
		return 0
	}
	return max(0, d.RetryAt.Sub(d.At))
}

// BucketTotal is a bucket, or a part of one, with all units ever taken from it.
type BucketTotal struct {
	Bucket string
	Units  int64     // of all charges that were not cancelled, and of holds
	Noted  bool      // it was suspended and not resumed, or the upstream reported use by other programs
	LastAt time.Time // of the newest entry or hold
}

// Total returns all units ever taken from the bucket: the total of its newest entry and the units
// still held.
func (b *Bucket) Total(newest LogEntry) BucketTotal {
	t := BucketTotal{Bucket: b.Name, Units: newest.Total,
		Noted: b.State.SuspendedUntil != 0 || len(b.State.Others) > 0}
	last := newest.At
	for _, h := range b.Holds {
		t.Units += h.Left()
		last = max(last, h.Created)
	}
	t.LastAt = StampTime(last)
	return t
}

// BucketNames returns the names of buckets.
func BucketNames(all []BucketTotal) []string {
	names := make([]string, len(all))
	for i, b := range all {
		names[i] = b.Bucket
	}
	return names
}

// Usage is the usage of a credential's buckets at one moment.
type Usage struct {
	At      time.Time
	Buckets []BucketUsage
	LeftOut map[string]int // parts that are not among Buckets, by their bucket: see Budget.Listed
}

// BucketUsage is the usage of one bucket.
type BucketUsage struct {
	Bucket         string
	Held           int64     // set aside by reservations, unexpired and undrawn
	AtMost         int64     // the maximum that Held may become; Held if no call is in flight
	SuspendedUntil time.Time // zero when the bucket is open
	SuspendedBy    string    // with Reason and Since as in Suspension
	Reason         string
	SuspendedSince time.Time
	ResetAt        time.Time // the last known end of an anchored window, past or future
	Limits         []LimitUsage
}

// Ends returns when a window of the bucket ends as a whole: a calendar window, or an anchored one
// whose end is known. It is zero for windows that never do.
func (u BucketUsage) Ends(w Window, now time.Time) time.Time {
	switch {
	case w.IsCalendar():
		_, end := w.Bounds(now)
		return end.UTC()
	case w.Anchored && u.ResetAt.After(now):
		return u.ResetAt
	}
	return time.Time{}
}

// LimitUsage is the usage of one limit.
type LimitUsage struct {
	Limit      Limit
	Used       int64
	Others     int64     // units of Used that other programs used, as the upstream reported
	Remaining  int64     // for scheduled charges: cap − used − held, at least 0
	NextFreeAt time.Time // when the next units come free; zero when none are used or held
	// CountsFrom is the time of the log's first entry, if the log has forgotten earlier ones and the
	// window began before it: a ledger keeps entries no longer than its limits so far needed.
	CountsFrom time.Time
}

// Reservation is units of one bucket set aside.
type Reservation struct {
	ID        string // the same in all its buckets
	Bucket    string
	Units     int64 // as reserved
	Most      int64 // the maximum that they may become; Units if they are exact
	Drawn     int64
	Left      int64
	CreatedAt time.Time
	ExpiresAt time.Time
	Lapse     Lapse
	Manual    bool
	Note      string
}

// Query picks entries of one bucket's log.
type Query struct {
	Credential string
	Bucket     string
	Since      time.Time // exclusive
	Until      time.Time // inclusive; zero for the end of the log
	Limit      int       // maximum number of newest entries; 0 for all
	First      int       // maximum number of oldest entries, instead of Limit; 0 for all
	Notes      bool      // read the notes of corrections instead of the entries
}

// Span returns the stamps of the query's period: later than after, and at most until.
func (q Query) Span() (after, until int64) {
	return micros(q.Since, -Never), micros(q.Until, Never)
}

// Entry is one line of the log.
type Entry struct {
	At     time.Time
	ID     string
	Bucket string
	Units  int64
	Total  int64 // running total of the bucket after this entry
	Labels Labels
}
