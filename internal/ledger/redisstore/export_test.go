package redisstore

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/queue"
	"quotabudget/internal/quota"
)

// Client returns the client of the store.
func (s *Store) Client() redis.UniversalClient { return s.client }

// BeforeCommit has a function run between each snapshot and its commit.
func (s *Store) BeforeCommit(f func()) { s.beforeCommit = f }

// ConnectTo connects without looking at the server.
func ConnectTo(url string) (redis.UniversalClient, error) {
	a, err := parseURL(url)
	if err != nil {
		return nil, err
	}
	return connect(a), nil
}

// CodeOfReply is for tests of errors that servers return.
var CodeOfReply = codeOfReply

// ChargeTogether decides charges on one bucket in one run of charge.lua. Those that it leaves have
// no decision.
func (s *Store) ChargeTogether(ctx context.Context, all []quota.Charge) (
	decisions []*quota.Decision, err error) {
	group := make([]*queue.Op[charge], len(all))
	for i, c := range all {
		limits, _ := s.plain(c)
		group[i] = &queue.Op[charge]{Work: charge{of: c, limits: limits}}
	}
	s.chargeAll(ctx, group)
	decisions = make([]*quota.Decision, len(all))
	for i, o := range group {
		if o.Work.decided {
			decisions[i] = &o.Work.decision
		}
		err = errors.Join(err, o.Work.err)
	}
	return decisions, err
}

// TrimRaced trims a bucket for two processes that have read the same entries.
func (s *Store) TrimRaced(ctx context.Context, credential, bucket string) (
	first, second string, err error) {
	var both [2]*commands
	for i := range both {
		snap, err := s.snapshot(ctx, credential, []quota.Scope{{Buckets: []string{bucket}}})
		if err != nil {
			return "", "", err
		}
		entries, err := s.entries(ctx, credential, bucket, -quota.Never, quota.Never, 10)
		if err != nil {
			return "", "", err
		}
		both[i] = snap.order[0].forget(entries, 0)
	}
	first, err = s.send(ctx, both[0], 0)
	second, err2 := s.send(ctx, both[1], 0)
	return first, second, errors.Join(err, err2)
}
