package quota

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"
)

// Spender takes units of a ledger for calls, and gives them back. *ledger.Ledger documents its
// methods.
type Spender interface {
	Charge(ctx context.Context, c Charge) (Decision, error)
	Cancel(ctx context.Context, c Charge, d Decision) error
	Reserve(ctx context.Context, r Reserve) (Decision, error)
	Settle(ctx context.Context, s Settle) (Decision, error)
	Release(ctx context.Context, r Release) (map[string]int64, error)
}

// BudgetLedger is what a Budget needs of a ledger.
type BudgetLedger interface {
	Spender
	EntryReader
	Extend(ctx context.Context, e Extend) (time.Time, error)
	Learn(ctx context.Context, l Learn) (Learned, error)
	Suspend(ctx context.Context, s Suspension) error
	Denied(credential string, d Denial)
	Usage(ctx context.Context, credential string, limits []Limit) (Usage, error)
	Reservations(ctx context.Context, credential, bucket string) ([]Reservation, error)
	BucketsOf(ctx context.Context, credential string) ([]BucketTotal, error)
	Time(ctx context.Context) (time.Time, error)
}

// Budget charges a ledger on behalf of a job. It holds the credential, the price of each method and
// the limits. Its fields are set once before use.
type Budget struct {
	Ledger     BudgetLedger
	Credential string
	Limits     []Limit
	PerLabel   []LabelLimit // in addition to Limits
	Allow      []LabelAllowance
	Paces      []Limit           // each with a Pace; for scheduled charges only
	Prices     map[string][]Cost // of one call of each method
	Observe    bool              // allow and record charges that would be denied
	Open       []string          // methods that pass when the ledger cannot be reached
	Unlimited  bool              // record buckets without a limit; otherwise they are ErrNoBucket
	Split      []string          // buckets that are split into parts
	Labels     Labels            // added to every charge
	Log        *slog.Logger      // required with Open, Journal and Book
	AtMost     int64             // units per bucket for calls of Open in an outage; 0: any
	Journal    Journal           // keeps what the ledger does not have yet; may be nil
}

// Call describes what a job wants to do.
type Call struct {
	Method      string // priced by the budget; or
	Bucket      string // a bucket, with
	Units       int64  // the units to take from it; or
	Costs       []Cost // the method's costs, if the caller knows them
	Count       int64  // number of calls of the method; 0 means 1
	Key         string // idempotency key
	Manual      bool   // requested by a person: may use the headroom
	Unpaced     bool   // exempt from the paces, not from the limits
	DryRun      bool   // decide, but charge nothing
	Again       bool   // do not count a denial: the caller waits, and the first one was counted
	Labels      Labels
	Model       string    // named by the request; otherwise the label model
	Allow       Allowance `json:"-"` // of the caller's token
	Reservation string    // to draw on
}

// Charge takes the units that the call costs. A denial is a Decision, not an error. Errors are
// those of Ledger.Charge, and ErrUnpriced.
func (b *Budget) Charge(ctx context.Context, call Call) (Decision, error) {
	_, d, err := b.charge(ctx, call)
	return d, err
}

// Spend is like Charge, but returns a denial as a DeniedError, and a function that undoes the
// charge of a call that certainly was not sent.
func (b *Budget) Spend(ctx context.Context, call Call) (
	d Decision, cancel func(context.Context) error, err error) {
	c, d, err := b.charge(ctx, call)
	if err == nil && !d.Allowed {
		err = &DeniedError{Decision: d}
	}
	if err != nil {
		return d, nil, err
	}
	return d, func(ctx context.Context) error {
		switch {
		case d.Unmetered:
			return b.correct(ctx, d, Call{})
		case d.Replayed || c.DryRun:
			return nil
		}
		return b.Ledger.Cancel(ctx, c, d)
	}, nil
}

