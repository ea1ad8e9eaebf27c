package redisledger

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"quotabudget/internal/quota"
)

// Settle ends a reservation. One that does not ask what remains is settled together with others of
// the same buckets.
func (l *Ledger) Settle(ctx context.Context, s quota.Settle) (quota.Decision, error) {
	if err := s.Check(); err != nil {
		return quota.Decision{}, err
	}
	r := settling(s)
	r.label = l.told.code(r.audience(), r.label)
	reply, err := l.askTogether(ctx, r)
	if err != nil {
		return quota.Decision{}, err
	}
	kept, _ := reply.number(reply.len() - 1)
	if r.label.line != "" && reply.status() == allowed && kept == 1 {
		l.told.note(r.audience(), r.label)
	}
	return r.settlement(s.ID, reply)
}

// sendSettlements asks once, and keeps each one's answer. A group of which the script settled
// nothing, because one of them is no plain one or cannot be settled, is asked for one by one.
func (l *Ledger) sendSettlements(ctx context.Context, group []*operation) {
	all, err := replies(l.run(ctx, "settle", settleKeys(group), argsOfGroup(group)...))
	if len(group) > 1 && (err == nil && all.len() == 0 || err != nil && isOfScript(err)) {
		for i := range group {
			l.sendSettlements(ctx, group[i:i+1])
		}
		return
	}
	for i, o := range group {
		switch o.Work.err = explain(err); {
		case err != nil:
		case all.doubles != "":
			o.Work.reply, o.Work.err = all.toCall(i, len(group))
		default:
			o.Work.reply = all
		}
	}
}

// settlement reads the reply of settle.lua.
func (r *request) settlement(entry string, reply reply) (quota.Decision, error) {
	switch status := reply.status(); status {
	case allowed:
		ints, err := reply.ints(5 + 2*len(r.costs))
		if err != nil {
			return quota.Decision{}, err
		}
		return r.settled(entry, ints), nil
	case replayed:
		return r.settledBefore(reply.text())
	default:
		return quota.Decision{}, r.refusal(status, reply)
	}
}

// settling is what settlements have in common with charges.
func settling(s quota.Settle) request {
	_, buckets, _ := quota.ParseReservation(s.Reservation)
	r := request{
		credential: s.Credential, reservation: s.Reservation, label: labelOf(s.Labels),
		userKey: "settlement of " + s.Reservation,
		key:     committedKey(s.Credential, s.Reservation), settle: &s,
	}
	for _, b := range buckets {
		r.costs = append(r.costs, quota.Cost{Bucket: b, Units: s.UnitsIn(b)})
	}
	r.limits = byBucket(r.costs, quota.Enforced(s.Limits))
	return r
}

func settleKeys(group []*operation) []string {
	r := &group[0].Work.request
	keys := []string{labelsKey(r.credential)}
	for _, c := range r.costs {
		keys = append(keys, bucketKeys(r.credential, c.Bucket)...)
		keys = append(keys, sumsKey(r.credential, c.Bucket))
	}
	for _, o := range group {
		keys = append(keys, o.Work.request.key)
	}
	return keys
}

// settleArgs are those of settle.lua, as args has those of charge.lua.
func (r *request) settleArgs(now time.Time, blob []byte, texts []string) ([]byte, []string) {
	s := r.settle
	keep := quota.RetentionFor(s.Limits)
	tail, packed := r.packed(s.ID)
	how := flag(s.Within) + 2*flag(s.Once)
	n := numbers{keep.Microseconds(), how, maxRewritten, flag(packed)}
	for i, c := range r.costs {
		n.add(c.Units, int64(len(r.limits[i])))
		n.addLimits(r.limits[i], false, now)
	}
	if packed {
		tail = s.ID + tail
	} else {
		tail = r.label.after(s.ID)
	}
	texts = append(texts, holdID(s.Reservation), tail)
	if r.label.line != "" {
		texts = append(texts, r.label.line)
	}
	return n.appendTo(blob), texts
}

// settledBefore reads the answer that was given to the settlement before.
func (r *request) settledBefore(text string) (quota.Decision, error) {
	numbers := 3 + 2*len(r.costs)
	kept, err := unpackAnswer(text, numbers+2)
	if err != nil {
		kept, err = parseAnswer(text, r.key, numbers)
	}
	if err == nil && len(kept.ints) == numbers+1 {
		err = damagedAnswer(r.key)
	}
	if err != nil {
		return quota.Decision{}, err
	}
	d := r.settled(kept.id, kept.ints)
	d.Replayed = true
	return d, nil
}

