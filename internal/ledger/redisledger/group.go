package redisledger

import (
	"context"
	"runtime"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/queue"
)

// maxGroup is how many calls one run of charge.lua decides at most: about half a millisecond of the
// server's time.
const maxGroup = 64

// operation is one caller's, in the queue.
type operation = queue.Op[work]

// work is one call of charge.lua, which decides several that are on the same buckets at once.
type work struct {
	request request
	numbers []byte   // what it adds to those of the group
	strings []string // the last one is not empty

	reply reply
	err   error
}

// queues are those of the buckets that are charged together, by audience. They stay: there are as
// many as a configuration names.
type queues struct {
	mu sync.Mutex
	of map[string]*queue.Queue[work]
}

func (q *queues) get(audience string) *queue.Queue[work] {
	q.mu.Lock()
	defer q.mu.Unlock()
	of := q.of[audience]
	if of == nil {
		if q.of == nil {
			q.of = make(map[string]*queue.Queue[work])
		}
		of = new(queue.Queue[work])
		q.of[audience] = of
	}
	return of
}

// askTogether has charge.lua decide r, with what others ask of the same buckets meanwhile. A caller
// that is alone asks at once. What the script did not decide, because its time is another or in view
// of the calls before it, is asked again at once and alone.
//
// A caller whose ctx ends before its call was sent leaves, and nothing was decided. After that it
// leaves, too, and does not know the answer, as with any other call; it is recorded or not with those
// of its group.
func (l *Ledger) askTogether(ctx context.Context, r request) (reply, error) {
	q, now := l.queues.get(r.audience()), l.now()
	for asked := 1; ; asked++ {
		o := asking(r, now)
		o.Alone = asked > 1
		if err := q.Ask(ctx, o, false, func() { l.lead(ctx, q) }); err != nil {
			return nil, explain(err)
		}
		answered, err := o.Work.reply, o.Work.err
		if err != nil || answered.status() != stale || asked == maxAsks {
			return answered, err
		}
		ints, err := answered.ints(2)
		if err != nil {
			return nil, err
		}
		now = fromMicro(ints[1])
	}
}

// asking is an operation for r at a time that is probably the server's.
func asking(r request, now time.Time) *operation {
	o := &operation{Work: work{request: r}}
	o.Work.numbers, o.Work.strings = r.args(now)
	return o
}

// lead asks with what is queued: one caller's in its own name, and a group in the background, since
// each of them may leave. The groups that queue up meanwhile are asked for there, too.
func (l *Ledger) lead(ctx context.Context, q *queue.Queue[work]) {
	runtime.Gosched() // who is about to ask joins the group
	group := q.Take(maxGroup)
	if len(group) == 1 {
		l.send(ctx, group)
		q.Finish(nil, group)
		return
	}
	go func() {
		for ctx := context.WithoutCancel(ctx); len(group) > 0; {
			l.send(ctx, group)
			runtime.Gosched()
			group = q.Next(group, maxGroup)
		}
	}()
}

// send asks once, and keeps each call's answer. An error of the script is some call's own, and says
// that nothing was recorded: then each is asked by itself. Any other error is everybody's.
func (l *Ledger) send(ctx context.Context, group []*operation) {
	list, err := replies(l.run(ctx, "charge", keysOfGroup(group), argsOfGroup(group)...))
	if err == nil && len(list) != len(group) {
		err = reply(list).unknown()
	}
	for i, o := range group {
		switch {
		case err != nil && len(group) > 1 && isOfScript(err):
			l.send(ctx, group[i:i+1])
		case err != nil:
			o.Work.err = explain(err)
		default:
			o.Work.reply, o.Work.err = own(list[i])
		}
	}
}

// replies are those to the calls of a group: a list, or as plain.lua has them.
func replies(c *redis.Cmd) ([]any, error) {
	text, ok := c.Val().(string)
	if !ok {
		return c.Slice()
	}
	list := make([]any, len(text)/plainReply)
	for i := range list {
		list[i] = doubles(text[i*plainReply : (i+1)*plainReply])
	}
	return list, c.Err()
}

// plainReply is how many bytes plain.lua replies to a call.
const plainReply = 6 * 8

// own is the reply to one call of a group.
func own(answer any) (reply, error) {
	switch answer := answer.(type) {
	case reply:
		return answer, nil
	case []any:
		return answer, nil
	case error:
		return nil, explain(answer)
	}
	return nil, reply{answer}.unknown()
}

// isOfScript reports whether a script ended with err: neither a connection nor the server as a whole.
func isOfScript(err error) bool {
	code := codeOfReply(err)
	return damageIn(err.Error()) != nil || isReply(err) && (code == "ERR" || code == wrongKind)
}

func keysOfGroup(group []*operation) []string {
	keys := group[0].Work.request.keys()
	for _, o := range group {
		if r := o.Work.request; r.key != "" {
			keys = append(keys, r.key)
		}
	}
	return keys
}

// argsOfGroup are those of charge.lua. Each costs the server time, so the empty ones that all calls
// have at their end are left out.
func argsOfGroup(group []*operation) []any {
	each, size := 1, 16
	for _, o := range group {
		each, size = max(each, len(o.Work.strings)), size+len(o.Work.numbers)
	}
	head := numbers{int64(len(group)), int64(len(group[0].Work.request.costs))}
	blob := append(make([]byte, 0, size), head.blob()...)
	args := make([]any, 1, 1+each*len(group))
	for _, o := range group {
		blob = append(blob, o.Work.numbers...)
		for i := range o.Work.strings {
			args = append(args, &o.Work.strings[i]) // a pointer is not allocated once more
		}
		for range each - len(o.Work.strings) {
			args = append(args, "")
		}
	}
	args[0] = blob
	return args
}
