package limit

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/queue"
	"quotabudget/lua"
)

// maxGroup is the maximum number of requests per round trip.
const maxGroup = 64

var script = redis.NewScript(lua.Source("limit"))

// operation is one caller's queued request.
type operation = queue.Op[work]

// work is one run of limit.lua. Its caller may leave before the reply, so work shares no memory
// with the asks.
type work struct {
	keys  []string
	args  []any
	reply []int64
	err   error
}

// together decides asks, all in one slot, in a group with other callers' requests. A lone
// caller's request is sent at once. If ctx ends before the group is sent, nothing is charged; if
// it ends later, the request may have been charged.
func (s *Redis) together(ctx context.Context, asks []Ask) (bool, error) {
	q, o := s.queues.Get(asks[0].Part), &operation{Work: toWork(asks)}
	if err := q.Ask(ctx, o, false, func() { q.Lead(ctx, o, maxGroup, s.send) }); err != nil {
		return false, err
	}
	if o.Work.err != nil {
		return false, o.Work.err
	}
	return decisions(o.Work.reply, asks)
}

// send sends a group in one round trip. The script decides each request separately. Requests that
// fail because the server lost the script are sent again in order, with the script.
func (s *Redis) send(ctx context.Context, group []*operation) {
	if len(group) == 1 {
		w := &group[0].Work
		w.reply, w.err = script.Run(ctx, s.client, w.keys, w.args...).Int64Slice()
		return
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for asked := 1; len(group) > 0; asked++ {
		pipe, answers := s.client.Pipeline(), make([]*redis.Cmd, len(group))
		for i, o := range group {
			run := script.EvalSha
			if i == 0 && asked > 1 {
				run = script.Eval
			}
			answers[i] = run(ctx, pipe, o.Work.keys, o.Work.args...)
		}
		_, _ = pipe.Exec(ctx) // each command has its own error
		var again []*operation
		for i, o := range group {
			o.Work.reply, o.Work.err = answers[i].Int64Slice()
			if asked == 1 && redis.HasErrorPrefix(o.Work.err, "NOSCRIPT") {
				again = append(again, o)
			}
		}
		group = again
	}
}

// toWork returns the arguments of limit.lua.
func toWork(asks []Ask) work {
	keys, args := make([]string, len(asks), 2*len(asks)), make([]any, 0, 6*len(asks))
	for i := range asks {
		a := &asks[i]
		name := prefix(a)
		keys[i] = name + hex.EncodeToString(a.Key[:])
		former, denied := 0, 0
		if a.Before != (Key{}) && a.Before != a.Key {
			keys = append(keys, name+hex.EncodeToString(a.Before[:]))
			former = len(keys)
		}
		if a.Policy.CountDenied {
			denied = 1
		}
		args = append(args, string(a.Policy.Algorithm), a.Policy.Units,
			a.Policy.Window.Microseconds(), a.Cost, denied, former)
	}
	return work{keys: keys, args: args}
}

// decisions stores the reply of limit.lua in the asks.
func decisions(reply []int64, asks []Ask) (allowed bool, err error) {
	if len(reply) != 2+4*len(asks) {
		return false, fmt.Errorf("limit.lua returned %d numbers for %d policies",
			len(reply), len(asks))
	}
	for i := range asks {
		r := reply[2+4*i:]
		asks[i].Decision = Decision{
			At: reply[1], Allowed: r[0] == 1, Never: r[0] < 0, Remaining: r[1],
			NextAfter: micros(r[2]), ResetAfter: micros(r[3]),
		}
		if d := &asks[i].Decision; !d.Allowed && !d.Never {
			d.RetryAfter = d.NextAfter
		}
	}
	return reply[0] == 1, nil
}