// settled makes a decision of settle.lua's {1, clock, stamp, units and remaining of each bucket…,
// whose entries there are, …}. What an earlier version kept, of one bucket, ends before that.
func (r *request) settled(entry string, ints []int64) quota.Decision {
	d := quota.Decision{
		Allowed: true, At: fromMicro(ints[2]),
		Units: make(map[string]int64), Remaining: make(map[string]int64),
	}
	rest, any := ints[3:], false
	for _, c := range r.costs {
		d.Units[c.Bucket] = rest[0]
		any = any || rest[0] > 0
		if rest[1] <= quota.MaxTotal { // else it has no limit
			d.Remaining[c.Bucket] = rest[1]
		}
		rest = rest[2:]
	}
	switch {
	case len(rest) == 0 && any, len(rest) > 0 && rest[0] == 1:
		d.Entry = entry
	case len(rest) > 0 && rest[0] == 2:
		d.Entry, _, _ = quota.ParseReservation(r.reservation)
	}
	return d
}

// Extend has a reservation last longer.
func (l *Ledger) Extend(ctx context.Context, e quota.Extend) (time.Time, error) {
	if err := e.Check(); err != nil {
		return time.Time{}, err
	}
	ttl := numbers{e.TTL.Microseconds()}
	list, err := l.run(ctx, "extend", keysOfHold(e.Credential, e.Reservation), ttl.blob(),
		holdID(e.Reservation)).Slice()
	if err != nil {
		return time.Time{}, explain(err)
	}
	answered := reply{list: list}
	if answered.status() == unknown {
		return time.Time{}, fmt.Errorf("%s: %w", e.Reservation, quota.ErrNoReservation)
	}
	ints, err := answered.ints(2)
	if err != nil {
		return time.Time{}, err
	}
	return fromMicro(ints[1]), nil
}

// keysOfHold are the keys of the scripts that work on a reservation.
func keysOfHold(credential, reservation string) []string {
	_, buckets, _ := quota.ParseReservation(reservation)
	keys := []string{labelsKey(credential)}
	for _, b := range buckets {
		keys = append(keys, bucketKeys(credential, b)...)
	}
	return keys
}

// Release gives back a reservation.
func (l *Ledger) Release(ctx context.Context, credential, reservation string) (
	map[string]int64, error) {
	_, buckets, err := quota.ParseReservation(reservation)
	if err != nil {
		return nil, err
	}
	list, err := l.run(ctx, "release", keysOfHold(credential, reservation),
		holdID(reservation)).Slice()
	if err != nil {
		return nil, explain(err)
	}
	answered := reply{list: list}
	if answered.status() == unknown {
		return nil, fmt.Errorf("%s: %w", reservation, quota.ErrNoReservation)
	}
	left, err := answered.ints(len(buckets))
	if err != nil {
		return nil, err
	}
	given := make(map[string]int64, len(buckets))
	for i, b := range buckets {
		given[b] = left[i]
	}
	return given, nil
}

// maxRewritten is how many later entries a cancellation may have to write again: about 20 ms of the
// server's time.
const maxRewritten = 10_000

// Cancel takes back a charge.
func (l *Ledger) Cancel(ctx context.Context, c quota.Charge, d quota.Decision) error {
	answer := answerTo(c.Credential, c.Key)
	keys := []string{labelsKey(c.Credential), cmp.Or(answer, labelsKey(c.Credential))}
	for _, cost := range c.Costs {
		keys = append(keys, bucketKeys(c.Credential, cost.Bucket)...)
		keys = append(keys, sumsKey(c.Credential, cost.Bucket))
	}
	draws, reservation := drawnOn(c.Costs, c.Reservation)
	n := numbers{d.At.UnixMicro(), flag(answer != ""), int64(draws), maxRewritten}
	done, err := l.run1(ctx, "cancel", keys, n.blob(), c.ID, reservation)
	if err == nil && done == 0 {
		err = fmt.Errorf("%w: %s of %s, or more than %d entries came after it",
			quota.ErrNoEntry, c.ID, c.Credential, maxRewritten)
	}
	return err
}