func (b *Budget) charge(ctx context.Context, call Call) (Charge, Decision, error) {
	c, d, err := b.ask(ctx, call, b.Ledger.Charge)
	switch {
	case err == nil && !call.DryRun:
		b.reached(ctx)
	case b.failsOpen(call, err):
		d, err = b.unmetered(ctx, c, "", err)
	}
	return c, d.unlabelled(), err
}

// ask asks the ledger for the units that the call costs, and counts a denial. It also returns the
// request.
func (b *Budget) ask(ctx context.Context, call Call,
	ask func(context.Context, Charge) (Decision, error)) (c Charge, d Decision, err error) {
	costs, err := b.Costs(call)
	if err != nil {
		return c, d, err
	}
	labels := b.labelsOf(call).With(HeldLabels(call.Reservation))
	if err := b.allowed(call, costs, labels); err != nil {
		return c, d, err
	}
	costs, limits := b.spread(costs, labels, call.Reservation)
	var paces []Limit
	if !call.Unpaced {
		paces = b.limitsAmong(b.Paces, bucketsOf(costs))
	}
	c = Charge{
		Credential: b.Credential, ID: NewID(time.Now()), Key: call.Key, Costs: costs,
		Limits: append(limits, paces...), Unlimited: b.Unlimited, Labels: labels,
		Manual: call.Manual, Observe: b.Observe, DryRun: call.DryRun,
		Reservation: call.Reservation,
	}
	if d, err = b.withNewValues(ctx, &c, ask); err != nil {
		return c, d, err
	}
	d = b.whenPaced(ctx, call, paces, d)
	if !d.Allowed && !call.DryRun && !call.Again {
		b.countDenial(c, d)
	}
	return c, d, nil
}

// whenPaced postpones a denial's RetryAt until the paces also allow the call. It returns the denial
// unchanged if the ledger can no longer be reached.
func (b *Budget) whenPaced(ctx context.Context, call Call, paces []Limit, d Decision) Decision {
	if !d.Allowed {
		paces = Enforced(paces) // a pace that is only observed denies nothing
	}
	if len(paces) == 0 || d.Limit == RunMax || call.Manual || call.Reservation != "" ||
		d.Allowed && !d.Observed {
		return d
	}
	usage, err := b.Ledger.Usage(ctx, b.Credential, paces)
	if err != nil {
		return d
	}
	later := d
	for _, bucket := range usage.Buckets {
		var holds []Expiring
		if bucket.Held > 0 {
			set, err := b.Ledger.Reservations(ctx, b.Credential, bucket.Bucket)
			if err != nil {
				return d
			}
			for _, r := range set {
				if r.ID != d.Reservation {
					holds = append(holds, Expiring{r.Left, r.ExpiresAt.UnixMicro()})
				}
			}
		}
		for _, u := range bucket.Limits {
			used := u.Used
			if d.Entry != "" { // an observed charge is already counted
				used -= d.Units[bucket.Bucket]
			}
			at := u.Limit.PacedAt(used, holds, d.Units[bucket.Bucket], usage.At, later.RetryAt)
			if at.After(later.RetryAt) { // otherwise the reason remains that units are used up
				later.RetryAt = at.UTC()
			}
		}
	}
	return later
}

// Costs returns the units that the call takes from each bucket. Errors: ErrUnpriced, ErrMalformed.
func (b *Budget) Costs(call Call) ([]Cost, error) {
	if len(call.Costs) > 0 {
		return slices.Clone(call.Costs), checkUnlabelled(call.Costs...)
	}
	if call.Method == "" {
		cost := Cost{Bucket: cmp.Or(call.Bucket, DefaultBucket), Units: call.Units}
		return []Cost{cost}, checkUnlabelled(cost)
	}
	price, ok := b.Prices[call.Method]
	if !ok {
		return nil, fmt.Errorf("%w: %q", ErrUnpriced, call.Method)
	}
	count := cmp.Or(call.Count, 1)
	if count < 0 || count > MaxUnits {
		return nil, malformed("%d calls", count)
	}
	costs := slices.Clone(price)
	for i := range costs {
		if costs[i].Units > MaxUnits/count {
			return nil, malformed("%d calls of %s: at most %d units in one charge", count,
				call.Method, int64(MaxUnits))
		}
		costs[i].Units *= count
	}
	return costs, nil
}

