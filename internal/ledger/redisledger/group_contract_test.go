package redisledger

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
	"quotabudget/internal/quota/quotatest"
)

// crowd is a ledger each of whose callers is one of a group. The others ask for the same as dry
// runs, before and after it, or after it under its idempotency key, so that they must change
// nothing. The groups take on every size.
type crowd struct {
	*Ledger
	sizes *atomic.Int64
}

func (c crowd) Charge(ctx context.Context, of quota.Charge) (quota.Decision, error) {
	if err := of.Check(); err != nil {
		return quota.Refused(of.Costs, err)
	}
	return c.decide(ctx, charging(of))
}

func (c crowd) Reserve(ctx context.Context, r quota.Reserve) (quota.Decision, error) {
	if err := r.Check(); err != nil {
		return quota.Refused(r.Costs, err)
	}
	return c.decide(ctx, reserving(r))
}

func (c crowd) decide(ctx context.Context, r request) (quota.Decision, error) {
	r = c.coded(r)
	n := int(c.sizes.Add(1))
	size := n%maxGroup + 1
	if n > 4*maxGroup { // after a few rounds of all sizes, mostly small ones: they are quicker
		size = n%5 + 1
	}
	crowd, own := slices.Repeat([]request{r}, size), 0
	if r.key == "" {
		crowd = slices.Repeat([]request{dry(r)}, size)
		own = n / maxGroup % size
		crowd[own] = r
	}
	answers, _ := c.askGroup(ctx, crowd, func(i int) bool { return i == own })
	if answers[own].err != nil {
		return quota.Decision{}, answers[own].err
	}
	return c.answered(ctx, &r, answers[own].reply)
}

// dry is a dry run of a charge that is as r.
func dry(r request) request {
	r.op, r.reserve, r.dryRun = "charge", nil, true
	return r
}

// askGroup asks as one group, and again for those that were not decided: alone, after the others.
// Only some insist on that: a dry run that comes later may find that a hold has expired.
func (l *Ledger) askGroup(ctx context.Context, requests []request, insists func(i int) bool) (
	answers []work, order []int) {
	group := make([]*operation, len(requests))
	for i, r := range requests {
		group[i] = asking(r, l.now())
	}
	l.send(ctx, group)
	var again []int
	for i, o := range group {
		answers = append(answers, o.Work)
		if o.Work.err == nil && o.Work.reply.status() == stale {
			again = append(again, i)
		} else {
			order = append(order, i)
		}
	}
	for _, i := range again {
		if !insists(i) {
			continue
		}
		answers[i].reply, answers[i].err = l.askTogether(ctx, requests[i])
	}
	return answers, append(order, again...)
}

// togetherOn asks a ledger in one group.
func togetherOn(t testing.TB, of quota.Ledger, calls []quotatest.Call) (
	answers []quotatest.Answer, order []int) {
	l := of.(crowd).Ledger
	answers = make([]quotatest.Answer, len(calls))
	var requests []request
	var asked, refused []int // numbers of calls
	for i, c := range calls {
		r, err := charging(c.Charge), c.Charge.Check()
		if c.Reserve != nil {
			r, err = reserving(*c.Reserve), c.Reserve.Check()
		}
		if err != nil {
			answers[i].Decision, answers[i].Err = quota.Refused(r.costs, err)
			refused = append(refused, i)
			continue
		}
		requests, asked = append(requests, l.coded(r)), append(asked, i)
	}
	if len(requests) == 0 {
		return answers, refused
	}
	found, decided := l.askGroup(t.Context(), requests, func(int) bool { return true })
	for n, i := range asked {
		answers[i].Err = found[n].err
		if found[n].err == nil {
			answers[i].Decision, answers[i].Err = l.answered(
				t.Context(), &requests[n], found[n].reply)
		}
	}
	for _, n := range decided {
		order = append(order, asked[n])
	}
	return answers, append(order, refused...)
}

// The whole contract holds for callers in groups of every size, and what they are told is what the
// model tells when it is asked in their order.
func TestContractInGroups(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{Clock: true})
	client := admin(t, s.Addr)
	var sizes atomic.Int64
	quotatest.Run(t, quotatest.Harness{
		Coarse:   true,
		Open:     func(t testing.TB) quota.Ledger { return crowd{open(t, s.URL()), &sizes} },
		SetNow:   func(t testing.TB, now time.Time) { s.SetNow(t, now) },
		Together: togetherOn,
		Dump:     func(t testing.TB, credential string) string { return dump(t, client, credential) },
	})
}
