package meter

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
)

// repeats remembers the resources that were paid for in a window, of those that the upstream bills
// once. What this process has not paid for, another one may have: the claims of the ledger tell.
//
// A resource is free only if it was surely booked before, and in the same window: it is marked
// after that, and where anything is in doubt it is booked again.
type repeats struct {
	mu    sync.Mutex // held while a call is settled, so that calls of one process agree
	until time.Time  // the end of the window
	names map[string]bool
}

const (
	maxPaid = 100_000          // resources that are remembered here
	maxOnce = 2_000            // resources of one answer that the ledger is asked about
	unsure  = time.Minute      // around the end of a window: whose a call is, the upstream decides
	claimed = 30 * time.Second // how long nobody else can book a resource; longer than settleTime
	elses   = time.Second      // how long an answer's resources wait for others to book them
)

// due is what is booked of a call whose answer has resources that are billed once.
type due struct {
	took []quota.Cost
	won  []string      // names of the resources that it pays for, to be marked
	rest time.Duration // of their window
}

// settleOnce books what the call took, less the resources that were paid for already.
func (e *exchange) settleOnce(ctx context.Context, took []quota.Cost, out costs.Outcome) error {
	p := &e.gate.paid
	p.mu.Lock()
	defer p.mu.Unlock()
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), settleTime)
	defer done()
	if e.due == nil {
		d, err := e.dueOf(ctx, took, out)
		if err != nil {
			return err
		}
		e.due = &d // a settlement is repeated as it was
	}
	if err := e.settle(ctx, e.due.took, out); err != nil {
		return err
	}
	if !e.doubt {
		e.mark(ctx, *e.due)
	}
	return nil
}

// dueOf finds the resources that are new. Errors are those of a ledger that cannot be reached.
func (e *exchange) dueOf(ctx context.Context, took []quota.Cost, out costs.Outcome) (due, error) {
	d := due{took: slices.Clone(took)}
	now, err := e.gate.Budget.Ledger.Time(ctx)
	if err != nil {
		return d, err
	}
	start, end := out.Once.Bounds(e.asked.d.At)
	if e.asked.d.At.Before(start.Add(unsure)) || now.After(end.Add(-unsure)) {
		return d, nil
	}
	d.rest = end.Sub(now)
	p := &e.gate.paid
	if !p.until.Equal(end) || p.names == nil {
		p.until, p.names = end, map[string]bool{}
	}
	patient, done := context.WithTimeout(ctx, elses)
	defer done()
	for _, r := range inOrder(out.Resources) {
		name := claimName(e.gate.Table.Upstream, start, r.ID)
		free := p.names[name]
		if !free {
			var mine bool
			if free, mine, err = e.claim(ctx, patient, name); err != nil {
				return d, err
			}
			if mine {
				d.won = append(d.won, name)
			}
		}
		if free {
			p.add(name)
			d.less(r.Costs)
		}
	}
	return d, nil
}

// inOrder are the resources by their names, so that two processes do not wait for each other.
func inOrder(all []costs.Resource) []costs.Resource {
	all = slices.SortedFunc(slices.Values(all), func(a, b costs.Resource) int {
		return strings.Compare(a.ID, b.ID)
	})
	return all[:min(len(all), maxOnce)]
}

// less takes off what is free.
func (d *due) less(free []quota.Cost) {
	for _, f := range free {
		for i, c := range d.took {
			if c.Bucket == f.Bucket {
				d.took[i].Units = max(0, c.Units-f.Units)
			}
		}
	}
}

func (p *repeats) add(name string) {
	if len(p.names) < maxPaid {
		p.names[name] = true
	}
}

// claimName is of a resource in a window. It has a digest, because ids come from outside.
func claimName(upstream string, start time.Time, id string) string {
	sum := sha256.Sum256([]byte(id))
	return fmt.Sprintf("once/%s/%d/%s", upstream, start.Unix(), hex.EncodeToString(sum[:16]))
}

// claim asks whether the resource is paid for already, or is ours to pay for now. While another
// process books it, that is waited for.
func (e *exchange) claim(ctx, patient context.Context, name string) (free, mine bool, err error) {
	claims, ok := e.gate.Budget.Ledger.(quota.Claims)
	if !ok {
		return false, true, nil
	}
	for {
		state, err := claims.Claim(ctx, e.claimOf(name, claimed))
		if err != nil || state != quota.ClaimHeld {
			return state == quota.ClaimDone, state == quota.ClaimWon, err
		}
		select {
		case <-patient.Done():
			return false, false, nil
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (e *exchange) claimOf(name string, ttl time.Duration) quota.Claim {
	return quota.Claim{Credential: e.gate.Budget.Credential, Name: name, TTL: ttl,
		Holder: e.holder()}
}

// holder is of this call alone: two calls of one process pay by themselves, too.
func (e *exchange) holder() string {
	id, _, _ := quota.ParseReservation(e.asked.d.Reservation)
	return id
}

// mark records that the resources are paid for. A resource that cannot be marked is booked again at
// its next read.
func (e *exchange) mark(ctx context.Context, d due) {
	claims, _ := e.gate.Budget.Ledger.(quota.Claims)
	for _, name := range d.won {
		e.gate.paid.add(name)
		if claims == nil {
			continue
		}
		c := e.claimOf(name, d.rest)
		if err := claims.Finish(ctx, c, true); err != nil && !errors.Is(err, quota.ErrNoClaim) {
			e.gate.Log.Debug("cannot mark what was paid for: other processes book it again",
				"method", e.call.Method, "error", err)
			claims = nil
		}
	}
}