// ReserveRequest is a request to set the costs of a call aside.
type ReserveRequest struct {
	Call
	TTL   time.Duration
	Lapse Lapse
	Note  string
}

// Reserve holds units for later. Paces delay neither a reservation nor the draws on it. Errors are
// those of Ledger.Reserve, and ErrUnpriced.
func (b *Budget) Reserve(ctx context.Context, r ReserveRequest) (Decision, error) {
	r.Unpaced = true
	_, d, err := b.reserveAs(ctx, r)
	return d, err
}

// reserveAs reserves the costs of a call. It also returns the charge that replaces the reservation
// if the ledger cannot be reached.
func (b *Budget) reserveAs(ctx context.Context, r ReserveRequest) (
	c Charge, d Decision, err error) {
	r.Reservation = ""
	var id string
	c, d, err = b.ask(ctx, r.Call, func(ctx context.Context, c Charge) (Decision, error) {
		id = ReservationID(c.ID, bucketsOf(c.Costs)...)
		return b.Ledger.Reserve(ctx, Reserve{
			Credential: c.Credential, ID: id, Key: c.Key, Costs: c.Costs, Limits: c.Limits,
			TTL: r.TTL, Lapse: r.Lapse, Labels: c.Labels, Note: r.Note, Unlimited: c.Unlimited,
			Manual: c.Manual, Observe: c.Observe, NewValues: c.NewValues,
		})
	})
	c.Reservation = id
	return c, d.unlabelled(), err
}

func (b *Budget) labelsOf(call Call) Labels {
	labels := b.Labels.With(call.Labels)
	if call.Method != "" {
		labels[LabelMethod] = call.Method
	}
	return labels
}

// Draw charges units that were set aside. Errors are those of Ledger.Charge.
func (b *Budget) Draw(ctx context.Context, reservation string, units int64, labels Labels) (
	Decision, error) {
	buckets, err := HeldBuckets(reservation)
	if err != nil {
		return Decision{}, err
	}
	if len(buckets) == 0 {
		return Decision{}, malformed("reservation %s is of a label's value alone: draw on one of a "+
			"bucket", reservation)
	}
	call := Call{Bucket: buckets[0], Units: units, Reservation: reservation, Labels: labels}
	return b.Charge(ctx, call)
}

// Commit settles a reservation of one bucket with the units used, at most those left. AllUnits
// settles all, of several buckets too. Errors are those of Ledger.Settle.
func (b *Budget) Commit(ctx context.Context, reservation string, units int64) (Decision, error) {
	buckets, err := HeldBuckets(reservation)
	s := Settle{Reservation: reservation, Within: true, Labels: b.Labels}
	switch {
	case err != nil:
		return Decision{}, err
	case units == AllUnits:
	case len(buckets) != 1:
		return Decision{}, malformed("reservation %s is of %d buckets: settle each of them",
			reservation, len(buckets))
	default:
		s.Costs = []Cost{{Bucket: buckets[0], Units: units}}
	}
	d, err := b.Ledger.Settle(ctx, b.settlement(s))
	return d.unlabelled(), err
}

// Settle books call.Costs, what a call actually used, in place of its reservation, which may be
// smaller or larger. Errors are those of Ledger.Settle.
func (b *Budget) Settle(ctx context.Context, reservation string, call Call) (Decision, error) {
	s, err := b.settlementOf(reservation, call)
	if err != nil {
		return Decision{}, err
	}
	d, err := b.Ledger.Settle(ctx, s)
	return d.unlabelled(), err
}

func (b *Budget) settlementOf(reservation string, call Call) (Settle, error) {
	_, err := HeldBuckets(reservation)
	err = cmp.Or(err, checkUnlabelled(call.Costs...))
	s := Settle{Reservation: reservation, Costs: b.across(call.Costs), Labels: b.labelsOf(call)}
	return b.settlement(s), err
}

