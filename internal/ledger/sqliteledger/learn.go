package sqliteledger

import (
	"context"
	"encoding/json"

	"quotabudget/internal/quota"
)

// Learn implements quota.Ledger.
func (l *Ledger) Learn(ctx context.Context, q quota.Learn) (learned quota.Learned, err error) {
	if err := q.Check(); err != nil {
		return learned, err
	}
	err = l.run(ctx, work{keeps: true, do: func(s *session) error {
		learned = s.learn(q)
		return s.broken
	}})
	return learned, err
}

// learn compares what the upstream reports with the ledger's count, and keeps what that lacks as used
// by others in the one window.
func (s *session) learn(l quota.Learn) quota.Learned {
	b, n := s.lookAt(l.Credential, l.Limit.Bucket, s.now())
	if reset := l.Limit.Window.NextReset(b.reset, l.Told(), n); reset != b.reset {
		b.row()
		b.reset = reset
		s.change("bucket_reset", b.id, reset)
	}
	used := b.usedWhenAsked(l, n) + b.atMost - b.expired.atMost
	learned := quota.Learned{At: stamp(n), Thought: max(0, l.Limit.Units-used)}
	if l.Limit.Window.Anchored && b.reset != 0 {
		learned.Reset = stamp(b.reset)
	}
	if !l.Stale(b.reset, n) && l.Remaining >= 0 && l.Remaining < learned.Thought {
		learned.Units = learned.Thought - l.Remaining
		a := ask{bucket: b}
		o := a.standing(l.Limit, n).Reported(a.own(l.Limit, n), learned.Units)
		b.setOthers(o.Replace(b.others), n)
	}
	return learned
}

// usedWhenAsked is what is used at n, with all that has left the window since the upstream was
// asked.
func (b *bucket) usedWhenAsked(l quota.Learn, n int64) int64 {
	at, w, a := l.Asked(n), l.Limit.Window, ask{bucket: b}
	switch {
	case w.Anchored:
		return a.standing(l.Limit, n).Used()
	case w.IsRestoring():
		return a.standing(l.Limit, n).Used() + w.Restore.Restored(n-at)
	}
	return a.standing(l.Limit, at).Used()
}

// setOthers keeps what others used. Nothing is decided at an earlier time from now on.
func (b *bucket) setOthers(all []quota.Others, n int64) {
	b.row()
	b.others, b.newest = all, max(b.newest, n-1)
	text, _ := json.Marshal(all) // of texts and whole numbers
	b.s.change("bucket_others", b.id, string(text))
	b.update()
}
