// Package quota decides whether a call to a metered upstream may be made, and accounts for every
// unit.
//
// The upstream bills a credential in units, taken from buckets. A Limit says how many units of a
// bucket may be taken in a Window, which either slides (any 24 hours) or follows the calendar (the
// day in Los Angeles). A Ledger keeps every Charge as an entry of a sliding log and answers with a
// Decision in one atomic step; a Budget asks it on behalf of a job.
//
// Use Charge before a call whose price is known. Reserve sets units aside, for later or for a call
// whose price is known only afterwards. Settle books what was used of them, and Release gives them
// back. Cancel undoes a charge whose call certainly never left this machine. Learn records what
// other programs used in one window, according to the upstream.
//
// The package does no I/O and imports only the standard library.
package quota

import (
	"slices"
	"time"
)

// DefaultBucket is the bucket to use if none is named.
const DefaultBucket = "default"

// Retention is how long a ledger keeps entries at least: longer than the usual windows need,
// because the log is also the audit trail.
const Retention = 72 * time.Hour

// MaxUnits is the maximum of one limit. A Redis script has 53 bits for a number, so 9,000 fully
// used windows fit before a running total is rounded.
const MaxUnits = 1_000_000_000_000

// MaxTotal is the highest running total of a bucket: the largest whole number that a double can
// distinguish from its neighbours.
const MaxTotal = 1<<53 - 1

// Cost is what one call takes from one bucket.
type Cost struct {
	Bucket string
	Units  int64
	// Most is the maximum that the call may use if Units is an estimate; 0 if Units is exact.
	Most int64
	// Bounded makes a ledger refuse the estimate if the estimates in flight could be too low by
	// more than Slack: see TooManyEstimates.
	Bounded bool
}

// indexOf returns the index of the bucket's cost, or -1 if there is none.
func indexOf(costs []Cost, bucket string) int {
	return slices.IndexFunc(costs, func(c Cost) bool { return c.Bucket == bucket })
}

// Slack returns how far too low the bounded estimates in flight of one bucket may be in total: a
// tenth of its smallest limit. Calls cannot exceed a limit by more than that.
func Slack(limits []Limit) int64 {
	slack := int64(MaxTotal)
	for _, l := range Enforced(limits) {
		if l.Pace == nil && !l.Window.Concurrent {
			slack = min(slack, l.Units/10)
		}
	}
	return slack
}

// Limit allows Units of a bucket in each Window. Headroom units of them are kept for people: manual
// charges may use them, scheduled ones may not. A limit of zero units allows nothing.
//
// A limit on a split bucket (SplitBucket) applies to each of its parts, except parts with their own
// limit in such a window. With Across it applies to their sum.
type Limit struct {
	Bucket   string
	Units    int64
	Headroom int64
	Window   Window // a day, with a pace
	Across   bool

	// Observe makes the limit deny nothing: a charge that it would deny is recorded as observed.
	Observe bool

	// Pace makes this a line that spending may not run ahead of, up to the limit's units less its
	// headroom. It only delays a charge. A ledger names it, without a time, only if no other limit
	// denies; the Budget computes the time.
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

// Cap returns the units that the window may contain after a charge.
func (l Limit) Cap(manual bool) int64 {
	if manual {
		return l.Units
	}
	return max(0, l.Units-l.Headroom)
}

// CapAt returns the units that the window may contain after a charge at now. Draws take units that
// were set aside, so the whole limit applies to them.
func (l Limit) CapAt(now time.Time, manual, draws bool) int64 {
	switch {
	case l.Pace != nil && (manual || draws):
		return MaxUnits
	case l.Pace != nil:
		return l.Pace.Line(l.Cap(false), l.Window, now)
	}
	return l.Cap(manual || draws)
}

// Reach returns how far back entries matter to the limit: the length of its window, or the time to
// restore a full bucket.
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

// RetentionFor returns how long entries must be kept to decide on limits: at least Retention, and a
// day more than the longest reach.
func RetentionFor(limits []Limit) time.Duration {
	keep := Retention
	for _, l := range limits {
		keep = max(keep, l.Reach()+24*time.Hour)
	}
	return keep
}
