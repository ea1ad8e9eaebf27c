// Package redisledger keeps the ledger in Redis, for many processes and machines.
package redisledger

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

// Ledger is a quota.Ledger in Redis 5 or newer: one server, Sentinel or Cluster. Every decision is
// one script, by the server's clock. It is safe for concurrent use.
type Ledger struct {
	client redis.UniversalClient
	ahead  atomic.Int64 // µs by which the server's clock is ahead of ours, from its last answer
	told   told
	spare  sync.Pool // of operations that were answered

	// Of buckets that are charged together, or settled, by audience.
	queues, settling queue.Queues[string, work]

	quota.DenialCounter

	readNewest int64 // entries that Sums adds up by itself, at most

	scripts map[string]*redis.Script // by the names of lua.Names
}

var (
	_ quota.Ledger = (*Ledger)(nil)
	_ quota.Claims = (*Ledger)(nil)
)

func newLedger(client redis.UniversalClient) *Ledger {
	l := &Ledger{client: client, readNewest: readNewest, scripts: make(map[string]*redis.Script)}
	for _, name := range lua.Names {
		l.scripts[name] = redis.NewScript(lua.Source(name))
	}
	l.Write = l.addDenials
	return l
}

// run runs a script.
func (l *Ledger) run(ctx context.Context, script string, keys []string, args ...any) *redis.Cmd {
	return l.scripts[script].Run(ctx, l.client, keys, args...)
}

// run1 runs a script that replies with one number.
func (l *Ledger) run1(ctx context.Context, script string, keys []string, args ...any) (
	int64, error) {
	n, err := l.run(ctx, script, keys, args...).Int64()
	return n, explain(err)
}

// Close writes the denials and ends the connections.
func (l *Ledger) Close() error {
	l.Flush(time.Second)
	return l.client.Close()
}

// Time is the server's clock.
func (l *Ledger) Time(ctx context.Context) (time.Time, error) {
	now, err := l.client.Time(ctx).Result()
	if err != nil {
		return time.Time{}, explain(err)
	}
	return now.UTC(), nil
}

// now is what the server's clock probably shows. Only calendar boundaries are computed from it, and
// the scripts refuse boundaries that do not fit their own clock.
func (l *Ledger) now() time.Time {
	return time.Now().Add(time.Duration(l.ahead.Load()) * time.Microsecond)
}

func (l *Ledger) learn(clock int64) { l.ahead.Store(clock - time.Now().UnixMicro()) }

// maxAsks bounds how often a script is asked again because a calendar window ended meanwhile. Twice
// is enough unless the server's clock jumps.
const maxAsks = 5

// ask runs a script whose arguments depend on the time, again while it answers that its time is
// another.
func (l *Ledger) ask(ctx context.Context, script string, keys []string,
	args func(now time.Time) []any) (reply, error) {
	now := l.now()
	for asked := 1; ; asked++ {
		answered, err := replies(l.run(ctx, script, keys, args(now)...))
		if err != nil {
			return reply{}, explain(err)
		}
		if answered.status() != stale || asked == maxAsks {
			return answered, nil
		}
		ints, err := answered.ints(2)
		if err != nil {
			return reply{}, err
		}
		now = fromMicro(ints[1])
	}
}

func fromMicro(us int64) time.Time { return time.UnixMicro(us).UTC() }
