package quota

import (
	"context"
	"time"
)

// Ledger is the store of the log. Each method that changes it is one atomic step, decided at the
// time of the ledger's own clock. Errors are ErrUnreachable when the ledger could not be asked (or
// its answer was lost), ErrLedgerUnusable when a person must set it right first, ErrMalformed for
// what Check refuses, and otherwise as stated. quotatest holds every implementation to this
// contract.
type Ledger interface {
	// Charge takes c.Costs, all or nothing, or says when they would fit. A denial changes nothing.
	// Errors: CostExceedsLimitError (with a Decision that says Never), ErrNoBucket, ErrKeyReused,
	// ErrNoReservation, ErrReservationShort.
	Charge(ctx context.Context, c Charge) (Decision, error)
	// Reserve sets r.Costs aside, all or nothing, until r.TTL has passed, or says when they would
	// fit. What happens then is r.Lapse. Errors as for Charge.
	Reserve(ctx context.Context, r Reserve) (Decision, error)
	// Settle ends a reservation: in each bucket it writes an entry of what was used, now, and gives
	// the rest back. It checks no limit: what was used beyond the reservation has been billed. Of a
	// reservation that lapsed into entries (LapseCharge) it takes off what was not used, and
	// appends what was used beyond. Settling again answers as the first time. Errors:
	// ErrNoReservation, ErrReservationShort with s.Within, ErrKeyReused when it was settled with
	// other costs, ErrSettledLate when too many entries came after those of the lapse.
	Settle(ctx context.Context, s Settle) (Decision, error)
	// Extend has an open reservation last until e.TTL from now, in all its buckets, and returns
	// when it expires then. It never shortens: one that lasts longer stays as it is. Errors:
	// ErrNoReservation.
	Extend(ctx context.Context, e Extend) (time.Time, error)
	// Release gives back what is left of a reservation and returns how many units that was, by
	// bucket. Errors: ErrNoReservation.
	Release(ctx context.Context, credential, reservation string) (map[string]int64, error)
	// Learn keeps what others used in the window of one limit according to the upstream, and moves
	// the end of an anchored window. It changes no other limit of the bucket, and never frees units,
	// except at the end of such a window.
	Learn(ctx context.Context, l Learn) (Learned, error)
	// Cancel takes back the charge c that was allowed by d, in every bucket, as if it had never
	// been made, and forgets its idempotency key. Errors: ErrNoEntry.
	Cancel(ctx context.Context, c Charge, d Decision) error
	// Adjust corrects what the log says was used: it adds an entry, or takes units off the newest
	// entries, as if they had never been more, and keeps a note of that. All or nothing; no limit
	// is asked. Errors: ErrSpanChanged, ErrSpanShort, ErrKeyReused, and ErrNoEntry when too many
	// entries came after those that it would change.
	Adjust(ctx context.Context, a Adjust) (Decision, error)
	// Takings lists what Adjust took off the entries of one bucket, oldest first.
	Takings(ctx context.Context, q Query) ([]Taking, error)
	// Suspend denies every charge on the bucket until the given time; a zero time resumes it.
	Suspend(ctx context.Context, s Suspension) error
	// Usage reports on the buckets of limits, in their order, as one consistent picture.
	Usage(ctx context.Context, credential string, limits []Limit) (Usage, error)
	// Reservations lists what is set aside in the bucket and not yet expired, oldest first.
	Reservations(ctx context.Context, credential, bucket string) ([]Reservation, error)
	// Entries lists the log of one bucket, oldest first.
	Entries(ctx context.Context, q Query) ([]Entry, error)
	// Sums adds up the log of one bucket by grains of time and by labels, oldest first. It equals
	// AddUp of the entries, and takes as long for a log of a million entries as for a short one.
	Sums(ctx context.Context, q SumQuery) ([]Sum, error)
	// Between is the units of the entries of one bucket stamped after from and not after to. It
	// takes as long however many there are.
	Between(ctx context.Context, credential, bucket string, from, to time.Time) (int64, error)
	// BucketsOf returns the buckets that the ledger holds anything of, whether they have a limit or
	// not, in the order of their names. It takes one query, or one for each thousand.
	BucketsOf(ctx context.Context, credential string) ([]BucketTotal, error)
	// Mark is a text that is another one whenever anything in the buckets was changed since. It is
	// cheap to ask again and again. A reservation that expires changes nothing until the log is
	// read.
	Mark(ctx context.Context, credential string, buckets []string) (string, error)
	// Denied counts a charge that was denied, see DenialCounter.
	Denied(credential string, d Denial)
	// Denials lists what was denied in the hours since then, oldest first. It lacks what a process
	// has not written yet, or lost while the ledger was away.
	Denials(ctx context.Context, credential string, since time.Time) ([]Denial, error)
	// Time is the ledger's clock.
	Time(ctx context.Context) (time.Time, error)
	Close() error
}

