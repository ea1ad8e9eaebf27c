package redisledger

import (
	"context"
	"time"

	"quotabudget/internal/quota"
)

// Learn keeps what others used in one window, according to the upstream.
func (l *Ledger) Learn(ctx context.Context, q quota.Learn) (quota.Learned, error) {
	if err := q.Check(); err != nil {
		return quota.Learned{}, err
	}
	limits := []quota.Limit{q.Limit}
	reply, err := l.ask(ctx, "learn", keysOf(q.Credential, q.Limit.Bucket),
		func(now time.Time) []any {
			n := numbers{0, q.Remaining, q.Told()}
			if !q.AskedAt.IsZero() {
				n[0] = q.AskedAt.UnixMicro()
				now = fromMicro(q.Asked(now.UnixMicro()))
			}
			n.addLimits(limits, true, now)
			return []any{n.blob()}
		})
	if err != nil {
		return quota.Learned{}, err
	}
	if reply.status() == stale {
		return quota.Learned{}, new(request).refusal(stale, reply)
	}
	ints, err := reply.ints(5)
	if err != nil {
		return quota.Learned{}, err
	}
	learned := quota.Learned{At: fromMicro(ints[1]), Thought: ints[2], Units: ints[3]}
	if q.Limit.Window.Anchored {
		learned.Reset = optional(ints[4])
	}
	return learned, nil
}

// lapse has reservations that expired become entries, before the log is read.
func (l *Ledger) lapse(ctx context.Context, credential, bucket string) error {
	_, err := l.run1(ctx, "lapse", keysOf(credential, bucket))
	return err
}
