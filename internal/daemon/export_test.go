package daemon

import (
	"context"
	"slices"
	"time"

	"quotabudget/internal/share"
)

// Shares returns what each lane of a credential may take of the tightest limit. It returns none
// while enough is left for every coming tick.
func (c *Config) Shares(ctx context.Context, credential string) ([]share.Share, error) {
	all := c.policies()
	at := slices.IndexFunc(all, func(p Policy) bool { return p.Budget.Credential == credential })
	s, err := c.snapshot(ctx, all[at], "")
	if err != nil {
		return nil, err
	}
	book, err := s.book(ctx)
	if err != nil {
		return nil, err
	}
	shares, _ := book.Shares(s.at.UnixMicro(), s.left)
	return shares, nil
}

// RanAhead marks each lane's ticks as done until ahead from now, as if they had run while the clock
// was ahead.
func (d *Daemon) RanAhead(ahead time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, l := range d.lanes {
		l.until = time.Now().Add(ahead)
	}
}