// Charge asks for units before a call.
type Charge struct {
	Credential  string
	ID          string  // of the entry; made by the caller with NewID
	Key         string  // idempotency key; "" for none
	Costs       []Cost  // at least one; each bucket at most once; at least 1 unit each
	Limits      []Limit // every limit of every bucket in Costs
	Labels      Labels
	Unlimited   bool   // buckets without a limit are recorded; else they are ErrNoBucket
	Manual      bool   // may use the headroom
	Observe     bool   // record the charge even where it would be denied
	DryRun      bool   // decide and answer, but write nothing: the answer has no Entry
	Reservation string // draw the units of its bucket from what was set aside; "" to charge freely
}

// Lapse is what becomes of a reservation that nobody settles.
type Lapse string

const (
	// LapseRelease gives the units back, as for those that a person set aside.
	LapseRelease Lapse = "release"
	// LapseCharge makes entries of them, with the reservation's ID and labels, stamped when it
	// expires: a call that was sent has usually been billed, whatever became of the caller. Of an
	// estimate, the entry has the most that the call can have taken. Units that are limited by
	// concurrent windows alone are given back all the same.
	LapseCharge Lapse = "charge"
)

// Reserve asks to set units aside.
type Reserve struct {
	Credential string
	ID         string        // from ReservationID, with the buckets of Costs in order
	Key        string        // idempotency key; "" for none
	Costs      []Cost        // as in Charge
	Limits     []Limit       // as in Charge
	TTL        time.Duration // at least 1 ms
	Lapse      Lapse         // "" is LapseRelease
	Labels     Labels        // of the entries of a lapse; none without LapseCharge
	Note       string
	Unlimited  bool // as in Charge
	Manual     bool
	Observe    bool
}

// Extend asks that a reservation does not expire yet: who holds it is still at work.
type Extend struct {
	Credential  string
	Reservation string
	TTL         time.Duration // from now; as in Reserve
}

// AllUnits, as the units of a settled cost, is all that is left of the reservation.
const AllUnits = -1

// Settle says what was used of a reservation.
type Settle struct {
	Credential  string
	Reservation string
	ID          string // of the entries; made by the caller with NewID
	// Costs are the units used in each bucket, besides those drawn: 0 or more, or AllUnits, which
	// is meant for a bucket that is not named. Where all limits are concurrent, 0 is meant.
	Costs  []Cost
	Within bool // refuse more units than are left
	// Once says that the caller never needs the answer again, so that it is not kept: settled again,
	// there is no such reservation.
	Once   bool
	Labels Labels
	Limits []Limit // of the buckets, to answer what remains
}

// Learn is what a response of the upstream says about a limit.
type Learn struct {
	Credential string
	Limit      Limit
	Remaining  int64     // units that are left; -1 when it does not say
	Reset      time.Time // when the window ends; zero when it does not say
	// AskedAt is when the call was charged, by the ledger's clock: the answer tells of no earlier
	// moment.
	AskedAt time.Time
}

// Asked is AskedAt in Unix µs; n, the time of the decision, when it is not known.
func (l Learn) Asked(n int64) int64 {
	if l.AskedAt.IsZero() {
		return n
	}
	return min(n, l.AskedAt.UnixMicro())
}

// ResetMicros returns Reset in Unix µs, 0 for none.
func (l Learn) ResetMicros() int64 {
	if l.Reset.IsZero() {
		return 0
	}
	return l.Reset.UnixMicro()
}

// Stale reports whether what remains is of a window that is over at n: reset is the end of the
// anchored window by what is known now.
func (l Learn) Stale(reset, n int64) bool {
	reported, w := l.ResetMicros(), l.Limit.Window
	switch {
	case reported > 0 && reported <= n:
		return true
	case w.Anchored:
		return reported > 0 && reported < reset-w.Length.Microseconds()/60
	case w.IsCalendar():
		start, _ := w.Bounds(time.UnixMicro(n))
		return l.Asked(n) < start.UnixMicro()
	}
	return false
}

// Learned is what a ledger made of it.
type Learned struct {
	At      time.Time
	Thought int64     // units that were left by the ledger's own count, if all that is held is used
	Units   int64     // that others used and the ledger had not counted in this window; 0 for none
	Reset   time.Time // when the anchored window ends, as far as is known
}

// Suspension is a bucket that is closed until a given time, who closed it, when and why.
type Suspension struct {
	Credential string
	Bucket     string
	Until      time.Time
	By         string    // the upstream, or a person; "" where that is not known
	Reason     string    // in one line; "" for none
	Since      time.Time // when it was suspended; set by the ledger
}

// ByUpstream, as Suspension.By, says that the upstream itself reported the bucket as exhausted.
const ByUpstream = "upstream"

