package redisledger

import (
	"context"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/quota"
)

// The statuses that charge.lua and its siblings reply with.
const (
	denied   = int64(0)
	allowed  = int64(1)
	observed = int64(2)
	replayed = int64(3)
	stale    = int64(-1)
	reused   = int64(-2)
	unknown  = int64(-3)
	short    = int64(-4)
	never    = int64(-5)
	tooLate  = int64(-6)
)

// request is one call of charge.lua or settle.lua.
type request struct {
	op, credential, id string
	userKey            string // the idempotency key
	key                string // in the store, of the answer to the idempotency key; "" for none
	costs              []quota.Cost
	limits             [][]quota.Limit // by cost
	label              label
	manual, observe    bool
	dryRun             bool
	reservation        string         // drawn on, whole ID
	reserve            *quota.Reserve // nil for a charge
	settle             *quota.Settle  // of settle.lua
}

// Charge takes the costs, or says when they would fit.
func (l *Ledger) Charge(ctx context.Context, c quota.Charge) (quota.Decision, error) {
	if err := c.Check(); err != nil {
		return quota.Refused(c.Costs, err)
	}
	return l.decide(ctx, charging(c))
}

// charging is what is asked of charge.lua.
func charging(c quota.Charge) request {
	return request{
		op: "charge", credential: c.Credential, id: c.ID, userKey: c.Key,
		key: answerTo(c.Credential, c.Key), costs: slices.Clone(c.Costs),
		limits: byBucket(c.Costs, quota.InMode(c.Limits, c.Observe)), label: labelOf(c.Labels),
		manual: c.Manual, observe: c.Observe, dryRun: c.DryRun, reservation: c.Reservation,
	}
}

// answerTo is where the answer to an idempotency key is kept; "" without one.
func answerTo(credential, key string) string {
	if key == "" {
		return ""
	}
	return answerKey(credential, key)
}

// Reserve sets units aside.
func (l *Ledger) Reserve(ctx context.Context, r quota.Reserve) (quota.Decision, error) {
	if err := r.Check(); err != nil {
		return quota.Refused(r.Costs, err)
	}
	return l.decide(ctx, reserving(r))
}

// reserving is what is asked of charge.lua.
func reserving(r quota.Reserve) request {
	q := request{
		op: "reserve", credential: r.Credential, id: holdID(r.ID), userKey: r.Key,
		key: answerTo(r.Credential, r.Key), costs: slices.Clone(r.Costs),
		limits: byBucket(r.Costs, quota.InMode(r.Limits, r.Observe)),
		manual: r.Manual, observe: r.Observe, reserve: &r,
	}
	if r.Lapse == quota.LapseCharge {
		q.label = labelOf(r.Labels)
	}
	return q
}

// holdID is a reservation's ID within its buckets: the whole of it where there are several.
func holdID(reservation string) string {
	id, buckets, _ := quota.ParseReservation(reservation)
	if len(buckets) > 1 {
		return reservation
	}
	return id
}

// byBucket is the limits of each cost; they are not copied where one cost has them all.
func byBucket(costs []quota.Cost, limits []quota.Limit) [][]quota.Limit {
	other := func(l quota.Limit) bool { return l.Bucket != costs[0].Bucket }
	if len(costs) == 1 && !slices.ContainsFunc(limits, other) {
		return [][]quota.Limit{limits}
	}
	sorted, all := make([][]quota.Limit, len(costs)), make([]quota.Limit, 0, len(limits))
	for i, c := range costs {
		from := len(all)
		for _, l := range limits {
			if l.Bucket == c.Bucket {
				all = append(all, l)
			}
		}
		sorted[i] = all[from:len(all):len(all)]
	}
	return sorted
}

// coded has the code of the labels, and their line only where the server may not know it.
func (l *Ledger) coded(r request) request {
	if r.observes() { // an entry that would have been denied has its labels written out
		r.label.code = codeOf(r.label.line)
	} else {
		r.label = l.told.code(r.audience(), r.label)
	}
	return r
}

func (l *Ledger) decide(ctx context.Context, r request) (quota.Decision, error) {
	r = l.coded(r)
	reply, err := l.askTogether(ctx, r)
	if err != nil {
		return quota.Decision{}, err
	}
	return l.answered(ctx, &r, reply)
}

// answered reads the reply to r.
func (l *Ledger) answered(ctx context.Context, r *request, reply reply) (quota.Decision, error) {
	lost, ok := reply.number(4)
	if r.label.line != "" && reply.status() == allowed && ok && lost == 0 {
		l.told.note(r.audience(), r.label)
	}
	d, err := l.decision(r, reply)
	if err == nil && d.Entry != "" && sumsAreDue(d.At) {
		for _, c := range r.costs {
			_, _ = l.addUp(ctx, r.credential, c.Bucket) // else who needs them does it
		}
	}
	return d, err
}

// observes reports whether anything that would deny is only observed.
func (r *request) observes() bool {
	is := func(l quota.Limit) bool { return l.Observe }
	any := func(of []quota.Limit) bool { return slices.ContainsFunc(of, is) }
	return r.observe || slices.ContainsFunc(r.limits, any)
}

// audience is who a line of labels is told: the labels last as long as the logs of the buckets they
// are told with.
func (r *request) audience() string {
	names := r.credential
	for _, c := range r.costs {
		names += " " + c.Bucket
	}
	return names
}

