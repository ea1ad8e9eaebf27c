package redislimit

import (
	"context"
	"encoding/hex"
	"fmt"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/queue"
	"quotabudget/internal/limit"
	"quotabudget/lua"
)

// maxGroup is how many requests share a round trip at most.
const maxGroup = 64

var script = redis.NewScript(lua.Source("limit"))

// operation is one caller's, in the queue.
type operation = queue.Op[work]

// work is one run of limit.lua. Its caller may be gone before it is answered, so it shares no
// memory with the asks.
type work struct {
	keys  []string
	args  []any
	reply []int64
	err   error
}

// together has the script decide asks, which are all in one slot. A caller that is alone asks at
// once. One whose ctx ends before its group was sent leaves, and nothing was decided; after that it
// leaves, too, and may have been charged.
func (s *Store) together(ctx context.Context, asks []limit.Ask) (bool, error) {
	q, o := s.queues.Get(asks[0].Part), &operation{Work: toWork(asks)}
	if err := q.Ask(ctx, o, false, func() { q.Lead(ctx, o, maxGroup, s.send) }); err != nil {
		return false, err
	}
	if o.Work.err != nil {
		return false, o.Work.err
	}
	return decisions(o.Work.reply, asks)
}

// send asks for a group in one round trip, in which each request is decided by itself. Those that
// the server did not decide because it has lost the script are asked again, in their order, with
// it.
func (s *Store) send(ctx context.Context, group []*operation) {
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
		_, _ = pipe.Exec(ctx) // each answer has its own error
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

// toWork is what limit.lua is given.
func toWork(asks []limit.Ask) work {
	keys, args := make([]string, len(asks), 2*len(asks)), make([]any, 0, 6*len(asks))
	for i := range asks {
		a := &asks[i]
		name := prefix(a)
		keys[i] = name + hex.EncodeToString(a.Key[:])
		former, denied := 0, 0
		if a.Before != (limit.Key{}) && a.Before != a.Key {
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

// decisions fills in what limit.lua returned.
func decisions(reply []int64, asks []limit.Ask) (allowed bool, err error) {
	if len(reply) != 2+4*len(asks) {
		return false, fmt.Errorf("limit.lua returned %d numbers for %d policies",
			len(reply), len(asks))
	}
	for i := range asks {
		r := reply[2+4*i:]
		asks[i].Decision = limit.Decision{
			At: reply[1], Allowed: r[0] == 1, Never: r[0] < 0, Remaining: r[1],
			RetryAfter: micros(r[2]), ResetAfter: micros(r[3]),
		}
	}
	return reply[0] == 1, nil
}
