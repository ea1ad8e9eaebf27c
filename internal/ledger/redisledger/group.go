package redisledger

import (
	"bytes"
	"context"
	"time"

	"quotabudget/internal/ledger/queue"
)

// maxGroup is how many calls one run of charge.lua decides at most: about half a millisecond of the
// server's time.
const maxGroup = 64

// operation is one caller's, in the queue.
type operation = queue.Op[work]

// work is one call of a script that decides several on the same buckets at once.
type work struct {
	request request
	numbers []byte   // what it adds to those of the group; the last bytes of a charge are a text
	text    int      // so many of them
	texts   []string // the last one is not empty

	reply reply
	err   error
}

// ask makes the work one for r, at a time that is probably the server's.
func (w *work) ask(r request, now time.Time) {
	w.request, w.reply, w.err = r, reply{}, nil
	w.numbers, w.text, w.texts = w.request.args(now, w.numbers[:0], w.texts[:0])
}

// askTogether has charge.lua decide r, or settle.lua settle it, with what others ask of the same
// buckets meanwhile. A caller that is alone asks at once. What the script did not decide, because
// its time is another or in view of the calls before it, is asked again at once and alone.
//
// A caller whose ctx ends before its call was sent leaves, and nothing was decided. After that it
// leaves, too, and does not know the answer, as with any other call; it is recorded or not with
// those of its group.
func (l *Ledger) askTogether(ctx context.Context, r request) (reply, error) {
	queues, send, alone := &l.queues, l.send, false
	if s := r.settle; s != nil { // a group of settlements says nothing of what remains
		queues, send, alone = &l.settling, l.sendSettlements, len(s.Limits) > 0 || r.label.line != ""
	}
	q, now := queues.Get(r.audience()), l.now()
	o, ok := l.spare.Get().(*operation)
	if !ok {
		o = new(operation)
	}
	for asked := 1; ; asked++ {
		o.Work.ask(r, now)
		o.Alone = alone || asked > 1
		if err := q.Ask(ctx, o, false, func() { q.Lead(ctx, o, maxGroup, send) }); err != nil {
			return reply{}, explain(err) // its group may yet be under way
		}
		answered, err := o.Work.reply, o.Work.err
		if err != nil || answered.status() != stale || asked == maxAsks {
			l.spare.Put(o)
			return answered, err
		}
		ints, err := answered.ints(2)
		if err != nil {
			return reply{}, err
		}
		now = fromMicro(ints[1])
	}
}

// send asks once, and keeps each call's answer. An error of the script is some call's own, and says
// that nothing was recorded: then each is asked by itself. Any other error is everybody's.
func (l *Ledger) send(ctx context.Context, group []*operation) {
	script := "charge"
	if group[0].Work.request.reserve != nil {
		script = "hold" // which does the same, and reservations sooner
	}
	all, err := replies(l.run(ctx, script, keysOfGroup(group), argsOfGroup(group)...))
	if err != nil && len(group) > 1 && isOfScript(err) {
		for i := range group {
			l.send(ctx, group[i:i+1])
		}
		return
	}
	for i, o := range group {
		o.Work.err = explain(err)
		if err == nil {
			o.Work.reply, o.Work.err = all.toCall(i, len(group))
		}
	}
}

// isOfScript reports whether a script ended with err: neither a connection nor the server as a
// whole.
func isOfScript(err error) bool {
	code := codeOfReply(err)
	return damageIn(err.Error()) != nil || isReply(err) && (code == "ERR" || code == wrongKind)
}

func keysOfGroup(group []*operation) []string {
	keys := group[0].Work.request.keys()
	for _, o := range group {
		if key := o.Work.request.key; key != "" {
			keys = append(keys, key)
		}
	}
	return keys
}

// argsOfGroup are those of charge.lua. Each costs the server time, so the empty ones that all calls
// have at their end are left out.
func argsOfGroup(group []*operation) []any {
	each, size := 1, 16
	for _, o := range group {
		each, size = max(each, len(o.Work.texts)), size+len(o.Work.numbers)
	}
	blob := make([]byte, 0, size)
	blob = numbers{int64(len(group)), int64(len(group[0].Work.request.costs))}.appendTo(blob)
	args := make([]any, 1, 1+each*len(group))
	var before []byte // the numbers of the call before, which are not told again
	for _, o := range group {
		n := len(o.Work.numbers) - o.Work.text
		these, text := o.Work.numbers[:n], o.Work.numbers[n:]
		if o.Work.request.settle == nil && bytes.Equal(these, before) {
			these = numbers{int64(8 + len(text))}.blob()
		} else {
			before = these
		}
		blob = append(append(blob, these...), text...)
		for i := range o.Work.texts {
			args = append(args, &o.Work.texts[i]) // a pointer is not allocated once more
		}
		for range each - len(o.Work.texts) {
			args = append(args, "")
		}
	}
	args[0] = blob
	return args
}
