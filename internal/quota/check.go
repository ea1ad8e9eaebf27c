package quota

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Check returns an error for a charge that no ledger accepts. A cost above a limit is a
// CostExceedsLimitError: the caller gets it without a round trip. The rule checks again.
func (c Charge) Check() error {
	if err := checkCosts("charge", c.Costs); err != nil {
		return cmp.Or(c.CheckCost(), err)
	}
	if err := checkEntry(c.ID, c.Labels, c.Credential, c.Key); err != nil {
		return err
	}
	if c.Reservation != "" {
		_, buckets, err := ParseReservation(c.Reservation)
		if err != nil {
			return err
		}
		if buckets = withoutLabels(buckets); len(buckets) != 1 {
			return malformed("reservation %s is of %d buckets: draw on one of a single bucket, "+
				"and settle this", c.Reservation, len(buckets))
		}
		if indexOf(c.Costs, buckets[0]) < 0 {
			return malformed("reservation %s is of bucket %s, which this charge does not touch",
				c.Reservation, buckets[0])
		}
	}
	for _, l := range c.Limits {
		if l.Window.Concurrent {
			return malformed("bucket %s has a limit on what is held at once: reserve its units",
				l.Bucket)
		}
	}
	if err := checkLimited(c.Costs, c.Limits, c.Unlimited); err != nil || c.Key != "" {
		return err
	}
	return c.CheckCost()
}

// checkCosts returns an error for a list of costs that no ledger accepts.
func checkCosts(what string, costs []Cost) error {
	if len(costs) == 0 {
		return malformed("a %s must have a cost", what)
	}
	if len(costs) > MaxBuckets {
		return malformed("a %s of %d buckets: at most %d", what, len(costs), MaxBuckets)
	}
	for i, cost := range costs {
		if indexOf(costs[:i], cost.Bucket) >= 0 {
			return malformed("bucket %s comes twice in one %s", cost.Bucket, what)
		}
		if err := checkUnits(cost.Units); err != nil {
			return err
		}
		if cost.Most != 0 && (cost.Most < cost.Units || cost.Most > MaxUnits) {
			return malformed("an estimate of %d units exceeds its maximum of %d", cost.Units,
				cost.Most)
		}
	}
	return nil
}

// CheckCost returns an error if a limit makes a cost impossible. In observe mode none does. A
// ledger first searches for an answer under the idempotency key, which stays even if a limit was
// lowered.
func (c Charge) CheckCost() error {
	for _, cost := range c.Costs {
		for _, l := range LimitsOf(cost.Bucket, c.Limits) {
			capacity := l.Cap(c.Manual || c.Draws(cost.Bucket))
			if l.Pace == nil && !l.Observe && !c.Observe && cost.Units > capacity {
				return &CostExceedsLimitError{Limit: l, Units: cost.Units, Cap: capacity}
			}
		}
	}
	return nil
}

// Draws reports whether the charge takes the bucket's units from a reservation.
func (c Charge) Draws(bucket string) bool {
	if c.Reservation == "" {
		return false
	}
	_, buckets, err := ParseReservation(c.Reservation)
	return err == nil && slices.Contains(buckets, bucket)
}

// Check returns an error for a reservation that no ledger accepts: a CostExceedsLimitError for a
// cost above a limit.
func (r Reserve) Check() error {
	_, buckets, err := ParseReservation(r.ID)
	if costs := checkCosts("reservation", r.Costs); costs != nil {
		err = cmp.Or(err, r.CheckCost(), costs)
	}
	err = cmp.Or(err, checkTTL("reservation", r.TTL), CheckText("note", r.Note), r.Labels.Check(),
		checkNames(r.Credential, r.Key))
	if err != nil {
		return err
	}
	if !slices.EqualFunc(r.Costs, buckets, func(c Cost, b string) bool { return c.Bucket == b }) {
		return malformed("reservation %s does not name the buckets of its costs in order", r.ID)
	}
	if !slices.Contains([]Lapse{"", LapseRelease, LapseCharge}, r.Lapse) {
		return malformed("lapse: %q: must be charge or release", r.Lapse)
	}
	if err := checkLimited(r.Costs, r.Limits, r.Unlimited); err != nil || r.Key != "" {
		return err
	}
	return r.CheckCost()
}