// keys are those of its buckets.
func (r *request) keys() []string {
	keys := []string{labelsKey(r.credential)}
	for _, c := range r.costs {
		keys = append(keys, bucketKeys(r.credential, c.Bucket)...)
	}
	return keys
}

// fingerprint tells this call from others under the same idempotency key, whatever the order of its
// costs.
func (r *request) fingerprint() string {
	text := r.op
	byName := func(a, b quota.Cost) int { return strings.Compare(a.Bucket, b.Bucket) }
	for _, c := range slices.SortedFunc(slices.Values(r.costs), byName) {
		text += fmt.Sprintf(" %s=%d", c.Bucket, c.Units)
		if c.Most > 0 {
			text += fmt.Sprintf("-%d", c.Most)
		}
	}
	return text + " " + r.reservation
}

// args are those of the script for this call, in its order, without the empty texts at the end.
// They are appended to what is given. The last bytes of the numbers are a text, of so many.
func (r *request) args(now time.Time, blob []byte, texts []string) ([]byte, int, []string) {
	if r.settle != nil {
		blob, texts = r.settleArgs(now, blob, texts)
		return blob, 0, texts
	}
	draws, reservation := drawnOn(r.costs, r.reservation)
	limits := r.limits[0]
	if len(r.limits) > 1 {
		limits = slices.Concat(r.limits...)
	}
	n := make(numbers, 0, 6+5*len(r.costs)+5*len(limits))
	keep, ttl := quota.RetentionFor(limits), int64(0)
	switch {
	case r.reserve != nil:
		ttl, reservation = r.reserve.TTL.Microseconds(), r.reserve.Note
	case r.dryRun:
		ttl = -1
	}
	tail := ""
	if r.key == "" && r.reserve == nil && !r.observes() { // else the script needs to read it
		tail, _ = r.packed(r.id)
	}
	n.add(0, min(keep, quota.MaxWindow).Milliseconds(), keep.Microseconds(), int64(draws), ttl,
		int64(len(tail)))
	for i, c := range r.costs {
		n.add(c.Units, int64(len(r.limits[i])))
		if r.reserve != nil {
			n.add(holdFlags(*r.reserve, c), max(c.Units, c.Most), r.slack(c, r.limits[i]))
		}
		for _, l := range r.limits[i] {
			n.addLimits([]quota.Limit{l}, r.manual, now)
			if last := &n[len(n)-1]; l.Observe { // only this script knows of such
				*last = -1 - *last
			}
		}
	}
	n[0] = int64(8*len(n) + len(tail))
	blob = append(n.appendTo(blob), tail...)
	name := "" // in tail
	if tail == "" {
		name = r.label.after(r.id)
	}
	if r.reserve != nil && r.label.run == "" {
		name += ":"
	}
	texts = append(texts, name, r.label.line, reservation, "", "")
	if r.key != "" {
		texts[3], texts[4] = r.fingerprint(), r.buckets()
	}
	if r.observes() {
		suspension := ""
		if r.observe {
			suspension = url.QueryEscape(quota.Suspended)
		}
		texts = append(texts, suspension)
		for _, limit := range limits {
			texts = append(texts, url.QueryEscape(limit.Name()))
		}
	}
	for len(texts) > 0 && texts[len(texts)-1] == "" {
		texts = texts[:len(texts)-1]
	}
	return blob, len(tail), texts
}

// slack returns by how many units the estimates in flight may be too low with this one.
func (r *request) slack(c quota.Cost, limits []quota.Limit) int64 {
	if r.reserve.TooLow(c) == 0 {
		return quota.MaxTotal
	}
	return quota.Slack(limits)
}

// packed is what follows the numbers in the members of its entries, of that ID; false if they must
// be text.
func (r *request) packed(id string) (string, bool) {
	unusual := func(c quota.Cost) bool { return c.Units < 0 || c.Units > math.MaxUint32 }
	if r.label.line != "" || slices.ContainsFunc(r.costs, unusual) {
		return "", false
	}
	return pack(id, r.label.code, r.label.run)
}

// buckets are the names of its buckets, in order.
func (r *request) buckets() string {
	names := make([]string, len(r.costs))
	for i, c := range r.costs {
		names[i] = c.Bucket
	}
	return strings.Join(names, ",")
}

// The flags of a reservation in a bucket (holds.lua).
const (
	flagManual = 1 << iota
	flagCharge
	flagEstimate
)

func holdFlags(r quota.Reserve, c quota.Cost) (flags int64) {
	if r.Manual {
		flags |= flagManual
	}
	if r.LapseOf(c.Bucket) == quota.LapseCharge {
		flags |= flagCharge
	}
	if c.Most > c.Units {
		flags |= flagEstimate
	}
	return flags
}

// drawnOn is the number, from 1, of the bucket whose units come from a reservation, and the
// reservation's ID within it.
func drawnOn(costs []quota.Cost, reservation string) (nth int, id string) {
	if reservation == "" {
		return 0, ""
	}
	id, buckets, err := quota.ParseReservation(reservation)
	if err != nil {
		return 0, ""
	}
	for i, c := range costs {
		if c.Bucket == buckets[0] {
			return i + 1, id
		}
	}
	return 0, ""
}

func flag(on bool) int64 {
	if on {
		return 1
	}
	return 0
}
