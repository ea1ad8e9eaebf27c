package redisstore

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/quota"
)

const (
	maxGroup  = 64 // charges in one run of charge.lua
	maxLimits = 4  // of a bucket
)

// charge is a queued plain charge.
type charge struct {
	request  quota.Charge
	limits   []quota.Limit
	decision quota.Decision
	decided  bool // false: left to the rule
	err      error
}

// plain returns the limits of a charge that charge.lua can decide: one bucket, a few sliding or
// calendar windows, no key, no draw, no observation.
func (s *Store) plain(c quota.Charge) ([]quota.Limit, bool) {
	if s.Slow || len(c.Costs) != 1 || c.Key != "" || c.Reservation != "" || c.Observe || c.DryRun {
		return nil, false
	}
	limits := quota.LimitsOf(c.Costs[0].Bucket, c.Limits)
	odd := func(l quota.Limit) bool {
		return l.Observe || l.Pace != nil || !l.Window.IsSliding() && !l.Window.IsCalendar()
	}
	return limits, len(limits) <= maxLimits && !slices.ContainsFunc(limits, odd)
}

// TryCharge decides a plain charge inside Redis, together with others that are queued on the
// bucket. It returns false if the caller must use Update instead.
func (s *Store) TryCharge(ctx context.Context, c quota.Charge) (quota.Decision, bool, error) {
	limits, ok := s.plain(c)
	if !ok {
		return quota.Decision{}, false, nil
	}
	q := s.charges.Get(groupName(c, limits))
	o := &quota.Queued[charge]{Work: charge{request: c, limits: limits}}
	if err := q.Ask(ctx, o, false, func() { q.Send(maxGroup, s.chargeAll) }); err != nil {
		return quota.Decision{}, true, explain(err)
	}
	return o.Work.decision, o.Work.decided || o.Work.err != nil, o.Work.err
}

// groupName returns the name of the queue of charges that are decided together.
func groupName(c quota.Charge, limits []quota.Limit) string {
	name := c.Credential + " " + c.Costs[0].Bucket
	for _, l := range limits {
		name += fmt.Sprintf(" %d-%d/%s", l.Units, l.Headroom, l.Window)
	}
	return name
}

// maxHot is the maximum number of runs of charge.lua for one group. It runs again while another
// process has the lock, and after a wrong guess of the server's time.
const maxHot = 5

// chargeAll decides a group. Charges that the script leaves stay undecided.
func (s *Store) chargeAll(ctx context.Context, group []*quota.Queued[charge]) {
	first := group[0].Work
	credential, bucket := first.request.Credential, first.request.Costs[0].Bucket
	for range maxHot {
		now := s.clock()
		list, err := s.change(ctx, "charge", []string{logKey(credential, bucket),
			stateKey(credential, bucket), lockKey(credential),
			sumsKey(credential, bucket, now.UnixMicro())},
			chargeWrote, chargeArgs(group, now)...).Slice()
		if err == nil && len(list) != 2 && len(list) != 1+4*len(group) {
			err = fmt.Errorf("ERR charge.lua returned %v", list)
		}
		if err != nil {
			for _, o := range group {
				o.Work.err = explain(err)
			}
			return
		}
		r := reply{list: list}
		at := r.integer()
		s.learn(at)
		switch {
		case len(list) > 2:
			allowed := false
			for _, o := range group {
				o.Work.decide(at, r.integer(), r.integer(), r.integer(), r.integer())
				allowed = allowed || o.Work.decided && o.Work.decision.Allowed
			}
			if allowed {
				s.trim(ctx, credential, bucket, at)
			}
			return
		case list[1] == "left", list[1] == locked && !quota.Pause(ctx, time.Millisecond):
			return
		}
	}
}

// chargeWrote reports whether a run of charge.lua has allowed a charge.
func chargeWrote(cmd *redis.Cmd) bool {
	reply, _ := cmd.Slice()
	for i := 1; i < len(reply); i += 4 {
		if reply[i] == int64(1) {
			return true
		}
	}
	return false
}

// chargeArgs returns the arguments of charge.lua.
func chargeArgs(group []*quota.Queued[charge], now time.Time) []any {
	limits := group[0].Work.limits
	numbers := []int64{dayOf(now.UnixMicro()), quota.RetentionFor(limits).Microseconds(),
		int64(len(limits)), int64(len(group))}
	for _, l := range limits {
		var start, end int64
		if l.Window.IsCalendar() {
			from, to := l.Window.Bounds(now)
			start, end = from.UnixMicro(), to.UnixMicro()
		}
		numbers = append(numbers, l.Window.Length.Microseconds(), start, end, l.Cap(false),
			l.Cap(true))
	}
	args := make([]any, 2, 3+len(group))
	var lines []any
	for _, o := range group {
		c, labels := o.Work.request, o.Work.request.Labels.Encode()
		line := quota.CutRun(labels)
		if !slices.Contains(lines, any(line)) {
			lines = append(lines, line)
		}
		manual := int64(0)
		if c.Manual {
			manual = 1
		}
		units := c.Costs[0].Units
		numbers = append(numbers, units, manual, int64(1+slices.Index(lines, any(line))))
		args = append(args, strconv.FormatInt(units, 10)+":"+c.ID+":"+labels)
	}
	var packed []byte
	for _, n := range numbers {
		packed = binary.LittleEndian.AppendUint64(packed, math.Float64bits(float64(n)))
	}
	args[0], args[1] = "<"+strings.Repeat("d", len(numbers)), packed
	return append(args, lines...)
}

// decide converts one charge's part of the reply to a decision.
func (w *charge) decide(now, kind, remaining, at, limit int64) {
	cost := w.request.Costs[0]
	d := quota.Decision{Allowed: kind == 1, At: quota.StampTime(now),
		Units: map[string]int64{cost.Bucket: cost.Units}, Remaining: map[string]int64{}}
	if remaining >= 0 {
		d.Remaining[cost.Bucket] = remaining
	}
	switch {
	case kind == 1:
		d.At, d.Entry = quota.StampTime(at), w.request.ID
	case kind == 0 && limit > 0 && limit <= int64(len(w.limits)):
		d.RetryAt, d.Limit = quota.StampTime(at), w.limits[limit-1].Name()
	default:
		return
	}
	w.decision, w.decided = d, true
}