// settlement returns s with all buckets of the reservation and their limits.
func (b *Budget) settlement(s Settle) Settle {
	_, buckets, _ := ParseReservation(s.Reservation)
	s.Costs = slices.Concat(s.Costs, valueCosts(buckets, s.Costs))
	s.Labels = s.Labels.With(HeldLabels(s.Reservation))
	s.Credential, s.ID, s.Limits = b.Credential, NewID(time.Now()), b.limitsOf(buckets)
	return s
}

// Extend prolongs an open reservation to ttl from now, unless it already lasts longer, and returns
// its expiry. Errors: ErrNoReservation.
func (b *Budget) Extend(ctx context.Context, reservation string, ttl time.Duration) (
	time.Time, error) {
	return b.Ledger.Extend(ctx, Extend{b.Credential, reservation, ttl})
}

// Release gives back what is left of a reservation, by bucket. Errors: ErrNoReservation.
func (b *Budget) Release(ctx context.Context, reservation string) (map[string]int64, error) {
	given, err := b.Ledger.Release(ctx, Release{b.Credential, reservation, false})
	return UnlabelledUnits(given), err
}

// Learn records what the upstream reports about one of the limits: see Ledger.Learn.
func (b *Budget) Learn(ctx context.Context, l Learn) (Learned, error) {
	l.Credential = b.Credential
	return b.Ledger.Learn(ctx, l)
}

// BucketUsage returns the usage of a bucket, with or without a limit.
func (b *Budget) BucketUsage(ctx context.Context, bucket string) (BucketUsage, error) {
	some := Limit{Bucket: bucket, Units: 1, Window: Sliding(time.Minute)} // Usage needs one
	usage, err := b.Ledger.Usage(ctx, b.Credential, []Limit{some})
	if err != nil {
		return BucketUsage{}, err
	}
	return usage.Buckets[0], nil
}

// SuspendedUntil returns when the suspension of a bucket ends, zero if it is open.
func (b *Budget) SuspendedUntil(ctx context.Context, bucket string) (time.Time, error) {
	u, err := b.BucketUsage(ctx, bucket)
	return u.SuspendedUntil, err
}

// SuspendUntil closes a bucket until then, for the reason the upstream gave.
func (b *Budget) SuspendUntil(ctx context.Context, bucket string, until time.Time,
	reason string) error {
	if len(reason) > maxText || CheckText("reason", reason) != nil {
		reason = strings.ToValidUTF8(reason[:min(len(reason), maxText)], "")
		if CheckText("reason", reason) != nil {
			reason = ""
		}
	}
	return b.Ledger.Suspend(ctx, Suspension{Credential: b.Credential, Bucket: bucket,
		Until: until, By: ByUpstream, Reason: reason})
}

// Resume lifts the suspension of a bucket.
func (b *Budget) Resume(ctx context.Context, bucket string) error {
	return b.Ledger.Suspend(ctx, Suspension{Credential: b.Credential, Bucket: bucket})
}

// Usage returns the usage of the credential's limits, with one for each used part of a split
// bucket.
func (b *Budget) Usage(ctx context.Context) (Usage, error) {
	limits, leftOut, err := b.Listed(ctx)
	if err != nil {
		return Usage{}, err
	}
	usage, err := b.Ledger.Usage(ctx, b.Credential, limits)
	usage.LeftOut = leftOut
	return usage, err
}

// Buckets returns the buckets that have a limit, in the order of the limits, those per label last.
func (b *Budget) Buckets() (buckets []string) {
	limits := slices.Clone(b.Limits)
	for _, l := range b.PerLabel {
		limits = append(limits, l.Limit)
	}
	for _, l := range limits {
		if !slices.Contains(buckets, l.Bucket) {
			buckets = append(buckets, l.Bucket)
		}
	}
	return buckets
}
