// Package quota decides whether a call to a metered upstream may be made, and keeps account of
// every unit.
//
// The upstream bills a credential in units, taken from buckets. A Limit says how many units of a
// bucket may be taken in a Window, which either slides (any 24 hours) or follows the calendar (the
// day in Los Angeles). A Ledger keeps every Charge as an entry of a sliding log and answers with a
// Decision in one atomic step; a Budget asks it on behalf of a job.
//
// Of its verbs, Charge is the one to use before a call whose price is known. Reserve sets units
// aside: for later, or for a call whose price is known only after it. Settle books what was used of
// them, Release gives them back. Cancel takes back a charge whose call surely never left this
// machine, and Learn keeps what others used in one window, as the upstream reports it.
//
// The package does no I/O and imports only the standard library.
package quota

import (
	"slices"
	"time"
)

// DefaultBucket is the bucket meant where none is named.
const DefaultBucket = "default"

// Retention is how long a ledger keeps entries when nothing longer is needed: longer than any
// upstream's window, because the log is also the audit trail.
const Retention = 72 * time.Hour

// MaxUnits is the most units that one limit may hold, so that running totals stay exact in the 53
// bits a Redis script has for a number: 9,000 windows used to the full fit before a total could
// round.
const MaxUnits = 1_000_000_000_000

// MaxTotal is the highest running total of a bucket: the largest whole number that a double can
// distinguish from its neighbours.
const MaxTotal = 1<<53 - 1

// Cost is what one call takes from one bucket.
type Cost struct {
	Bucket string
	Units  int64
	// Most is, where Units is an estimate, the most that the call can turn out to take; 0 where
	// Units is exact.
	Most int64
	// Bounded makes a ledger refuse the estimate where the estimates in flight could be too low by
	// more than Slack allows: see TooManyEstimates.
	Bounded bool
}

// indexOf returns the index of the bucket's cost, or -1 if there is none.
func indexOf(costs []Cost, bucket string) int {
	return slices.IndexFunc(costs, func(c Cost) bool { return c.Bucket == bucket })
}

// Slack returns by how many units the bounded estimates in flight of one bucket may be too low
// together: a tenth of its smallest limit. So no limit is passed by more, whatever calls take.
func Slack(limits []Limit) int64 {
	slack := int64(MaxTotal)
	for _, l := range Enforced(limits) {
		if l.Pace == nil && !l.Window.Concurrent {
			slack = min(slack, l.Units/10)
		}
	}
	return slack
}

// Limit allows Units of a bucket in each Window. Headroom units of it are kept for people: a
// scheduled charge stops short of them, a manual one may use them. Zero units is a legal limit that
// allows nothing.
//
// A limit on a bucket that is split (SplitBucket) holds for each of its parts, but for those that
// have one of their own in such a window; with Across it holds for their sum.
type Limit struct {
	Bucket   string
	Units    int64
	Headroom int64
	Window   Window // a day, with a pace
	Across   bool

	// Observe makes the limit one that never denies: a charge that it would have denied is recorded
	// as observed, and it leaves room for any.
	Observe bool

	// Pace makes this a line that spending may not be ahead of, to the limit's units less its
	// headroom. It makes no cost impossible. A ledger names it only where no other limit denies,
	// without a time; the Budget knows when.
	Pace *Pace
}

// Name identifies the limit in decisions and messages: "default 24h", "default day
// America/Los_Angeles".
func (l Limit) Name() string {
	if l.Pace != nil {
		return PaceName
	}
	return ShownBucket(l.Bucket) + " " + l.Window.String()
}

// Cap returns how many units a charge may bring the window up to.
func (l Limit) Cap(manual bool) int64 {
	if manual {
		return l.Units
	}
	return max(0, l.Units-l.Headroom)
}

// CapAt returns how many units a charge at now may bring the window up to. Draws take units that
// were set aside, and have the whole limit.
func (l Limit) CapAt(now time.Time, manual, draws bool) int64 {
	switch {
	case l.Pace != nil && (manual || draws):
		return MaxUnits
	case l.Pace != nil:
		return l.Pace.Line(l.Cap(false), l.Window, now)
	}
	return l.Cap(manual || draws)
}

// Reach returns how far back entries matter to the limit: the length of its window, or the time in
// which a full bucket is restored.
func (l Limit) Reach() time.Duration {
	if !l.Window.IsRestoring() {
		return l.Window.Longest()
	}
	num, den := l.Window.Restore.Terms()
	return time.Duration(min(MaxWindow.Microseconds(), l.Units*den/num+1)) * time.Microsecond
}

// Since returns the time after which entries count at now. reset is the last known end of an
// anchored window, zero for none. In a restoring window, no earlier entry can count.
func (l Limit) Since(now, reset time.Time) time.Time {
	if l.Window.IsRestoring() {
		return now.Add(-l.Reach())
	}
	return StampTime(l.Window.after(now.UnixMicro(), micros(reset, 0)))
}

// Enforced returns the limits that deny.
func Enforced(limits []Limit) []Limit {
	return slices.DeleteFunc(slices.Clone(limits), func(l Limit) bool { return l.Observe })
}

// InMode returns the limits for one decision. In observe mode all of them deny, because the
// decision as a whole is only observed.
func InMode(limits []Limit, observe bool) []Limit {
	if !observe {
		return limits
	}
	limits = slices.Clone(limits)
	for i := range limits {
		limits[i].Observe = false
	}
	return limits
}

// Check reports a limit that cannot be decided exactly.
func (l Limit) Check() error {
	if !l.Window.IsRestoring() {
		return nil
	}
	num, den := l.Window.Restore.Terms()
	if l.Units > MaxTotal/4/den {
		return malformed("%s of %d units cannot be counted exactly: write its rate in fewer units "+
			"or a shorter time", l.Name(), l.Units)
	}
	if l.Units*den/num > MaxWindow.Microseconds() {
		return malformed("%s of %d units takes longer than %s to be restored", l.Name(), l.Units,
			shortDuration(MaxWindow))
	}
	return nil
}

// RetentionFor returns how long entries must be kept to decide on limits: Retention, or a day more
// than the farthest reach.
func RetentionFor(limits []Limit) time.Duration {
	keep := Retention
	for _, l := range limits {
		keep = max(keep, l.Reach()+24*time.Hour)
	}
	return keep
}
