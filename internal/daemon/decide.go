package daemon

import (
	"context"
	"slices"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

// chartMethod is what a page of a chart is charged as.
const chartMethod = "youtube.videos.list"

// Shares returns what each lane may take of the limit that is shortest. It is false while enough is
// left for every tick to come.
func (c *Config) Shares(ctx context.Context) (share.Shares, bool, error) {
	s, err := c.snapshot(ctx)
	if err != nil {
		return share.Shares{}, false, err
	}
	book, err := s.book(ctx)
	if err != nil {
		return share.Shares{}, false, err
	}
	shares, short := book.Shares(s.at.UnixMicro(), s.left)
	return shares, short, nil
}

// snapshot is what the ledger says of the shared bucket at one moment.
type snapshot struct {
	budget *quota.Budget
	rule   share.Rule
	at     time.Time // by the ledger's clock
	usage  []quota.LimitUsage
}

// snapshot asks what is left, and what a run of each lane takes.
func (c *Config) snapshot(ctx context.Context) (*snapshot, error) {
	budget := c.Sweep.Budget
	usage, err := budget.Usage(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	s := &snapshot{budget: budget, at: usage.At,
		rule: share.Rule{Lanes: slices.Clone(c.Lanes), Reset: c.Sweep.Day}}
	for _, cost := range budget.Prices[chartMethod] {
		if cost.Bucket == quota.DefaultBucket {
			s.rule.Price = cost.Units
		}
	}
	for _, b := range usage.Buckets {
		if b.Bucket == quota.DefaultBucket {
			s.usage = b.Limits
		}
	}
	for _, l := range s.usage {
		s.rule.Limits = append(s.rule.Limits, l.Limit)
	}
	ahead := skew(usage.At)
	for i := range s.rule.Lanes {
		s.rule.Lanes[i].Offset += ahead // the ticks come by this host's clock
	}
	return s, c.setPages(ctx, s.rule.Lanes)
}

// setPages sets how many pages a run of each lane wants, by its region's last chart.
func (c *Config) setPages(ctx context.Context, lanes []share.Lane) (err error) {
	for i := range lanes {
		l := &lanes[i]
		l.Pages, err = c.Sweep.Catalog.PagesWanted(context.WithoutCancel(ctx), l.Region, l.Pages)
		if err != nil {
			return err
		}
	}
	return nil
}

// skew is how far the ledger's clock is ahead of this host's. A little of it is the way there and
// back.
func skew(ledger time.Time) time.Duration {
	if d := time.Until(ledger); d.Abs() >= 5*time.Second {
		return d
	}
	return 0
}

// left is what a limit leaves scheduled charges.
func (s *snapshot) left(limit int) int64 { return s.usage[limit].Remaining }

// lookAhead adds to what is left of sliding windows what will have left them soon.
func (s *snapshot) lookAhead(ctx context.Context) error {
	for i := range s.usage {
		l := &s.usage[i]
		if !l.Limit.Window.IsSliding() || !share.Shared(l.Limit) {
			continue
		}
		oldest := s.at.Add(-l.Limit.Window.Length)
		units, err := s.budget.Ledger.Between(context.WithoutCancel(ctx), s.budget.Credential,
			quota.DefaultBucket, oldest, oldest.Add(share.Soon))
		if err != nil {
			return err
		}
		l.Remaining = min(l.Remaining+units, l.Limit.Cap(false))
	}
	return nil
}

// book is what was charged to the shared bucket, as far back as the rule looks.
func (s *snapshot) book(ctx context.Context) (*share.Book, error) {
	far := share.Memory
	for _, l := range s.rule.Limits {
		far = max(far, l.Reach())
	}
	sums, err := sumsSince(ctx, s.budget, s.at.Add(-far))
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

// sumsSince is what was charged to the shared bucket in each grain of time from a moment on.
func sumsSince(ctx context.Context, b *quota.Budget, since time.Time) ([]quota.Sum, error) {
	return b.Ledger.Sums(context.WithoutCancel(ctx), quota.SumQuery{Credential: b.Credential,
		Bucket: quota.DefaultBucket, Since: quota.GrainOf(since)})
}

func (s *snapshot) admit(ctx context.Context, lane int,
	tick time.Time) (share.Decision, *share.Book, error) {
	at := s.at
	if tick = tick.Add(skew(s.at)); at.Sub(tick).Abs() < time.Minute {
		at = tick // it decides as a plan does, although it comes a moment later
	}
	// Who spent what is not asked while what is left now is enough.
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

// Unpaced reports which regions have not had their floor of the upstream's day yet: a pace does not
// hold them back. It is nil where there is no pace, or no floor.
func (c *Config) Unpaced(ctx context.Context) (func(region string) bool, error) {
	floored := slices.ContainsFunc(c.Lanes, func(l share.Lane) bool { return l.Floor > 0 })
	budget := c.Sweep.Budget
	if len(budget.Paces) == 0 || !floored {
		return nil, nil
	}
	now, err := budget.Ledger.Time(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	start, _ := c.Sweep.Day.Bounds(now)
	sums, err := sumsSince(ctx, budget, start)
	if err != nil {
		return nil, err
	}
	left := make(map[string]int64) // of the floors
	for _, l := range c.Lanes {
		left[l.Region] = l.Floor
	}
	rule := share.Rule{Lanes: c.Lanes}
	for _, sum := range sums {
		if i := rule.LaneOf(sum.Labels); i != share.Others {
			left[c.Lanes[i].Region] -= sum.Units
		}
	}
	return func(region string) bool { return left[region] > 0 }, nil
}
