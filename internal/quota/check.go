package quota

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"
)

// Check is what every ledger does before it asks its store: it refuses what no ledger takes, and
// answers "never" for a cost above a limit, here at the call site, without a round trip. The
// scripts check again.
func (c Charge) Check() error {
	if len(c.Costs) == 0 {
		return malformed("a charge without a cost")
	}
	seen := make(map[string]bool, len(c.Costs))
	for _, cost := range c.Costs {
		if seen[cost.Bucket] {
			return malformed("bucket %s is charged twice in one charge", cost.Bucket)
		}
		seen[cost.Bucket] = true
		if err := checkUnits(cost.Units); err != nil {
			return err
		}
	}
	if err := checkEntry(c.ID, c.Labels, c.Credential, c.Key); err != nil {
		return err
	}
	if c.Reservation != "" {
		bucket, _, err := ParseReservation(c.Reservation)
		if err != nil {
			return err
		}
		if !seen[bucket] {
			return malformed("reservation %s is of bucket %s, which this charge does not touch",
				c.Reservation, bucket)
		}
	}
	if err := checkBuckets(c.Costs, c.Limits); err != nil || c.Key != "" {
		return err
	}
	return c.CheckCost()
}

// CheckCost is the part of Check that answers "never". With an idempotency key a ledger asks it
// only after it has looked for the answer to the key: that stays the same, even if a limit is lower
// by now.
func (c Charge) CheckCost() error {
	for _, cost := range c.Costs {
		manual := c.Manual || c.Draws(cost.Bucket)
		if err := checkLimits(cost, c.Limits, manual, c.Observe); err != nil {
			return err
		}
	}
	return nil
}

// Draws reports whether the charge takes the bucket's units from a reservation.
func (c Charge) Draws(bucket string) bool {
	of, _, err := ParseReservation(c.Reservation)
	return err == nil && of == bucket
}

// Check does for a reservation what Charge.Check does for a charge.
func (r Reserve) Check() error {
	bucket, _, err := ParseReservation(r.ID)
	err = cmp.Or(err, checkUnits(r.Units), checkTTL("reservation", r.TTL),
		CheckText("note", r.Note), checkNames(r.Credential, r.Key))
	if err != nil {
		return err
	}
	if err := checkBuckets([]Cost{{Bucket: bucket}}, r.Limits); err != nil || r.Key != "" {
		return err
	}
	return r.CheckCost()
}

// CheckCost is as Charge.CheckCost.
func (r Reserve) CheckCost() error {
	bucket, _, _ := ParseReservation(r.ID)
	return checkLimits(Cost{Bucket: bucket, Units: r.Units}, r.Limits, r.Manual, r.Observe)
}

// Check does for a settlement what Charge.Check does for a charge.
func (c Commit) Check() error {
	if _, _, err := ParseReservation(c.Reservation); err != nil {
		return err
	}
	if c.Units != AllUnits && (c.Units < 0 || c.Units > MaxUnits) {
		return malformed("%d units: commit 0 or more", c.Units)
	}
	return checkEntry(c.ID, c.Labels, c.Credential, "")
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

// CheckNames refuses what cannot be the name of a credential or a bucket.
func CheckNames(names ...string) error {
	for _, name := range names {
		if err := CheckName(name); err != nil {
			return malformed("%w", err)
		}
	}
	return nil
}

// checkBuckets finds a bucket without a limit.
func checkBuckets(costs []Cost, limits []Limit) error {
	for _, c := range costs {
		is := func(l Limit) bool { return l.Bucket == c.Bucket && l.Pace == nil }
		if !slices.ContainsFunc(limits, is) {
			return fmt.Errorf("%w: %q", ErrNoBucket, c.Bucket)
		}
	}
	return nil
}

// checkLimits finds the limit that makes a cost impossible. In observe mode nothing is impossible.
func checkLimits(cost Cost, limits []Limit, manual, observe bool) error {
	for _, l := range LimitsOf(cost.Bucket, limits) {
		if limit := l.Cap(manual); l.Pace == nil && cost.Units > limit && !observe {
			return &CostExceedsLimitError{Limit: l, Units: cost.Units, Cap: limit}
		}
	}
	return nil
}

// LimitsOf picks the limits of one bucket.
func LimitsOf(bucket string, limits []Limit) (of []Limit) {
	for _, l := range limits {
		if l.Bucket == bucket {
			of = append(of, l)
		}
	}
	return of
}

// Refused is err with the decision that goes with it: one that says Never with a
// CostExceedsLimitError, and none otherwise.
func Refused(costs []Cost, err error) (Decision, error) {
	exceeds, never := errors.AsType[*CostExceedsLimitError](err)
	if !never {
		return Decision{}, err
	}
	return Decision{Never: true, Units: UnitsOf(costs), Remaining: map[string]int64{},
		Limit: exceeds.Limit.Name()}, err
}

// UnitsOf is the costs by bucket.
func UnitsOf(costs []Cost) map[string]int64 {
	units := make(map[string]int64, len(costs))
	for _, c := range costs {
		units[c.Bucket] = c.Units
	}
	return units
}
