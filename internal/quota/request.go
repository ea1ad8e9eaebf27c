package quota

import "time"

// Charge is a request for units before a call.
type Charge struct {
	Credential  string
	ID          string  // for the entry; made by the caller with NewID
	Key         string  // idempotency key; "" for none
	Costs       []Cost  // at least one; each bucket at most once; at least 1 unit each
	Limits      []Limit // every limit of every bucket in Costs
	Labels      Labels
	Unlimited   bool   // record buckets without a limit; otherwise they are ErrNoBucket
	Manual      bool   // may use the headroom
	Observe     bool   // record the charge even where it would be denied
	DryRun      bool   // decide and answer, but write nothing: the answer has no Entry
	Reservation string // reservation to draw on in its buckets; "" for none
	NewValues   bool   // may begin the log of a label's value; otherwise that is ErrNewValue
}

// Lapse names what a ledger does with a reservation that expires before it is settled.
type Lapse string

const (
	// LapseRelease gives the units back. It suits units that a person set aside.
	LapseRelease Lapse = "release"
	// LapseCharge turns them into entries with the reservation's ID and labels, stamped at its
	// expiry: a call that was sent has usually been billed, whatever happened to its caller. An
	// estimate is entered at its maximum. Units that only concurrent windows limit are given back
	// anyway.
	LapseCharge Lapse = "charge"
)

// Reserve is a request to set units aside.
type Reserve struct {
	Credential string
	ID         string        // from ReservationID, with the buckets of Costs in order
	Key        string        // idempotency key; "" for none
	Costs      []Cost        // as in Charge
	Limits     []Limit       // as in Charge
	TTL        time.Duration // at least 1 ms
	Lapse      Lapse         // "" is LapseRelease
	Labels     Labels        // of the entries written by a lapse or a settlement
	Note       string
	Unlimited  bool // as in Charge
	Manual     bool
	Observe    bool
	NewValues  bool
}

// Extend is a request to prolong a reservation whose caller is still working.
type Extend struct {
	Credential  string
	Reservation string
	TTL         time.Duration // from now; as in Reserve
}

// Release is a request to give back what is left of a reservation.
type Release struct {
	Credential  string
	Reservation string
	// Late also releases a reservation that has lapsed into a charge, by removing its entries. Only
	// a caller that is certain that the units were not used may set it.
	Late bool
}

// AllUnits, as the units of a settled cost, means everything left of the reservation.
const AllUnits = -1

// Settle reports what was used of a reservation.
type Settle struct {
	Credential  string
	Reservation string
	ID          string // for the entries; made by the caller with NewID
	// Costs are the units used in each bucket, in addition to draws: 0 or more, or AllUnits. A
	// bucket that is not named gets AllUnits, or 0 if all its limits are concurrent.
	Costs  []Cost
	Within bool // refuse to settle more units than are left
	// Once means that the ledger need not keep the answer, because the caller never asks again. A
	// second settlement then gets ErrNoReservation.
	Once   bool
	Labels Labels  // of the entries; they override those of the reservation
	Limits []Limit // of the buckets, to compute what remains
}

// Learn is what a response of the upstream reports about a limit.
type Learn struct {
	Credential string
	Limit      Limit
	Remaining  int64     // units left; -1 if not reported
	Reset      time.Time // when the window ends; zero if not reported
	// AskedAt is when the call was charged, by the ledger's clock. The response describes that
	// moment or a later one.
	AskedAt time.Time
}

// Asked returns AskedAt in Unix µs, or n, the time of the decision, if AskedAt is unknown.
func (l Learn) Asked(n int64) int64 { return min(n, micros(l.AskedAt, n)) }

// ResetMicros returns Reset in Unix µs, or 0 if it is not reported.
func (l Learn) ResetMicros() int64 { return micros(l.Reset, 0) }

// Stale reports whether Remaining belongs to a window that is over at n. reset is the currently
// known end of the anchored window.
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

// Learned is the ledger's answer to a Learn.
type Learned struct {
	At      time.Time
	Thought int64     // units left by the ledger's own count, if all held units are used
	Units   int64     // used by other programs and not yet counted in this window; 0 for none
	Reset   time.Time // when the anchored window ends; zero if unknown
}

// Suspension is a bucket that is closed until a given time.
type Suspension struct {
	Credential string
	Bucket     string
	Until      time.Time
	By         string    // the upstream, or a person; "" if unknown
	Reason     string    // in one line; "" for none
	Since      time.Time // when it was suspended; set by the ledger
}

// ByUpstream is the Suspension.By of a bucket that the upstream reported as exhausted.
const ByUpstream = "upstream"

// Adjust is a correction of the units used in a span of the log.
type Adjust struct {
	Credential string
	ID         string // for the entry or the note; made by the caller with NewID
	Key        string // idempotency key; "" for none
	Bucket     string
	// Units are added to those used or, if negative, taken off. An added entry has at most
	// MaxUnits.
	Units int64
	// After and Until delimit the span: entries stamped later than After, up to and including
	// Until. A zero Until is now. Units are added at the end of the span, or shortly before if
	// another entry has that stamp. They are taken off its newest entries.
	After, Until time.Time
	// Was is the number of units that the span must contain, so that a span that has changed since
	// it was read is not corrected; nil accepts any number.
	Was    *int64
	Limits []Limit // of the bucket: entries are kept as long as the limits need
	Labels Labels
	DryRun bool // check, but write nothing: the answer has no Entry
}
