// Package memstore keeps the logs of a ledger in memory.
package memstore

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"quotabudget/internal/quota"
)

// Store is a ledger.Store in memory. Its zero value is empty.
type Store struct {
	Now func() time.Time // the clock; nil is time.Now

	mu       sync.Mutex
	accounts map[string]*account
	changes  int64
}

// account is the data of one credential.
type account struct {
	buckets map[string]*Bucket
	answers map[string]quota.Answer
	denials []quota.Denial
}

func (s *Store) account(credential string) *account {
	if s.accounts == nil {
		s.accounts = make(map[string]*account)
	}
	if s.accounts[credential] == nil {
		s.accounts[credential] = &account{buckets: map[string]*Bucket{},
			answers: map[string]quota.Answer{}}
	}
	return s.accounts[credential]
}

// bucket returns a bucket. It does not store an unused one: the first change does.
func (a *account) bucket(credential, name string) *Bucket {
	b := a.buckets[name]
	if b == nil {
		b = NewBucket(credential, name)
	}
	return b
}

// Update implements ledger.Store.
func (s *Store) Update(_ context.Context, scope quota.Scope,
	decide func(*quota.Account) (quota.Change, error)) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, buckets := s.see(scope)
	ch, err := decide(seen)
	if err != nil {
		return err
	}
	a := s.account(scope.Credential)
	for i, change := range ch.Buckets {
		a.buckets[scope.Buckets[i]] = buckets[i]
		buckets[i].Write(change)
	}
	if ch.Keep != nil {
		a.answers[ch.Keep.Name] = *ch.Keep
	}
	delete(a.answers, ch.Forget)
	s.changes++
	return nil
}

// View implements ledger.Store.
func (s *Store) View(_ context.Context, scope quota.Scope, read func(*quota.Account) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	seen, _ := s.see(scope)
	return read(seen)
}

func (s *Store) see(scope quota.Scope) (*quota.Account, []*Bucket) {
	a := s.account(scope.Credential)
	seen := &quota.Account{Credential: scope.Credential, Now: s.clock().UnixMicro()}
	var buckets []*Bucket
	for _, name := range scope.Buckets {
		b := a.bucket(scope.Credential, name)
		b.Lapsed = b.findLapsed(scope.Reservation)
		buckets, seen.Buckets = append(buckets, b), append(seen.Buckets, &b.Bucket)
	}
	if answer, known := a.answers[scope.Answer]; known {
		seen.Answer = &answer
	}
	return seen, buckets
}

// Entries implements ledger.Store.
func (s *Store) Entries(_ context.Context, q quota.Query) ([]quota.LogEntry, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	b := s.account(q.Credential).bucket(q.Credential, q.Bucket)
	entries := b.entries
	if q.Notes {
		entries = b.notes
	}
	after, until := q.Span()
	in := slices.DeleteFunc(slices.Clone(entries), func(e quota.LogEntry) bool {
		return e.At <= after || e.At > until
	})
	switch {
	case q.Limit > 0:
		in = in[max(0, len(in)-q.Limit):]
	case q.First > 0:
		in = in[:min(len(in), q.First)]
	}
	return in, nil
}

// Sums implements ledger.Store.
func (s *Store) Sums(ctx context.Context, q quota.SumQuery) ([]quota.Sum, error) {
	all := quota.Query{Credential: q.Credential, Bucket: q.Bucket}
	stored, _ := s.Entries(ctx, all) // an entry in memory is always readable
	entries, err := all.Entries(stored)
	before := func(s quota.Sum) bool { return s.At.Before(q.Since) }
	return slices.DeleteFunc(quota.AddUp(entries), before), err
}

// BucketsOf implements ledger.Store.
func (s *Store) BucketsOf(_ context.Context, credential string) (all []quota.BucketTotal, _ error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	buckets := s.account(credential).buckets
	for _, name := range slices.Sorted(maps.Keys(buckets)) {
		newest, _, _ := buckets[name].Newest() // an entry in memory is always readable
		all = append(all, buckets[name].Total(newest))
	}
	return all, nil
}

// AddDenials implements ledger.Store. Denials of a full day lose their labels.
func (s *Store) AddDenials(_ context.Context, credential string, denials []quota.Denial) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, old := s.account(credential), quota.ForgetDenials(denials)
	a.denials = slices.DeleteFunc(a.denials,
		func(d quota.Denial) bool { return d.Hour.Before(old) })
	for _, d := range denials {
		if len(a.denials) >= quota.MaxDenials {
			d.Labels = nil
		}
		i := slices.IndexFunc(a.denials, func(o quota.Denial) bool {
			return o.Hour.Equal(d.Hour) && o.Bucket == d.Bucket && o.Limit == d.Limit &&
				maps.Equal(o.Labels, d.Labels)
		})
		if i < 0 {
			a.denials = append(a.denials, d)
			continue
		}
		o := &a.denials[i]
		o.Count, o.Units = o.Count+d.Count, o.Units+d.Units
		if d.LastAt.After(o.LastAt) {
			o.LastAt = d.LastAt
		}
	}
	return nil
}

// Denials implements ledger.Store.
func (s *Store) Denials(_ context.Context, credential string, since time.Time) (
	[]quota.Denial, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := slices.DeleteFunc(slices.Clone(s.account(credential).denials),
		func(d quota.Denial) bool { return d.LastAt.Before(since) })
	quota.SortDenials(all)
	return all, nil
}

// Check implements ledger.Store. It finds nothing, because no other program writes the memory.
func (s *Store) Check(context.Context, string, string, bool) ([]quota.Finding, error) {
	return nil, nil
}

// Mark implements ledger.Store.
func (s *Store) Mark(context.Context, string, []string) (string, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return strconv.FormatInt(s.changes, 10), nil
}

// Time implements ledger.Store.
func (s *Store) Time(context.Context) (time.Time, error) { return s.clock().UTC(), nil }

func (s *Store) clock() time.Time {
	if s.Now != nil {
		return s.Now()
	}
	return time.Now()
}

// Close implements ledger.Store.
func (s *Store) Close() error { return nil }