// CheckCost reports a cost above a limit: see Charge.CheckCost.
func (r Reserve) CheckCost() error {
	return Charge{Costs: r.Costs, Limits: r.Limits, Manual: r.Manual, Observe: r.Observe}.CheckCost()
}

// TooLow returns by how much a bounded estimate may be too low; 0 for other units, and in observe
// mode, where nothing is denied.
func (r Reserve) TooLow(c Cost) int64 {
	if !c.Bounded || r.Observe {
		return 0
	}
	return max(0, c.Most-c.Units)
}

// LapseOf returns what happens to the units of one bucket if they are never settled.
func (r Reserve) LapseOf(bucket string) Lapse {
	if r.Lapse != LapseCharge || OnlyConcurrent(LimitsOf(bucket, r.Limits)) {
		return LapseRelease
	}
	return LapseCharge
}

// OnlyConcurrent reports whether all limits are concurrent, so that no entry counts.
func OnlyConcurrent(limits []Limit) bool {
	counts := func(l Limit) bool { return !l.Window.Concurrent }
	return len(limits) > 0 && !slices.ContainsFunc(limits, counts)
}

// Check returns an error for the release of anything but a reservation.
func (r Release) Check() error {
	_, _, err := ParseReservation(r.Reservation)
	return err
}

// Check returns an error for an extension that no ledger accepts.
func (e Extend) Check() error {
	_, _, err := ParseReservation(e.Reservation)
	return cmp.Or(err, checkTTL("reservation", e.TTL), CheckNames(e.Credential))
}

// Check returns an error for a settlement that no ledger accepts.
func (s Settle) Check() error {
	_, buckets, err := ParseReservation(s.Reservation)
	if err != nil {
		return err
	}
	for i, c := range s.Costs {
		switch {
		case !slices.Contains(buckets, c.Bucket):
			return malformed("reservation %s is not of bucket %s", s.Reservation, c.Bucket)
		case indexOf(s.Costs[:i], c.Bucket) >= 0:
			return malformed("bucket %s comes twice in one settlement", c.Bucket)
		case c.Units != AllUnits && (c.Units < 0 || c.Units > MaxUnits):
			return malformed("cannot settle %d units: must be 0 to %d", c.Units, MaxUnits)
		}
	}
	return checkEntry(s.ID, s.Labels, s.Credential, "")
}

// Check returns an error for a report of the upstream that no ledger accepts.
func (l Learn) Check() error {
	switch {
	case l.Limit.Window.Concurrent, l.Limit.Pace != nil:
		return malformed("%s is not a limit that an upstream can report", l.Limit.Name())
	case l.Remaining < -1 || l.Remaining > MaxUnits:
		return malformed("%d units left", l.Remaining)
	}
	return cmp.Or(l.Limit.Check(), CheckBucketOf(l.Credential, l.Limit.Bucket))
}

// Check returns an error for a correction that no ledger accepts.
func (a Adjust) Check() error {
	switch {
	case a.Units == 0 || a.Units > MaxUnits || a.Units < -MaxUnits:
		return malformed("a correction by %d units: must add or remove at least 1 and at most %d",
			a.Units, int64(MaxUnits))
	case !a.Until.IsZero() && !a.After.Before(a.Until):
		return malformed("a correction from %s to %s: the end must be later", a.After, a.Until)
	}
	return cmp.Or(CheckBucket(a.Bucket), checkEntry(a.ID, a.Labels, a.Credential, a.Key))
}

// Span returns the span in Unix µs at n, the time of the decision: later than after, up to and
// including until.
func (a Adjust) Span(n int64) (after, until int64) {
	return micros(a.After, -1), min(n, micros(a.Until, n))
}

// Refuses returns an error if a span with that many units is not to be corrected.
func (a Adjust) Refuses(holds int64) error {
	switch {
	case a.Was != nil && *a.Was != holds:
		return fmt.Errorf("bucket %s has %d units there now, and had %d: %w", a.Bucket, holds,
			*a.Was, ErrSpanChanged)
	case a.Units < 0 && holds < -a.Units:
		return fmt.Errorf("bucket %s has %d units there, not the %d to take off: %w", a.Bucket,
			holds, -a.Units, ErrSpanShort)
	}
	return nil
}

