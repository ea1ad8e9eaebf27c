package job

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/quota"
)

// inTurn calls try until it is not denied or the maximum wait has passed. Runs that wait for
// the same things, in any process, try in order of arrival. Only the first in line tries. The
// others check how many are ahead, less often the more there are. A run with no time to wait tries
// once and does not queue.
func (r *run) inTurn(ctx context.Context, things []string,
	try func(context.Context) (*DeniedError, error)) error {
	if r.Wait <= 0 {
		denied, err := try(ctx)
		if denied != nil {
			return denied
		}
		return err
	}
	p := &place{run: r}
	for _, thing := range things {
		p.queues = append(p.queues, queueBucket(thing))
	}
	defer p.leave()
	var denied *DeniedError
	for tries := 0; ; {
		if err := r.stillHeld(ctx); err != nil && !quota.IsAway(err) {
			return err
		}
		ahead, err := p.stand(ctx)
		if quota.IsAway(err) { // a call that may pass without the ledger needs no place
			ahead, err = 0, nil
		}
		if err == nil && ahead == 0 {
			if denied, err = try(ctx); err == nil && denied == nil {
				return nil
			}
			tries++
		}
		if err != nil {
			return cmp.Or(context.Cause(ctx), err)
		}
		left := time.Until(r.until)
		if left <= 0 {
			return r.tooLate(ctx, denied, ahead)
		}
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(min(left, pause(ahead, tries, denied))):
		}
	}
}

// pause is how long it makes sense to wait before looking again. Holds usually end before they
// expire, so the first in line checks before the announced time.
func pause(ahead, tries int, denied *DeniedError) time.Duration {
	const least, most = 100 * time.Millisecond, 4 * time.Second
	wait := time.Duration(ahead) * 2 * least
	if ahead == 0 {
		wait = least << min(tries, 6)
		if d := denied; d != nil && d.Decision.RetryAfter() > 0 {
			wait = min(wait, d.Decision.RetryAfter())
		}
	}
	wait = min(most, max(least, wait))
	return wait - time.Duration(rand.Int64N(int64(wait)/4))
}

// tooLate returns the denial at the end of the wait. A run that was never first in line has not
// tried yet.
func (r *run) tooLate(ctx context.Context, denied *DeniedError, ahead int) error {
	if denied == nil {
		denied = &DeniedError{}
		call := r.call()
		call.DryRun = true
		// without a response, RetryAt stays unknown
		if d, err := r.budget.Charge(ctx, call); err == nil {
			denied.Decision = d
		}
	}
	denied.Ahead = ahead
	return denied
}

// queueBucket returns the bucket, without a limit, for the places of runs that wait for a thing.
func queueBucket(what string) string {
	const longest = 63
	part := strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || c == '.' || c == '_' || c == '-' {
			return c
		}
		return '.'
	}, what)
	if part != what || len(part) > longest {
		sum := sha256.Sum256([]byte(what))
		part = hex.EncodeToString(sum[:12])
	}
	return quota.SplitBucket("waiting", part)
}

// place is a place in line: a reservation of one unit in the bucket of each queue. It expires soon,
// so that no run waits for a dead one.
type place struct {
	run    *run
	queues []string
	id     string
	until  time.Time // by this machine's clock
}

const placeTime = 15 * time.Second

// stand takes the last place, or keeps the present one, and returns the number of places ahead.
func (p *place) stand(ctx context.Context) (ahead int, err error) {
	for {
		if err = p.take(ctx); err == nil {
			ahead, err = p.ahead(ctx)
		}
		if err != nil || ahead >= 0 {
			return ahead, err
		}
		p.id = "" // the place expired while this process was stopped
	}
}

func (p *place) take(ctx context.Context) error {
	b := &p.run.budget
	now := time.Now()
	if p.id != "" && now.Before(p.until.Add(-placeTime*2/3)) {
		return nil
	}
	if p.id != "" {
		_, err := b.Extend(ctx, p.id, placeTime)
		if err == nil {
			p.until = now.Add(placeTime)
		}
		if !errors.Is(err, quota.ErrNoReservation) {
			return err
		}
	}
	costs := make([]quota.Cost, len(p.queues))
	for i, q := range p.queues {
		costs[i] = quota.Cost{Bucket: q, Units: 1}
	}
	d, err := b.Ledger.Reserve(ctx, quota.Reserve{Credential: b.Credential, Costs: costs,
		ID:  quota.ReservationID(quota.NewID(now), p.queues...),
		TTL: placeTime, Unlimited: true, Note: p.run.note()})
	if err == nil {
		p.id, p.until = d.Reservation, now.Add(placeTime)
	}
	return err
}

// ahead returns the number of places before this one in the longest queue, or -1 if the place is
// lost.
func (p *place) ahead(ctx context.Context) (longest int, err error) {
	b := &p.run.budget
	for _, q := range p.queues {
		list, err := b.Ledger.Reservations(ctx, b.Credential, q)
		if err != nil {
			return 0, err
		}
		at := slices.IndexFunc(list, func(r quota.Reservation) bool { return r.ID == p.id })
		if at < 0 {
			return -1, nil
		}
		longest = max(longest, at)
	}
	return longest, nil
}

func (p *place) leave() {
	if p.id == "" {
		return
	}
	b := &p.run.budget
	err := patiently(0, func(ctx context.Context) error {
		_, err := b.Release(ctx, p.id)
		return err
	})
	if err != nil && !errors.Is(err, quota.ErrNoReservation) {
		p.run.Log.Debug("cannot give back a place in line: it will expire", "error", err)
	}
}
