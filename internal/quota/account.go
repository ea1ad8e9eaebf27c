package quota

import (
	"cmp"
	"errors"
	"slices"
	"time"
)

// Scope names the data of a credential that a decision reads.
type Scope struct {
	Credential  string
	Buckets     []string
	Answer      string // name of a kept answer; "" for none
	Reservation string // whose entry is needed if it has lapsed; "" for none
	// Limits are the limits whose windows the decision probably reads, so that a store can read the
	// start of each window at the same time.
	Limits []Limit
}

// Request is a request that a ledger decides on.
type Request interface {
	// Check returns an error for a request that no ledger accepts.
	Check() error
	// Scope names what the decision reads.
	Scope() Scope
}

func (c Charge) Scope() Scope {
	return Scope{Credential: c.Credential, Buckets: bucketsOf(c.Costs), Answer: keyScope(c.Key),
		Limits: c.Limits}
}

func (r Reserve) Scope() Scope {
	return Scope{Credential: r.Credential, Buckets: bucketsOf(r.Costs), Answer: keyScope(r.Key),
		Limits: r.Limits}
}

// reservationScope returns the scope of a request that ends or extends a reservation.
func reservationScope(credential, reservation string, limits []Limit) Scope {
	_, buckets, _ := ParseReservation(reservation)
	return Scope{Credential: credential, Buckets: buckets, Answer: settledScope(reservation),
		Reservation: reservation, Limits: limits}
}

func (s Settle) Scope() Scope {
	return reservationScope(s.Credential, s.Reservation, s.Limits)
}

func (e Extend) Scope() Scope { return reservationScope(e.Credential, e.Reservation, nil) }

func (r Release) Scope() Scope { return reservationScope(r.Credential, r.Reservation, nil) }

func (l Learn) Scope() Scope {
	return Scope{Credential: l.Credential, Buckets: []string{l.Limit.Bucket}}
}

func (s Suspension) Scope() Scope {
	return Scope{Credential: s.Credential, Buckets: []string{s.Bucket}}
}

func (a Adjust) Scope() Scope {
	return Scope{Credential: a.Credential, Buckets: []string{a.Bucket}, Answer: keyScope(a.Key)}
}

func (c Claim) Scope() Scope {
	return Scope{Credential: c.Credential, Answer: claimScope(c.Name)}
}

// Account is the part of a credential that one decision reads, at one moment. Its methods decide,
// and collect what the store must write (Change).
type Account struct {
	Credential string
	Now        int64     // the store's clock
	Buckets    []*Bucket // in the order of the Scope
	Answer     *Answer   // the stored answer; nil if there is none or it has expired

	n      int64 // the time of the decision: Now, or later if an entry of a bucket is
	change Change
}

// Change returns what the decision writes.
func (a *Account) Change() Change {
	if a.err() != nil {
		return Change{}
	}
	return a.change
}

// ErrMore reports that a decision takes another step: write its change, which contains at most
// entries of lapsed holds, and decide again.
var ErrMore = errors.New("the decision takes several steps")

// Answer is what a ledger keeps so that a repeated request gets the same answer: under an
// idempotency key, for a settled reservation, or for a claim.
type Answer struct {
	Name     string // the kind and the key
	Request  string // what must be the same in a repeated request; the holder of a claim
	Decision string // as JSON; empty for a claim
	Expires  int64
}

// Change is what a store must write, all or nothing.
type Change struct {
	Buckets []BucketChange // of Account.Buckets, in their order; none if no bucket changes
	Keep    *Answer
	Forget  string // name of the answer to forget; "" for none
}

// BucketChange is what changes in one bucket.
type BucketChange struct {
	// From is the stamp from which Entries, at most MaxRewritten, replace the log; 0 for none.
	From    int64
	Entries []LogEntry
	Append  []LogEntry // newer than all others
	Put     []Hold     // new and changed holds
	Drop    []string   // reservations to remove
	Settled int64      // stamp of the entry of Bucket.Lapsed, to forget; 0 for none
	State   *State     // the new state; nil if unchanged
	Note    *LogEntry  // the note of units that were taken off
	Keep    int64      // entries and notes up to this stamp may be forgotten; 0 for none
}

// MaxRewritten is the maximum number of entries to rewrite when an earlier one changes.
const MaxRewritten = 1500

// decide begins a decision by setting its time.
func (a *Account) decide() {
	a.n, a.change = a.Now, Change{}
	for _, b := range a.Buckets {
		b.begin(a.Now)
		a.n = max(a.n, b.floor())
	}
	for more := true; more; {
		more = false
		for _, b := range a.Buckets {
			if b.first > a.n {
				continue
			}
			for _, l := range b.schedule() {
				if l.hold.Expires <= a.n && l.at >= a.n {
					a.n, more = l.at+1, true
				}
			}
		}
	}
}

// Reading is how far the steps of one decision have read the logs of the named buckets, as levels
// of restoring windows.
type Reading map[string]map[Rate]Level

// Bounded makes the decision read at most maxRead entries after those that earlier steps have read.
// If it needs more, it fails with ErrMore, and the next step continues from there.
func (a *Account) Bounded(read Reading) {
	for _, b := range a.Buckets {
		if read[b.Name] == nil {
			read[b.Name] = make(map[Rate]Level)
		}
		b.read = read[b.Name]
	}
}

// err returns the first error among the buckets.
func (a *Account) err() error {
	for _, b := range a.Buckets {
		if b.broken != nil {
			return b.broken
		}
	}
	return nil
}

// Lapse begins a decision that counts lapsed holds as entries. Errors: ErrMore if it must write
// these entries first.
func (a *Account) Lapse() error {
	a.decide()
	return a.lapse()
}

// lapse does what Lapse does, in a decision that has begun.
func (a *Account) lapse() error {
	lapsed := func(b *Bucket) bool { return len(b.lapsed(a.n)) > 0 }
	if !slices.ContainsFunc(a.Buckets, lapsed) {
		return a.err()
	}
	remaining := 500 // a step writes at most 500 lapsed holds, because a store writes it at once
	for _, b := range a.Buckets {
		e := edit{Bucket: b, n: a.n}
		lapses := b.lapsed(a.n)
		for _, l := range lapses[:min(remaining, len(lapses))] {
			id, _, err := ParseReservation(l.hold.ID)
			if err != nil {
				b.damaged("the reservation %.64q has no such name", l.hold.ID)
			}
			e.append(LogEntry{At: l.at, ID: id, Units: l.units, Labels: l.hold.Labels})
			was := *l.hold
			was.LapsedAt = l.at
			e.Put = append(e.Put, was)
			remaining--
		}
		a.write(e.done(nil))
	}
	return cmp.Or(a.err(), ErrMore)
}

// write adds the change of the next bucket.
func (a *Account) write(ch BucketChange) { a.change.Buckets = append(a.change.Buckets, ch) }

// micros converts t to Unix µs. It returns zero if t is the zero time.
func micros(t time.Time, zero int64) int64 {
	if t.IsZero() {
		return zero
	}
	return t.UnixMicro()
}

// StampTime converts Unix µs to a time.Time.
func StampTime(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
