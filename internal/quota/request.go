package quota

import "time"

// Charge is a request for units before a call.
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
	NewValues   bool   // may begin the log of a label's value; else that is ErrNewValue
}

// Lapse names what a ledger does with a reservation that expires before it is settled.
type Lapse string

const (
	// LapseRelease gives the units back. It suits units that a person set aside.
	LapseRelease Lapse = "release"
	// LapseCharge makes entries of them, with the reservation's ID and labels, stamped when it
	// expires: a call that was sent has usually been billed, whatever became of the caller. Of an
	// estimate, the entry has the most that the call can have taken. Units that are limited by
	// concurrent windows alone are given back all the same.
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
	Labels     Labels        // of the entries of a lapse and of a settlement
	Note       string
	Unlimited  bool // as in Charge
	Manual     bool
	Observe    bool
	NewValues  bool
}

// Extend is a request that a reservation lasts longer, because its caller is still at work.
type Extend struct {
	Credential  string
	Reservation string
	TTL         time.Duration // from now; as in Reserve
}

// AllUnits, as the units of a settled cost, means all that is left of the reservation.
const AllUnits = -1

// Settle reports what was used of a reservation.
type Settle struct {
	Credential  string
	Reservation string
	ID          string // of the entries; made by the caller with NewID
	// Costs are the units used in each bucket, besides those drawn: 0 or more, or AllUnits, which
	// is meant for a bucket that is not named. Where all limits are concurrent, 0 is meant.
	Costs  []Cost
	Within bool // refuse more units than are left
	// Once has the ledger not keep the answer, because the caller never needs it again. A second
	// settlement then gets ErrNoReservation.
	Once   bool
	Labels Labels  // of the entries, laid over those of the reservation
	Limits []Limit // of the buckets, to answer what remains
}

// Learn is what a response of the upstream reports about a limit.
type Learn struct {
	Credential string
	Limit      Limit
	Remaining  int64     // units that are left; -1 when it does not say
	Reset      time.Time // when the window ends; zero when it does not say
	// AskedAt is when the call was charged, by the ledger's clock. The response reports no earlier
	// moment.
	AskedAt time.Time
}

// Asked returns AskedAt in Unix µs, or n, the time of the decision, if it is not known.
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

// Learned is a ledger's answer to a Learn.
type Learned struct {
	At      time.Time
	Thought int64     // units that were left by the ledger's own count, if all that is held is used
	Units   int64     // used by other programs, not counted in this window before; 0 for none
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
