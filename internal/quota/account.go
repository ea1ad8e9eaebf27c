package quota

import (
	"slices"
	"time"
)

// Scope names what a decision needs to see of a credential.
type Scope struct {
	Credential  string
	Buckets     []string
	Answer      string // name of a kept answer; "" for none
	Reservation string // whose entry is needed if it has lapsed; "" for none
	// Limits are those whose windows the decision probably reads, so that a store can read how they
	// begin together with the rest.
	Limits []Limit
}

// Account is what one decision sees of a credential, all of one moment. Its methods decide; they
// return what the store must write, and change nothing themselves.
type Account struct {
	Credential string
	Now        int64     // the store's clock
	Buckets    []*Bucket // in the order of the Scope
	Answer     *Answer   // the kept one, if it has not expired; nil for none

	n int64 // the time of the decision: Now, but after every entry of all the buckets
}

// Answer is what a ledger keeps so that the same request gets the same answer: under an idempotency
// key, for a reservation that was settled, or for a claim.
type Answer struct {
	Name     string // the kind and the key
	Request  string // what must be the same; of a claim the holder
	Decision string // as JSON; of a claim empty
	Expires  int64
}

// Change is what a store must write, all or nothing.
type Change struct {
	Buckets []BucketChange // of Account.Buckets, in their order; none if no bucket changes
	Keep    *Answer
	Forget  string // name of the answer to forget; "" for none
	// More asks to decide again after the change, which has only written entries of lapsed holds.
	More bool
}

// BucketChange is what changes in one bucket.
type BucketChange struct {
	// From is the stamp from which the log is Entries instead of what it was, 0 if it stays. They
	// are no more than MaxRewritten.
	From    int64
	Entries []LogEntry
	Append  []LogEntry // newer than all others
	Put     []Hold     // new ones, and those that have changed
	Drop    []string   // reservations to remove
	Settled int64      // stamp of the entry that Bucket.Lapsed is no longer known to be; 0 for none
	State   *State     // the new one; nil if it stays
	Note    *LogEntry  // of units that were taken off
	Keep    int64      // entries and notes up to this stamp may be forgotten; 0 for none
}

// MaxRewritten is how many entries are written again at most when an earlier one changes.
const MaxRewritten = 3000

// maxLapses is how many holds become entries in one step.
const maxLapses = 1000

// decide begins a decision: it finds its time.
func (a *Account) decide() {
	a.n = a.Now
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

// Reading is how far the steps of one decision have read the logs of buckets, by their names: the
// levels of restoring windows by then.
type Reading map[string]map[Rate]Level

// Bounded has the decision read at most maxRead entries, after those that earlier steps have read.
// If it needs more, it fails with ErrPartial, and the next step goes on from there.
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

// due reports whether holds have lapsed whose entries are to be written before any other change.
func (a *Account) due() bool {
	return slices.ContainsFunc(a.Buckets, func(b *Bucket) bool { return len(b.lapsed(a.n)) > 0 })
}

// Lapse returns the entries of holds that have lapsed; More is false if there are none.
func (a *Account) Lapse() (Change, error) {
	a.decide()
	if !a.due() {
		return Change{}, a.err()
	}
	return a.lapse()
}

func (a *Account) lapse() (Change, error) {
	var ch Change
	most := maxLapses
	for _, b := range a.Buckets {
		e := edit{Bucket: b, n: a.n}
		lapses := b.lapsed(a.n)
		for _, l := range lapses[:min(most, len(lapses))] {
			id, _, err := ParseReservation(l.hold.ID)
			if err != nil {
				b.damaged("the reservation %.64q has no such name", l.hold.ID)
			}
			e.append(LogEntry{At: l.at, ID: id, Units: l.units, Labels: l.hold.Labels})
			was := *l.hold
			was.LapsedAt = l.at
			e.Put = append(e.Put, was)
			most--
		}
		ch.Buckets = append(ch.Buckets, e.done(nil))
	}
	ch.More = true
	return ch, a.err()
}

// stampTime converts Unix µs to a time.Time.
func stampTime(micros int64) time.Time { return time.UnixMicro(micros).UTC() }
