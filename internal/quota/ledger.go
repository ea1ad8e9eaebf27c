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
	// Reserve sets units aside until r.TTL has passed. Errors as for Charge.
	Reserve(ctx context.Context, r Reserve) (Decision, error)
	// Commit settles a reservation: it writes an entry of c.Units now and gives the rest back. It
	// checks no limit, because the units were set aside. Committing again answers as the first
	// time. Errors: ErrNoReservation, ErrReservationShort, ErrKeyReused when it was committed with
	// other units.
	Commit(ctx context.Context, c Commit) (Decision, error)
	// Release gives back what is left of a reservation and returns how many units that was. Errors:
	// ErrNoReservation.
	Release(ctx context.Context, credential, reservation string) (int64, error)
	// Cancel takes back the charge c that was allowed by d, in every bucket, as if it had never
	// been made, and forgets its idempotency key. Errors: ErrNoEntry.
	Cancel(ctx context.Context, c Charge, d Decision) error
	// Suspend denies every charge on the bucket until the given time; a zero time resumes it.
	Suspend(ctx context.Context, credential, bucket string, until time.Time) error
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
	Limits      []Limit // every limit of every bucket in Costs; each bucket has at least one
	Labels      Labels
	Manual      bool   // may use the headroom
	Observe     bool   // record the charge even where it would be denied
	DryRun      bool   // decide and answer, but write nothing: the answer has no Entry
	Reservation string // draw the units of its bucket from what was set aside; "" to charge freely
}

// Reserve asks to set units of one bucket aside.
type Reserve struct {
	Credential string
	ID         string // of the reservation, from ReservationID
	Key        string // idempotency key; "" for none
	Units      int64  // at least 1
	Limits     []Limit
	TTL        time.Duration // at least 1 ms
	Note       string
	Manual     bool
	Observe    bool
}

// AllUnits, as Commit.Units, commits all that is left of the reservation.
const AllUnits = -1

// Commit settles a reservation.
type Commit struct {
	Credential  string
	Reservation string
	ID          string // of the entry; made by the caller with NewID
	Units       int64  // 0 or more, at most what is left; or AllUnits
	Labels      Labels
	Limits      []Limit // of the bucket, to answer what remains
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
	Units       map[string]int64 // asked for, by bucket
	Remaining   map[string]int64 // by bucket: what another charge could take now
	RetryAt     time.Time        // when denied: the earliest moment at which it would fit
	Limit       string           // when denied: what denies longest, a limit or Suspended
	Reservation string           // ID, when units were set aside
	ExpiresAt   time.Time        // of the reservation
}

// Suspended, as Decision.Limit, says that the bucket is closed: the upstream said so, or a person
// did.
const Suspended = "suspended"

// RetryAfter is how long until the cost would fit if nobody charged meanwhile; 0 when it was
// allowed.
func (d Decision) RetryAfter() time.Duration {
	if d.Allowed || d.RetryAt.IsZero() {
		return 0
	}
	return max(0, d.RetryAt.Sub(d.At))
}

// Usage is the standing of a credential's buckets at one moment.
type Usage struct {
	At      time.Time
	Buckets []BucketUsage
}

// BucketUsage is the standing of one bucket.
type BucketUsage struct {
	Bucket         string
	Held           int64     // set aside by reservations, unexpired and undrawn
	SuspendedUntil time.Time // zero when the bucket is open
	Limits         []LimitUsage
}

// LimitUsage is the standing of one limit.
type LimitUsage struct {
	Limit      Limit
	Used       int64
	Remaining  int64     // for scheduled charges: cap − used − held, at least 0
	NextFreeAt time.Time // when the next units come free; zero when none are used or held
}

// Reservation is units set aside.
type Reservation struct {
	ID        string
	Bucket    string
	Units     int64 // as reserved
	Drawn     int64
	Left      int64
	CreatedAt time.Time
	ExpiresAt time.Time
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