// Fingerprint distinguishes this correction from others under the same idempotency key.
func (a Adjust) Fingerprint() string {
	after, until := a.Span(MaxTotal)
	return fmt.Sprintf("adjust %s=%d %d %d", a.Bucket, a.Units, after, until)
}

// Done returns the answer to a correction made at a time; id is "" if no entry was added.
func (a Adjust) Done(id string, at time.Time) Decision {
	d := Decision{Allowed: true, At: at, Units: map[string]int64{a.Bucket: a.Units},
		Remaining: map[string]int64{}}
	if a.Units > 0 && !a.DryRun {
		d.Entry = id
	}
	return d
}

func checkEntry(id string, labels Labels, credential, key string) error {
	if !idForm.MatchString(id) {
		return malformed("entry ID %q", id)
	}
	return cmp.Or(labels.Check(), checkNames(credential, key))
}

func checkUnits(units int64) error {
	if units < 1 || units > MaxUnits {
		return malformed("%d units: at least 1 and at most %d", units, int64(MaxUnits))
	}
	return nil
}

// Check returns an error for a suspension that no ledger accepts.
func (s Suspension) Check() error {
	return cmp.Or(CheckBucketOf(s.Credential, s.Bucket), CheckText("by", s.By),
		CheckText("reason", s.Reason))
}

func checkTTL(what string, ttl time.Duration) error {
	if ttl < time.Millisecond || ttl > MaxWindow {
		return malformed("a %s for %s: it must last from 1ms to %s", what, ttl,
			shortDuration(MaxWindow))
	}
	return nil
}

func checkNames(credential, key string) error {
	return cmp.Or(CheckNames(credential), CheckText("idempotency key", key))
}

// CheckNames returns an error unless every text can name a credential or a bucket.
func CheckNames(names ...string) error {
	for _, name := range names {
		if err := CheckName(name); err != nil {
			return malformed("%w", err)
		}
	}
	return nil
}

// CheckBucketOf returns an error unless the texts can name a credential and a bucket, or a part.
func CheckBucketOf(credential, bucket string) error {
	if err := CheckBucket(bucket); err != nil {
		return malformed("%w", err)
	}
	return CheckNames(credential)
}

// checkLimited returns an error for a limit that no ledger can decide and, unless unlimited, for a
// bucket without a limit. The bucket of a label's value may lack one after a configuration change.
func checkLimited(costs []Cost, limits []Limit, unlimited bool) error {
	for _, l := range limits {
		if err := l.Check(); err != nil {
			return err
		}
	}
	for _, c := range costs {
		if unlimited || IsLabelBucket(c.Bucket) {
			if err := checkLogName(c.Bucket); err != nil {
				return malformed("%w", err)
			}
			continue
		}
		matches := func(l Limit) bool { return l.Bucket == c.Bucket && l.Pace == nil }
		if !slices.ContainsFunc(limits, matches) {
			return fmt.Errorf("%w: %q", ErrNoBucket, c.Bucket)
		}
	}
	return nil
}

// LimitsOf picks the limits of one bucket.
func LimitsOf(bucket string, limits []Limit) (picked []Limit) {
	for _, l := range limits {
		if l.Bucket == bucket {
			picked = append(picked, l)
		}
	}
	return picked
}

// Refused returns err and its decision: Never for a CostExceedsLimitError, otherwise zero.
func Refused(costs []Cost, err error) (Decision, error) {
	exceeds, never := errors.AsType[*CostExceedsLimitError](err)
	if !never {
		return Decision{}, err
	}
	return Decision{Never: true, Units: UnitsOf(costs), Remaining: map[string]int64{},
		Limit: exceeds.Limit.Name()}, err
}

// UnitsOf returns the costs by bucket.
func UnitsOf(costs []Cost) map[string]int64 {
	units := make(map[string]int64, len(costs))
	for _, c := range costs {
		units[c.Bucket] = c.Units
	}
	return units
}
