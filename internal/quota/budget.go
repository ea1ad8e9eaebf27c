package quota

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"time"
)

// Spender takes units of a ledger for calls, and gives them back. *ledger.Ledger documents its
// methods.
type Spender interface {
	Charge(ctx context.Context, c Charge) (Decision, error)
	Cancel(ctx context.Context, c Charge, d Decision) error
	Reserve(ctx context.Context, r Reserve) (Decision, error)
	Settle(ctx context.Context, s Settle) (Decision, error)
	Release(ctx context.Context, credential, reservation string) (map[string]int64, error)
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

// Budget asks a ledger on behalf of a job: it knows whose quota is spent, what each method costs
// and which limits there are. Its fields are set once before use.
type Budget struct {
	Ledger     BudgetLedger
	Credential string
	Limits     []Limit
	PerLabel   []LabelLimit // besides Limits
	Allow      []LabelAllowance
	Paces      []Limit           // each with a Pace; they hold for scheduled charges besides Limits
	Prices     map[string][]Cost // of one call of each method
	Observe    bool              // record what would have been denied and let it pass
	Open       []string          // methods that pass when the ledger cannot be reached
	Unlimited  bool              // buckets without a limit are recorded; else they are ErrNoBucket
	Split      []string          // buckets that come in parts
	Labels     Labels            // of every charge
	Log        *slog.Logger      // required with Open, Journal and Book
	AtMost     int64             // units of each bucket that calls of Open take meanwhile; 0: any
	Journal    Journal           // of what the ledger does not have yet; may be nil
}

// Call is what a job wants to do.
type Call struct {
	Method      string // priced by the budget; or
	Bucket      string // a bucket, with
	Units       int64  // the units to take from it; or
	Costs       []Cost // what the caller knows that the method takes
	Count       int64  // how many calls of the method; 0 is one
	Key         string // idempotency key
	Manual      bool   // a person asks: the headroom may be used
	Unpaced     bool   // the paces do not hold it back, the limits do
	DryRun      bool   // decide, but charge nothing
	Again       bool   // a denial is not counted: the caller waits, and an earlier one was
	Labels      Labels
	Model       string    // that the request names; the label model otherwise
	Allow       Allowance `json:"-"` // of the caller's token
	Reservation string    // draw on it
}

// Charge takes what the call costs. A denial is an answer; errors are those of Ledger.Charge, and
// ErrUnpriced.
func (b *Budget) Charge(ctx context.Context, call Call) (Decision, error) {
	_, d, err := b.charge(ctx, call)
	return d.unlabelled(), err
}

// Spend charges like Charge and returns a way to take the charge back, for a call that surely never
// left. A denial is a DeniedError here.
func (b *Budget) Spend(ctx context.Context, call Call) (
	d Decision, cancel func(context.Context) error, err error) {
	c, d, err := b.charge(ctx, call)
	d = d.unlabelled()
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
	costs, err := b.Costs(call)
	if err != nil {
		return Charge{}, Decision{}, err
	}
	labels := b.labelsOf(call).With(heldLabels(call.Reservation))
	if err := b.allowed(call, costs, labels); err != nil {
		return Charge{}, Decision{}, err
	}
	costs, limits := b.spread(costs, labels)
	paces := b.pacesOn(call, costs)
	c := Charge{
		Credential: b.Credential, ID: NewID(time.Now()), Key: call.Key, Costs: costs,
		Limits: append(limits, paces...), Unlimited: b.Unlimited, Labels: labels,
		Manual: call.Manual, Observe: b.Observe, DryRun: call.DryRun,
		Reservation: call.Reservation,
	}
	d, err := b.askCharge(ctx, &c)
	switch {
	case err == nil:
		d = b.whenPaced(ctx, call, paces, d)
		if !d.Allowed && !call.DryRun && !call.Again {
			b.countDenial(c.Costs, labels, d)
		}
		if !call.DryRun {
			b.reached(ctx)
		}
	case b.failsOpen(call, err):
		d, err = b.unmetered(ctx, c, "", err)
	}
	return c, d, err
}

// pacesOn returns the paces that hold the call back.
func (b *Budget) pacesOn(call Call, costs []Cost) []Limit {
	if call.Unpaced {
		return nil
	}
	return b.of(b.Paces, costs)
}

// whenPaced puts a denial's time off to when the lines of the paces are where the call needs them,
// if that is later. Should the ledger be gone by now, the denial stands without it.
func (b *Budget) whenPaced(ctx context.Context, call Call, lines []Limit, d Decision) Decision {
	if !d.Allowed {
		lines = Enforced(lines) // no other one denies it
	}
	if len(lines) == 0 || d.Limit == RunMax || call.Manual || call.Reservation != "" || d.Allowed && !d.Observed {
		return d
	}
	days := make([]Limit, len(lines))
	for i, l := range lines {
		days[i] = Limit{Bucket: l.Bucket, Units: l.Units, Headroom: l.Headroom, Window: l.Window}
	}
	usage, err := b.Ledger.Usage(ctx, b.Credential, days)
	if err != nil {
		return d
	}
	for _, l := range lines {
		used, held := taken(usage, l)
		var holds []Expiring
		if held > 0 {
			set, err := b.Ledger.Reservations(ctx, b.Credential, l.Bucket)
			if err != nil {
				return d
			}
			for _, r := range set {
				if r.ID != d.Reservation {
					holds = append(holds, Expiring{r.Left, r.ExpiresAt.UnixMicro()})
				}
			}
		}
		if d.Entry != "" { // observed: it is among them already
			used -= d.Units[l.Bucket]
		}
		at := l.PacedAt(used, holds, d.Units[l.Bucket], usage.At, d.RetryAt)
		if at.After(d.RetryAt) { // where units are gone too, that is what denies
			d.RetryAt = at.UTC()
		}
	}
	return d
}

// taken returns the units used in the window of l, and those held in its bucket.
func taken(usage Usage, l Limit) (used, held int64) {
	for _, bucket := range usage.Buckets {
		for _, u := range bucket.Limits {
			if bucket.Bucket == l.Bucket && u.Limit.Window.String() == l.Window.String() {
				used, held = u.Used-u.Others, bucket.Held
			}
		}
	}
	return used, held
}

// Costs returns what the call takes from which buckets. Errors: ErrUnpriced, ErrMalformed.
func (b *Budget) Costs(call Call) ([]Cost, error) {
	if len(call.Costs) > 0 {
		return slices.Clone(call.Costs), checkUnlabelled(call.Costs...)
	}
	if call.Method == "" {
		cost := Cost{Bucket: cmp.Or(call.Bucket, DefaultBucket), Units: call.Units}
		return []Cost{cost}, cmp.Or(checkUnlabelled(cost), checkUnits(call.Units))
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

// ReserveRequest asks to set the costs of a call aside.
type ReserveRequest struct {
	Call
	TTL   time.Duration
	Lapse Lapse
	Note  string
}

// Reserve holds units for later. Paces delay neither a reservation nor charges that draw on it.
// Errors are those of Ledger.Reserve, and ErrUnpriced.
func (b *Budget) Reserve(ctx context.Context, r ReserveRequest) (Decision, error) {
	r.Unpaced = true
	return b.reserve(ctx, r)
}

func (b *Budget) reserve(ctx context.Context, r ReserveRequest) (Decision, error) {
	_, d, err := b.reserveAs(ctx, r)
	return d.unlabelled(), err
}

// reserveAs does what reserve does, and also returns the charge that replaces the reservation if
// the ledger cannot be reached.
func (b *Budget) reserveAs(ctx context.Context, r ReserveRequest) (
	c Charge, d Decision, err error) {
	costs, err := b.Costs(r.Call)
	if err != nil {
		return c, d, err
	}
	labels := b.labelsOf(r.Call)
	if err := b.allowed(r.Call, costs, labels); err != nil {
		return c, d, err
	}
	costs, limits := b.spread(costs, labels)
	paces := b.pacesOn(r.Call, costs)
	c = Charge{ID: NewID(time.Now()), Credential: b.Credential, Key: r.Key, Costs: costs,
		Limits: append(limits, paces...), Labels: labels, Observe: b.Observe}
	asked := Reserve{
		Credential: b.Credential, Key: r.Key, Limits: c.Limits, TTL: r.TTL, Lapse: r.Lapse,
		Note: r.Note, Unlimited: b.Unlimited, Manual: r.Manual, Observe: b.Observe, Labels: labels,
	}
	d, err = b.withNewValues(ctx, &c, func() (Decision, error) {
		c.Reservation = ReservationID(c.ID, bucketsOf(c.Costs)...)
		asked.ID, asked.Costs, asked.NewValues = c.Reservation, c.Costs, c.NewValues
		return b.Ledger.Reserve(ctx, asked)
	})
	if err == nil {
		d = b.whenPaced(ctx, r.Call, paces, d)
		if !d.Allowed && !r.DryRun && !r.Again {
			b.countDenial(c.Costs, labels, d)
		}
	}
	return c, d, err
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
	call := Call{Bucket: buckets[0], Units: units, Reservation: reservation, Labels: labels}
	return b.Charge(ctx, call)
}

// Commit settles a reservation of one bucket: units of it were used, no more than are left
// (AllUnits for all, of one of several buckets, too). Errors are those of Ledger.Settle.
func (b *Budget) Commit(ctx context.Context, reservation string, units int64) (Decision, error) {
	buckets, err := HeldBuckets(reservation)
	s := Settle{Reservation: reservation, Within: true, Labels: b.Labels}
	switch {
	case err != nil:
		return Decision{}, err
	case units == AllUnits:
	case len(buckets) > 1:
		return Decision{}, malformed("reservation %s is of %d buckets: settle each of them",
			reservation, len(buckets))
	default:
		s.Costs = []Cost{{Bucket: buckets[0], Units: units}}
	}
	d, err := b.Ledger.Settle(ctx, b.settlement(s))
	return d.unlabelled(), err
}

// Settle books what a call took for which units were reserved: call.Costs, more or less than that.
// Errors are those of Ledger.Settle.
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
	s := Settle{Reservation: reservation, Costs: b.across(call.Costs), Labels: b.labelsOf(call)}
	return b.settlement(s), err
}

// settlement returns s in all buckets of the reservation, under the limits that hold there.
func (b *Budget) settlement(s Settle) Settle {
	_, buckets, _ := ParseReservation(s.Reservation)
	s.Costs, s.Labels = labelledAs(buckets, s.Costs), s.Labels.With(heldLabels(s.Reservation))
	held := make([]Cost, len(buckets))
	for i, bucket := range buckets {
		held[i].Bucket = bucket
	}
	s.Credential, s.ID, s.Limits = b.Credential, NewID(time.Now()), b.limitsOf(held)
	return s
}

// Extend has an open reservation last until ttl from now, unless it lasts longer, and returns when
// it expires then. Errors: ErrNoReservation.
func (b *Budget) Extend(ctx context.Context, reservation string, ttl time.Duration) (
	time.Time, error) {
	return b.Ledger.Extend(ctx, Extend{b.Credential, reservation, ttl})
}

// Release gives back what is left of a reservation, by bucket. Errors: ErrNoReservation.
func (b *Budget) Release(ctx context.Context, reservation string) (map[string]int64, error) {
	given, err := b.Ledger.Release(ctx, b.Credential, reservation)
	return UnlabelledUnits(given), err
}

// Learn keeps what the upstream says of one of the limits: see Ledger.Learn.
func (b *Budget) Learn(ctx context.Context, l Learn) (Learned, error) {
	l.Credential = b.Credential
	return b.Ledger.Learn(ctx, l)
}

// BucketUsage returns how a bucket stands, whether it has a limit or not.
func (b *Budget) BucketUsage(ctx context.Context, bucket string) (BucketUsage, error) {
	some := Limit{Bucket: bucket, Units: 1, Window: Sliding(time.Minute)} // Usage goes by limits
	usage, err := b.Ledger.Usage(ctx, b.Credential, []Limit{some})
	if err != nil {
		return BucketUsage{}, err
	}
	return usage.Buckets[0], nil
}

// SuspendedUntil returns until when a bucket is suspended, zero if it is open.
func (b *Budget) SuspendedUntil(ctx context.Context, bucket string) (time.Time, error) {
	u, err := b.BucketUsage(ctx, bucket)
	return u.SuspendedUntil, err
}

// Resume opens a suspended bucket again.
func (b *Budget) Resume(ctx context.Context, bucket string) error {
	return b.Ledger.Suspend(ctx, Suspension{Credential: b.Credential, Bucket: bucket})
}

// Usage returns the standing of the credential's limits, those of split buckets for each part that
// was ever used.
func (b *Budget) Usage(ctx context.Context) (Usage, error) {
	limits, leftOut, err := b.Listed(ctx)
	if err != nil {
		return Usage{}, err
	}
	usage, err := b.Ledger.Usage(ctx, b.Credential, limits)
	usage.LeftOut = leftOut
	return usage, err
}

// Buckets returns the buckets that have a limit, in the order of the limits.
func (b *Budget) Buckets() []string {
	var buckets []string
	for _, l := range b.Limits {
		if !slices.Contains(buckets, l.Bucket) {
			buckets = append(buckets, l.Bucket)
		}
	}
	return buckets
}
