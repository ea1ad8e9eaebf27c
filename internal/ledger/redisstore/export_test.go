package redisstore

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

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

// CodeOfReply returns the code of an error that a server returned.
var CodeOfReply = codeOfReply

// ChargeTogether decides charges on one bucket in one run of charge.lua. Those that it leaves have
// no decision.
func (s *Store) ChargeTogether(ctx context.Context, all []quota.Charge) (
	decisions []*quota.Decision, err error) {
	group := make([]*quota.Queued[charge], len(all))
	for i, c := range all {
		limits, _ := s.plain(c)
		group[i] = &quota.Queued[charge]{Work: charge{request: c, limits: limits}}
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

// TrimAround reads the oldest ten entries of a bucket, runs a function, and forgets the entries.
func (s *Store) TrimAround(ctx context.Context, credential, bucket string, meanwhile func()) (
	result string, err error) {
	snap, err := s.snapshot(ctx, credential, []quota.Scope{{Buckets: []string{bucket}}})
	if err != nil {
		return "", err
	}
	entries, err := s.entries(ctx, credential, bucket, -quota.Never, quota.Never, 10)
	if err != nil {
		return "", err
	}
	meanwhile()
	return s.send(ctx, snap.order[0].forget(entries, 0), 0)
}
