package limit

import (
	"context"
	"math/rand/v2"
	"strconv"
)

// TakeParts splits the keys of policies with Shards into parts, and decides each part in a separate
// step. The units are split too, so the parts together never admit more than the limit.
//
// A call starts at a random part, and while it is denied borrows from the others, one after
// another. It fits if one part has room for its whole cost. So with a cost of 1 no unit stays
// unused, and with a cost of c at most Shards * (c-1) do.
//
// Parts are in different slots of a cluster, so one step cannot cover them and the rest of the
// request: they are asked last, in the order of the asks. If a part denies the request, the asks
// before it have been charged.
func TakeParts(ctx context.Context, asks []Ask,
	step func(context.Context, []Ask) (bool, error)) (allowed bool, err error) {
	whole := make([]Ask, 0, len(asks))
	for _, a := range asks {
		if a.Policy.Shards <= 1 {
			whole = append(whole, a)
		}
	}
	allowed = true
	if len(whole) > 0 {
		if allowed, err = step(ctx, whole); err != nil {
			return false, err
		}
	}
	for i := range asks {
		a := &asks[i]
		if a.Policy.Shards <= 1 {
			a.Decision, whole = whole[0].Decision, whole[1:]
			continue
		}
		cost := a.Cost
		if !allowed && !a.Policy.CountDenied {
			cost = 0
		}
		if err := a.takePart(ctx, cost, step); err != nil {
			return false, err
		}
		allowed = allowed && a.Allowed
	}
	return allowed, nil
}

// takePart asks one part after another until one allows the cost. If none does, it returns the
// decision of the part that will allow the cost first. Only the last part asked counts the denial,
// so that it is counted once.
func (a *Ask) takePart(ctx context.Context, cost int64,
	step func(context.Context, []Ask) (bool, error)) error {
	n := a.Policy.Shards
	first := rand.IntN(n)
	for i := range n {
		at := (first + i) % n
		policy := *a.Policy
		policy.Shards = 0
		policy.Name += "/" + strconv.Itoa(at+1)
		policy.Units = Part(a.Policy.Units, n, at)
		policy.CountDenied = policy.CountDenied && i == n-1
		one := []Ask{{Policy: &policy, Key: a.Key, Cost: cost, Part: at + 1}}
		if _, err := step(ctx, one); err != nil {
			return err
		}
		if i == 0 || sooner(one[0].Decision, a.Decision) {
			a.Decision = one[0].Decision
		}
		if a.Allowed {
			return nil
		}
	}
	return nil
}

// Part returns the number of units of part at of n.
func Part(units int64, n, at int) int64 {
	each, remainder := units/int64(n), units%int64(n)
	if int64(at) < remainder {
		each++
	}
	return each
}

func sooner(d, than Decision) bool {
	switch {
	case d.Allowed != than.Allowed:
		return d.Allowed
	case d.Never != than.Never:
		return than.Never
	}
	return d.RetryAfter < than.RetryAfter
}
