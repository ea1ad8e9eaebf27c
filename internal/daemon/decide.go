package daemon

import (
	"context"
	"slices"
	"time"

	"quotabudget/internal/plan"
	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
)

// Spending reads what was spent.
type Spending interface {
	plan.Ledger
	Between(ctx context.Context, credential, bucket string, from, to time.Time) (int64, error)
}

// policies returns the policy of the first lane of each credential that lanes spend from, in the
// order of the lanes.
func (c *Config) policies() (all []Policy) {
	for _, l := range c.Lanes {
		p := l.Work.policy()
		if !slices.ContainsFunc(all, func(other Policy) bool {
			return other.Budget.Credential == p.Budget.Credential
		}) {
			all = append(all, p)
		}
	}
	return all
}

// sharing returns the lanes that spend from a credential.
func (c *Config) sharing(credential string) (lanes []Lane) {
	for _, l := range c.Lanes {
		if l.Work.policy().Budget.Credential == credential {
			lanes = append(lanes, l)
		}
	}
	return lanes
}

// costedLanes returns the lanes that spend from a credential, with the cost of a run of each. It
// fails if the cost of the named lane cannot be found; for other lanes it falls back to the
// configured cost.
func (c *Config) costedLanes(ctx context.Context, credential, name string) ([]share.Lane, error) {
	var lanes []share.Lane
	for _, l := range c.sharing(credential) {
		if err := l.Work.wants(ctx, &l.Lane); err != nil && (name == "" || name == l.Name()) {
			return nil, err
		}
		lanes = append(lanes, l.Lane)
	}
	return lanes, nil
}

// snapshot is the ledger's state of the shared bucket at one moment.
type snapshot struct {
	Policy
	spending Spending
	rule     share.Rule
	at       time.Time // by the ledger's clock
	usage    []quota.LimitUsage
}