// Adjust is a correction of what was used in a span of the log.
type Adjust struct {
	Credential string
	ID         string // of the entry, or of the note; made by the caller with NewID
	Key        string // idempotency key; "" for none
	Bucket     string
	// Units are those that were used besides, or, negative, those that were not. Units of an entry
	// are at most MaxUnits.
	Units int64
	// After and Until are the span: entries stamped after the one and not after the other. A zero
	// Until is now. Units are added at its end, or as shortly before as no other entry is stamped;
	// they are taken off its newest entries.
	After, Until time.Time
	// Was is what the span must hold, so that nothing is corrected that has changed since it was
	// looked at; nil for whatever it holds.
	Was    *int64
	Limits []Limit // of the bucket: entries are kept as long as they need
	Labels Labels
	DryRun bool // check, but write nothing: the answer has no Entry
}

// Taking is a note of units that were taken off entries.
type Taking struct {
	At     time.Time // the end of the span, or when it was noted if that was earlier
	ID     string
	Bucket string
	Units  int64 // above 0
	Labels Labels
}

// Decision is a ledger's answer. A refused charge is an answer, not an error.
type Decision struct {
	Allowed     bool
	Never       bool             // no waiting helps: the cost is larger than a limit
	Observed    bool             // recorded in observe mode although it would have been denied
	Replayed    bool             // the idempotency key was known: this is the answer given then
	Unmetered   bool             // the ledger could not be reached; the configuration lets it pass
	At          time.Time        // by the ledger's clock; when allowed, the stamp of its entry
	Entry       string           // ID of the entry that was written; "" when none was
	Units       map[string]int64 // asked for, by bucket; of Settle: booked; Adjust: may be negative
	Remaining   map[string]int64 // by bucket with a limit: what another charge could take now
	RetryAt     time.Time        // when denied: the earliest moment at which it would fit
	Limit       string           // when denied: what denies longest, a limit or Suspended
	Reservation string           // ID, when units were set aside
	ExpiresAt   time.Time        // of the reservation
}

// Suspended, as Decision.Limit, says that the bucket is closed: the upstream said so, or a person
// did.
const Suspended = "suspended"

// TooManyEstimates, as Decision.Limit of a reservation, says that the estimates in flight could be
// too low by more than Slack. The same reservation of the most that the call can take may be
// allowed.
const TooManyEstimates = "estimates"

// RunMax, as Decision.Limit, says that a run has taken all that its job may take in one run. Such a
// denial has no RetryAt.
const RunMax = "max"

// RetryAfter is how long until the cost would fit if nobody charged meanwhile; 0 when it was
// allowed.
func (d Decision) RetryAfter() time.Duration {
	if d.Allowed || d.RetryAt.IsZero() {
		return 0
	}
	return max(0, d.RetryAt.Sub(d.At))
}

// BucketTotal is a bucket, or a part of one, with all that was ever taken from it.
type BucketTotal struct {
	Bucket string
	Units  int64 // of all charges that were not cancelled, and of holds
	Noted  bool  // it was suspended and not resumed, or the upstream reported that others used it
}

// BucketNames returns the names of buckets.
func BucketNames(all []BucketTotal) []string {
	names := make([]string, len(all))
	for i, b := range all {
		names[i] = b.Bucket
	}
	return names
}

// Usage is the standing of a credential's buckets at one moment.
type Usage struct {
	At      time.Time
	Buckets []BucketUsage
	LeftOut map[string]int // parts that are not among Buckets, by their bucket: see Budget.Listed
}

// BucketUsage is the standing of one bucket.
type BucketUsage struct {
	Bucket         string
	Held           int64     // set aside by reservations, unexpired and undrawn
	AtMost         int64     // what these can turn out to take: Held, where no call is in flight
	SuspendedUntil time.Time // zero when the bucket is open
	SuspendedBy    string    // with Reason and Since as in Suspension
	Reason         string
	SuspendedSince time.Time
	ResetAt        time.Time // the last end of an anchored window that is known, past or to come
	Limits         []LimitUsage
}

// Ends is when a window of the bucket ends as a whole: a calendar window, or an anchored one whose
// end is known. It is zero for windows that never do.
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

// LimitUsage is the standing of one limit.
type LimitUsage struct {
	Limit      Limit
	Used       int64
	Others     int64     // units of Used that others used, as the upstream reported
	Remaining  int64     // for scheduled charges: cap − used − held, at least 0
	NextFreeAt time.Time // when the next units come free; zero when none are used or held
}

// Reservation is units of one bucket set aside.
type Reservation struct {
	ID        string // the same in all its buckets
	Bucket    string
	Units     int64 // as reserved
	Most      int64 // what they can turn out to be; as Units when they are no estimate
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
	Limit      int       // at most so many, the newest; 0 for all
	First      int       // at most so many, the oldest; 0 for all. Not together with Limit
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
