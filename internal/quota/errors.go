package quota

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"
)

// Callers branch on these errors, which come wrapped with the details.
var (
	ErrExhausted        = errors.New("quota exhausted")          // see DeniedError
	ErrCostExceedsLimit = errors.New("cost exceeds the limit")   // this cost will never fit
	ErrUnreachable      = errors.New("ledger cannot be reached") // or its reply was lost
	ErrNotExecuted      = errors.New("not executed")             // certainly: no reply was lost
	ErrOutageSpent      = errors.New("at_most is spent: this host lets no more calls pass")
	ErrNoNote           = errors.New("there is no such note in the journal")
	ErrNoJournal        = errors.New("there is no folder for the journal: set QUOTA_STATE_DIR")
	ErrJournal          = errors.New("the journal of this host cannot be read")
	ErrNotSent          = errors.New("not sent")            // refused by the gate
	ErrUnpriced         = errors.New("method has no price") // refused, never guessed
	ErrNotAllowed       = errors.New("not allowed")         // see Allowance
	ErrNoBucket         = errors.New("bucket has no limit") // unknown to the credential
	ErrNoReservation    = errors.New("no such reservation") // or no longer
	ErrReservationShort = errors.New("reservation holds fewer units")
	ErrSettledLate      = errors.New("settled too late")                // the entry stays as held
	ErrNoEntry          = errors.New("no such entry")                   // or no longer
	ErrSpanChanged      = errors.New("the log has changed meanwhile")   // see Adjust.Was
	ErrSpanShort        = errors.New("fewer units are in the log")      // than were to be taken off
	ErrKeyReused        = errors.New("idempotency key was used before") // for a different charge
	ErrMalformed        = errors.New("malformed")                       // not valid in any ledger
	ErrLedgerUnusable   = errors.New("ledger cannot be used")           // until a person acts
)

// DeniedError is a denial on its way through code that can only return errors, such as an
// http.RoundTripper.
type DeniedError struct{ Decision Decision }

// Error names the limit that denied, and when the cost would fit, rounded up to the second. A
// denial by a pace is not exhaustion: units are left for later.
func (e *DeniedError) Error() string {
	if e.Decision.Limit == RunMax {
		return e.Decision.beyondMax()
	}
	at := e.Decision.RetryAt.UTC()
	if whole := at.Truncate(time.Second); whole.Before(at) {
		at = whole.Add(time.Second)
	}
	text := "held back by the pace"
	if e.Decision.Limit != PaceName {
		text = fmt.Sprintf("%v: %s", ErrExhausted, e.Decision.Limit)
	}
	return text + ", retry at " + at.Format(time.RFC3339)
}

// beyondMax returns why the ceiling of a run denies a call, which counts with its maximum cost.
func (d Decision) beyondMax() string {
	var parts []string
	for _, bucket := range slices.Sorted(maps.Keys(d.Units)) {
		parts = append(parts, fmt.Sprintf("%d of %s", d.Units[bucket], bucket))
	}
	left := int64(0)
	for _, n := range d.Remaining {
		left = n
	}
	return fmt.Sprintf("this call can take %s; the run has %d left of its ceiling: ask for less "+
		"(a model: lower max_tokens), or raise --max", strings.Join(parts, ", "), left)
}

// Is makes every DeniedError an ErrExhausted.
func (e *DeniedError) Is(target error) bool { return target == ErrExhausted }

// CostExceedsLimitError reports the limit under which a cost can never fit.
type CostExceedsLimitError struct {
	Limit Limit
	Units int64 // asked for
	Cap   int64 // the maximum of this charge: the limit, less its headroom for a scheduled charge
}

func (e *CostExceedsLimitError) Error() string {
	text := fmt.Sprintf("%v: %d units asked for, %s allows %d", ErrCostExceedsLimit, e.Units,
		e.Limit.Name(), e.Cap)
	if head := e.Limit.Units - e.Cap; head > 0 {
		text += fmt.Sprintf(" (%d less a headroom of %d for manual charges)", e.Limit.Units, head)
	}
	return text
}

// Is makes every CostExceedsLimitError an ErrCostExceedsLimit.
func (e *CostExceedsLimitError) Is(target error) bool { return target == ErrCostExceedsLimit }

// DamagedError reports a bucket whose state and entries disagree: a person edited them, or restored
// a part of them. A ledger decides nothing on the bucket until it is repaired.
type DamagedError struct {
	Credential string
	Bucket     string
	What       string // "the total is 80 in its newest entry, and 90 in its state"
	Lost       bool   // the units of an entry are unknown: no repair helps
}

// Error names the bucket and how to repair it.
func (e *DamagedError) Error() string {
	remedy := "to repair it: quotactl ledger check --repair"
	if e.Lost {
		remedy = "quotactl ledger check names the entry: delete it, and adjust the bucket by what it " +
			"was (docs/operations.md)"
	}
	return fmt.Sprintf("%v: bucket %s of %s is damaged: %s; %s", ErrLedgerUnusable, e.Bucket,
		e.Credential, e.What, remedy)
}

// Is makes every DamagedError an ErrLedgerUnusable.
func (e *DamagedError) Is(target error) bool { return target == ErrLedgerUnusable }

// malformed returns an ErrMalformed with the details.
func malformed(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrMalformed, fmt.Errorf(format, args...))
}