// snapshot reads the units left and the cost of a run of each lane.
func (c *Config) snapshot(ctx context.Context, p Policy, name string) (*snapshot, error) {
	usage, err := p.Budget.Usage(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	s := &snapshot{Policy: p, spending: c.Spending, at: usage.At, rule: share.Rule{Reset: p.Day}}
	for _, b := range usage.Buckets {
		if b.Bucket == quota.DefaultBucket {
			s.usage = b.Limits
		}
	}
	s.usage = slices.DeleteFunc(s.usage, func(l quota.LimitUsage) bool { return l.Limit.Observe })
	for _, l := range s.usage {
		s.rule.Limits = append(s.rule.Limits, l.Limit)
	}
	s.rule.Lanes, err = c.costedLanes(ctx, p.Budget.Credential, name)
	ahead := skew(usage.At)
	for i := range s.rule.Lanes {
		s.rule.Lanes[i].Offset += ahead // ticks follow this host's clock
	}
	return s, err
}

// skew returns how far the ledger's clock is ahead of this host's, plus part of the round trip.
func skew(ledger time.Time) time.Duration {
	if d := time.Until(ledger); d.Abs() >= 5*time.Second {
		return d
	}
	return 0
}

// left returns the units that a limit leaves for scheduled charges.
func (s *snapshot) left(limit int) int64 { return s.usage[limit].Remaining }

// lookAhead adds the units that will soon leave the sliding windows to the units left.
func (s *snapshot) lookAhead(ctx context.Context) error {
	for i := range s.usage {
		l := &s.usage[i]
		if !l.Limit.Window.IsSliding() || !share.Shared(l.Limit) {
			continue
		}
		oldest := s.at.Add(-l.Limit.Window.Length)
		units, err := s.spending.Between(context.WithoutCancel(ctx), s.Budget.Credential,
			quota.DefaultBucket, oldest, oldest.Add(share.Soon))
		if err != nil {
			return err
		}
		l.Remaining = min(l.Remaining+units, l.Limit.Cap(false))
	}
	return nil
}

// book returns the charges to the shared bucket for the period that the rule considers.
func (s *snapshot) book(ctx context.Context) (*share.Book, error) {
	far := share.Memory
	for _, l := range s.rule.Limits {
		far = max(far, l.Reach())
	}
	sums, err := sumsSince(ctx, s.spending, s.Budget.Credential, s.at.Add(-far))
	if err != nil {
		return nil, err
	}
	if err := s.lookAhead(ctx); err != nil {
		return nil, err
	}
	book := s.rule.Begin()
	for _, sum := range sums {
		book.Charge(s.rule.LaneOf(sum.Labels), sum.At.UnixMicro(), sum.Units)
	}
	return book, nil
}

// sumsSince returns the units charged to the shared bucket in each grain from a moment on.
func sumsSince(ctx context.Context, l Spending, credential string, since time.Time) (
	[]quota.Sum, error) {
	return l.Sums(context.WithoutCancel(ctx), quota.SumQuery{Credential: credential,
		Bucket: quota.DefaultBucket, Since: quota.GrainOf(since)})
}

func (s *snapshot) admit(ctx context.Context, lane int,
	tick time.Time) (share.Decision, *share.Book, error) {
	at := s.at
	if tick = tick.Add(skew(s.at)); at.Sub(tick).Abs() < time.Minute {
		at = tick // decide for the tick's moment, as a plan does
	}
	// While enough units are left, the charges need not be read.
	book := s.rule.Begin()
	d := book.Admit(lane, at.UnixMicro(), s.left)
	if !d.Short {
		return d, book, nil
	}
	book, err := s.book(ctx)
	if err != nil {
		return d, nil, err
	}
	return book.Admit(lane, at.UnixMicro(), s.left), book, nil
}

// Unpaced returns a function that reports whether a region is exempt from pacing, because it has
// not yet spent its floor of the upstream's day.
func (c *Config) Unpaced(ctx context.Context, credential string) (func(region string) bool, error) {
	var left map[string]int64
	var err error
	lanes := c.sharing(credential)
	if len(lanes) > 0 && len(lanes[0].Work.policy().Budget.Paces) > 0 {
		left, err = c.floorsLeft(ctx, lanes[0].Work.policy())
	}
	return func(region string) bool {
		return slices.ContainsFunc(lanes, func(l Lane) bool {
			return l.Region == region && left[l.Name()] > 0
		})
	}, err
}

// floorsLeft returns the units left of each lane's floor on the upstream's day, by lane name. It
// returns nil if no lane has a floor.
func (c *Config) floorsLeft(ctx context.Context, p Policy) (map[string]int64, error) {
	lanes := c.sharing(p.Budget.Credential)
	if !slices.ContainsFunc(lanes, func(l Lane) bool { return l.Floor > 0 }) {
		return nil, nil
	}
	now, err := p.Budget.Ledger.Time(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	start, _ := p.Day.Bounds(now)
	sums, err := sumsSince(ctx, c.Spending, p.Budget.Credential, start)
	if err != nil {
		return nil, err
	}
	left := make(map[string]int64)
	var rule share.Rule
	for _, l := range lanes {
		left[l.Name()] = l.Floor
		rule.Lanes = append(rule.Lanes, l.Lane)
	}
	for _, sum := range sums {
		if i := rule.LaneOf(sum.Labels); i != share.Others {
			left[rule.Lanes[i].Name()] -= sum.Units
		}
	}
	return left, nil
}

// unpaced reports whether the lane has not had its floor yet.
func (l *lane) unpaced(ctx context.Context, tick schedule.Tick) bool {
	p := l.policy()
	if len(p.Budget.Paces) == 0 {
		return false
	}
	left, err := l.cfg.floorsLeft(ctx, p)
	if err != nil {
		l.d.Log.Warn("cannot find whether the lane has had its floor: pacing it",
			"tick", tick.ID(), "error", err)
	}
	return left[l.Name()] > 0
}
