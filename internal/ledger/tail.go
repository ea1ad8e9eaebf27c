package ledger

import (
	"cmp"
	"context"
	"slices"
	"time"

	"quotabudget/internal/quota"
)

// TailLine is a new entry or, with TakenBack, the negative units that a reported entry has lost.
type TailLine struct {
	quota.Entry
	TakenBack bool
}

// TailNews is what has happened since the last call.
type TailNews struct {
	Lines []TailLine // oldest first
	Notes []string   // messages about changes that no line can express
}

// TailLedger is what a Tail reads.
type TailLedger interface {
	quota.EntryReader
	Mark(ctx context.Context, credential string, buckets []string) (string, error)
}

// Tail follows the log of one credential as it grows. It is not safe for concurrent use.
//
// Each entry is reported once, in order within a bucket, except that corrections come later.
// If a reported entry later loses units, because the charge was cancelled or settled with less, a
// line with negative units is reported, so that the lines add up to the log.
type Tail struct {
	Ledger     TailLedger
	Credential string
	// Buckets returns the buckets to follow. It is called repeatedly, because parts of a split
	// bucket appear with their first charge.
	Buckets func(context.Context) ([]string, error)

	mark      string
	names     []string
	followed  map[string]*bucket
	listedAt  time.Time
	listAfter time.Duration
	readAt    time.Time
}

// A Tail reads the log when its mark has changed, and at least every readEvery, because only a read
// turns an expired reservation into an entry. It lists the buckets every listEvery, so that a new
// one appears soon. Listing can be slow on a server with much other data, so it may take at most a
// hundredth of the time.
const (
	readEvery  = 10 * time.Second
	listEvery  = time.Second
	listAtMost = 100
)

// TailStart selects the initial entries: those after Since, and only the Newest of each bucket (0
// for all).
type TailStart struct {
	Since  time.Time
	Newest int
}

// Begin reads the existing entries; now is this machine's time. Errors are the ledger's.
func (l *Tail) Begin(ctx context.Context, s TailStart, now time.Time) (news TailNews, err error) {
	l.followed, l.mark = make(map[string]*bucket), ""
	if err := l.list(ctx, now); err != nil {
		return news, err
	}
	for _, name := range l.names {
		b := l.bucket(name)
		q := quota.Query{Credential: l.Credential, Bucket: name, Since: s.Since, Limit: s.Newest}
		entries, err := b.first(ctx, l.Ledger, q)
		if err != nil {
			return news, err
		}
		news.add(entries)
	}
	l.readAt = now
	news.sort()
	if s.Newest > 0 {
		news.Lines = news.Lines[max(0, len(news.Lines)-s.Newest):]
	}
	return news, nil
}

// Next returns what is new. After an error, which is the ledger's, the next call continues after
// the last successful one.
func (l *Tail) Next(ctx context.Context, now time.Time) (news TailNews, err error) {
	if now.Sub(l.listedAt) >= l.listAfter {
		if err := l.list(ctx, now); err != nil {
			return news, err
		}
	}
	mark, err := l.Ledger.Mark(ctx, l.Credential, l.names)
	if err != nil || mark == l.mark && now.Sub(l.readAt) < readEvery {
		return news, err
	}
	changed := make(map[string]*bucket)
	for _, name := range l.names {
		b := *l.bucket(name)
		b.recent = slices.Clone(b.recent)
		if err := b.read(ctx, l.Ledger, &news); err != nil {
			return TailNews{}, err
		}
		changed[name] = &b
	}
	l.followed, l.mark, l.readAt = changed, mark, now
	news.sort()
	return news, nil
}

func (l *Tail) bucket(name string) *bucket {
	if l.followed[name] == nil {
		l.followed[name] = &bucket{credential: l.Credential, name: name}
	}
	return l.followed[name]
}

func (l *Tail) list(ctx context.Context, now time.Time) error {
	began := time.Now()
	names, err := l.Buckets(ctx)
	if err != nil {
		return err
	}
	l.listedAt, l.listAfter = now, max(listEvery, listAtMost*time.Since(began))
	if !slices.Equal(names, l.names) {
		l.names, l.mark = names, ""
	}
	return nil
}

func (n *TailNews) add(entries []quota.Entry) {
	for _, e := range entries {
		n.Lines = append(n.Lines, TailLine{Entry: e})
	}
}

func (n *TailNews) sort() {
	slices.SortStableFunc(n.Lines, func(a, b TailLine) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID))
	})
}
