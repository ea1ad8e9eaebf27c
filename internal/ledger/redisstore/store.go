// Package redisstore keeps the logs of a ledger in Redis, for many processes and machines.
//
// The process makes a decision on a snapshot (read.lua) and writes it if the snapshot is still
// valid (commit.lua). Callers that arrive while another decision of the process on the credential
// is under way share the next snapshot and commit. Redis itself decides plain charges (charge.lua):
// see TryCharge.
package redisstore

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/quota"
	"quotabudget/lua"
)

// Store is a ledger.Store in Redis 5 or newer: one server, Sentinel or Cluster. Open creates it. It
// is safe for concurrent use.
type Store struct {
	// Slow makes the store decide every charge on a snapshot. It must be set before the first use.
	Slow bool

	client   redis.UniversalClient
	replicas int                      // number of replicas that must confirm a change
	scripts  map[string]*redis.Script // by the names of lua.Names
	holder   string                   // this store's name in locks
	ahead    atomic.Int64             // last known lead of the server's clock, in µs

	updates quota.Queues[string, work]   // by credential
	charges quota.Queues[string, charge] // by credential, bucket and limits

	beforeCommit func() // for tests; nil for none

	states  memo[keptState] // by the key of the state
	trimDue memo[int64]     // when the oldest entries can be deleted, by the key of the log
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

// replicaTime is how long a change waits for the replicas.
const replicaTime = time.Second

// change runs a script, and waits until enough replicas have confirmed what it wrote.
func (s *Store) change(ctx context.Context, script string, keys []string,
	wrote func(*redis.Cmd) bool, args ...any) *redis.Cmd {
	client, single := s.client.(*redis.Client)
	if s.replicas == 0 || !single {
		return s.run(ctx, script, keys, args...)
	}
	conn := client.Conn() // WAIT covers the writes of its own connection
	defer conn.Close()
	cmd := s.scripts[script].Run(ctx, conn, keys, args...)
	if cmd.Err() != nil || !wrote(cmd) {
		return cmd
	}
	n, err := conn.Wait(ctx, s.replicas, replicaTime).Result()
	if err == nil && int(n) < s.replicas {
		err = fmt.Errorf("%d of %d replicas have confirmed the change within %s; it is recorded, "+
			"and a failover may lose it", n, s.replicas, replicaTime)
	}
	if err != nil {
		cmd.SetErr(err)
	}
	return cmd
}

// Close ends the connections.
func (s *Store) Close() error { return s.client.Close() }

// Time implements ledger.Store.
func (s *Store) Time(ctx context.Context) (time.Time, error) {
	now, err := s.client.Time(ctx).Result()
	return now.UTC(), explain(err)
}

// keptState is the last state and holds of a bucket that this process has read or written.
type keptState struct {
	text  string
	state quota.State
	holds []quota.Hold
}

// memo caches a value for each key. When there are many it drops them all, because most buckets are
// no longer in use by then.
type memo[V any] struct {
	mu     sync.Mutex
	values map[string]V
}

func (m *memo[V]) get(key string) V {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.values[key]
}

func (m *memo[V]) put(key string, value V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.values == nil || len(m.values) >= 1000 {
		m.values = make(map[string]V)
	}
	m.values[key] = value
}
