// Package redisstore keeps the logs of a ledger in Redis, for many processes and machines.
//
// A decision is made here, on a snapshot (read.lua), and written if the snapshot still stands
// (commit.lua). Callers that come while another decision of the same process on the credential is
// under way share the next snapshot and the next commit. A plain charge is decided inside Redis
// (charge.lua): see TryCharge.
package redisstore

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/queue"
	"quotabudget/internal/quota"
	"quotabudget/lua"
)

// Store is a ledger.Store in Redis 5 or newer: one server, Sentinel or Cluster. Open makes it; its
// methods may be called from many goroutines.
type Store struct {
	// Slow has every charge decided on a snapshot. It is set before the first use or never.
	Slow bool

	client  redis.UniversalClient
	scripts map[string]*redis.Script // by the names of lua.Names
	holder  string                   // name of this store in locks
	ahead   atomic.Int64             // µs by which the server's clock is ahead of ours, as last known

	updates queue.Queues[string, work]   // by credential
	charges queue.Queues[string, charge] // by credential, bucket and limits

	beforeCommit func() // for tests; nil for none

	mu      sync.Mutex
	states  map[string]keptState // by the key of the state
	trimDue map[string]int64     // when the oldest entries are over, by the key of the log
}

func newStore(client redis.UniversalClient) *Store {
	s := &Store{client: client, scripts: make(map[string]*redis.Script), holder: newRevision()}
	s.updates.One = true
	for _, name := range lua.Names {
		s.scripts[name] = redis.NewScript(lua.Source(name))
	}
	return s
}

// run runs a script.
func (s *Store) run(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	return s.scripts[script].Run(ctx, s.client, keys, args...)
}

// Close ends the connections.
func (s *Store) Close() error { return s.client.Close() }

// Time implements ledger.Store.
func (s *Store) Time(ctx context.Context) (time.Time, error) {
	now, err := s.client.Time(ctx).Result()
	return now.UTC(), explain(err)
}

// maxStates bounds the memory for buckets that are never used again.
const maxStates = 1000

// keptState is the state of a bucket that this process read or wrote last, with the holds then.
type keptState struct {
	text  string
	state quota.State
	holds []quota.Hold
}

func (s *Store) keptState(key string) keptState {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.states[key]
}

func (s *Store) keepState(key string, state keptState) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.states == nil || len(s.states) >= maxStates {
		s.states = make(map[string]keptState)
	}
	s.states[key] = state
}
