package limit

import (
	"context"
	"runtime"
)

// TakeInGroup decides several requests in one group.
func (s *Redis) TakeInGroup(ctx context.Context, all [][]Ask) (allowed []bool, err error) {
	var group []*operation
	for _, asks := range all {
		group = append(group, &operation{Work: toWork(asks)})
	}
	s.send(ctx, group)
	for i, o := range group {
		if o.Work.err != nil {
			return nil, o.Work.err
		}
		ok, err := decisions(o.Work.reply, all[i])
		if err != nil {
			return nil, err
		}
		allowed = append(allowed, ok)
	}
	return allowed, nil
}

// Lead makes asks the first request of a group. The group is sent when ready returns true for the
// number of queued requests.
func (s *Redis) Lead(ctx context.Context, asks []Ask, ready func(queued int) bool) error {
	q, o := s.queues.Get(asks[0].Part), &operation{Work: toWork(asks)}
	return q.Ask(ctx, o, false, func() {
		for n, _ := q.State(); !ready(n); n, _ = q.State() {
			runtime.Gosched()
		}
		q.Lead(ctx, o, maxGroup, s.send)
	})
}

// Queued is Take without its timeout.
func (s *Redis) Queued(ctx context.Context, asks []Ask) (bool, error) {
	return s.together(ctx, asks)
}
