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

// Shares says what each lane may take of the limit that is shortest. It is false while enough is
// left for every tick to come.
func (w *Work) Shares(ctx context.Context) (share.Shares, bool, error) {
	s, err := w.standing(ctx)
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

// standing is what the ledger says of the shared bucket at one moment.
type standing struct {
	*Work
	rule  share.Rule
	at    time.Time // by the ledger's clock
	usage []quota.LimitUsage
}

// standing asks what is left, and what a run of each lane takes.
func (w *Work) standing(ctx context.Context) (standing, error) {
	ctx = context.WithoutCancel(ctx)
	usage, err := w.Sweep.Budget.Usage(ctx)
	if err != nil {
		return standing{}, err
	}
	s := standing{Work: w, at: usage.At, rule: share.Rule{Lanes: slices.Clone(w.Lanes), Reset: w.Sweep.Day}}
	for _, cost := range w.Sweep.Budget.Prices[chartMethod] {
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
		l := &s.rule.Lanes[i]
		l.Offset += ahead // the ticks come by this host's clock
		if l.Pages, err = w.Sweep.Catalog.PagesWanted(ctx, l.Region, l.Pages); err != nil {
			return standing{}, err
		}
	}
	return s, nil
}

// skew is how far the ledger's clock is ahead of this host's. A little of it is the way there and
// back.
func skew(ledger time.Time) time.Duration {
	d := time.Until(ledger)
	if d.Abs() < 5*time.Second {
		return 0
	}
	return d
}

// left is what a limit leaves scheduled charges.
func (s *standing) left(limit int) int64 { return s.usage[limit].Remaining }

// lookAhead adds to what is left of sliding windows what will have left them soon.
func (s *standing) lookAhead(ctx context.Context) error {
	for i := range s.usage {
		l := &s.usage[i]
		if l.Limit.Window.IsCalendar() || !share.Shared(l.Limit) {
			continue
		}
		oldest := s.at.Add(-l.Limit.Window.Length)
		units, err := s.Sweep.Budget.Ledger.Between(context.WithoutCancel(ctx), s.Sweep.Budget.Credential,
			quota.DefaultBucket, oldest, oldest.Add(share.Soon))
		if err != nil {
			return err
		}
		l.Remaining = min(l.Remaining+units, l.Limit.Cap(false))
	}
	return nil
}

// book is what was charged to the shared bucket, as far back as the rule looks.
func (s *standing) book(ctx context.Context) (*share.Book, error) {
	far := share.Memory
	for _, l := range s.rule.Limits {
		far = max(far, l.Window.Longest())
	}
	sums, err := s.sums(ctx, s.at.Add(-far))
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

// sums is what was charged to the shared bucket in each grain of time from a moment on.
func (w *Work) sums(ctx context.Context, since time.Time) ([]quota.Sum, error) {
	return w.Sweep.Budget.Ledger.Sums(context.WithoutCancel(ctx), quota.SumQuery{
		Credential: w.Sweep.Budget.Credential, Bucket: quota.DefaultBucket, Since: quota.GrainOf(since)})
}

// admit decides whether a tick runs.
func (s *standing) admit(ctx context.Context, lane int, tick time.Time) (share.Decision, *share.Book, error) {
	at := s.at
	if tick = tick.Add(skew(s.at)); at.Sub(tick).Abs() < time.Minute {
		at = tick // it decides as a plan does, although it comes a moment later
	}
	// Nobody's share is asked for while what is left now is enough.
	book := s.rule.Begin()
	if d := book.Admit(lane, at.UnixMicro(), s.left); !d.Short {
		return d, book, nil
	}
	book, err := s.book(ctx)
	if err != nil {
		return share.Decision{}, nil, err
	}
	return book.Admit(lane, at.UnixMicro(), s.left), book, nil
}

// Unpaced says which regions have not had their floor of the upstream's day yet: a pace does not
// hold them back. It is nil where there is no pace, or no floor.
func (w *Work) Unpaced(ctx context.Context) (func(region string) bool, error) {
	floored := slices.ContainsFunc(w.Lanes, func(l share.Lane) bool { return l.Floor > 0 })
	if len(w.Sweep.Budget.Paces) == 0 || !floored {
		return nil, nil
	}
	now, err := w.Sweep.Budget.Ledger.Time(context.WithoutCancel(ctx))
	if err != nil {
		return nil, err
	}
	start, _ := w.Sweep.Day.Bounds(now)
	sums, err := w.sums(ctx, start)
	if err != nil {
		return nil, err
	}
	left := make(map[string]int64) // of the floors
	for _, l := range w.Lanes {
		left[l.Region] = l.Floor
	}
	rule := share.Rule{Lanes: w.Lanes}
	for _, sum := range sums {
		if i := rule.LaneOf(sum.Labels); i != share.Others {
			left[w.Lanes[i].Region] -= sum.Units
		}
	}
	return func(region string) bool { return left[region] > 0 }, nil
}
