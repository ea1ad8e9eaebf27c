package limit

import (
	"context"
	"crypto/rand"
	"errors"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/queue"
)

// Redis decides each request by one script, at the server's time. A lone request takes one round
// trip; requests that arrive meanwhile share the next one, in order. Keys begin with
// "limit:{all}:", which puts them into one slot of a cluster. Only the parts of split keys have
// slots of their own, "limit:{1}:" and so on, and take a round trip each.
//
// While the servers are unreachable, Take fails at once, and the servers are tried a few times a
// second.
type Redis struct {
	client redis.UniversalClient
	parts  Sharded
	queues queue.Queues[int, work] // by slot: the part whose keys it holds
	away   atomic.Int64            // Unix ns until which no call is made after a failure, or 0
}

// Timeout of a request, and the interval between attempts while the servers are unreachable.
const (
	patience   = 500 * time.Millisecond
	retryEvery = 200 * time.Millisecond
)

var errAway = errors.New("redis was away a moment ago")

// NewRedis returns a store that uses the client's servers.
func NewRedis(client redis.UniversalClient) *Redis {
	s := &Redis{client: client}
	s.parts.Step = s.step
	return s
}

// Take implements Store. After an error, a charge may have been made, and calling again
// charges again.
func (s *Redis) Take(ctx context.Context, asks []Ask) (bool, error) {
	if slices.ContainsFunc(asks, func(a Ask) bool { return a.Policy.Shards > 1 }) {
		return s.parts.Take(ctx, asks)
	}
	return s.step(ctx, asks)
}

// ask runs call, unless the servers are unreachable.
func (s *Redis) ask(ctx context.Context, call func(context.Context) error) error {
	away := s.away.Load()
	if now := time.Now(); away != 0 && (now.UnixNano() < away ||
		!s.away.CompareAndSwap(away, now.Add(patience).UnixNano())) { // one caller tries for all
		return errAway
	}
	within, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	err := call(within)
	var reply redis.Error
	switch {
	case err == nil:
		if away != 0 {
			s.away.Store(0)
		}
	case ctx.Err() == nil && !errors.As(err, &reply): // neither ctx ended nor did the server answer
		s.away.Store(time.Now().Add(retryEvery).UnixNano())
	}
	return err
}

// step decides once, together with other callers' requests.
func (s *Redis) step(ctx context.Context, asks []Ask) (allowed bool, err error) {
	err = s.ask(ctx, func(ctx context.Context) error {
		allowed, err = s.together(ctx, asks)
		return err
	})
	return allowed, err
}

// prefix returns an ask's key without the client: slot, policy, algorithm, and window in µs.
func prefix(a *Ask) string {
	tag := "all"
	if a.Part > 0 {
		tag = strconv.Itoa(a.Part)
	}
	p := a.Policy
	window := strconv.FormatInt(p.Window.Microseconds(), 10)
	return "limit:{" + tag + "}:" + p.Name + ":" + string(p.Algorithm) + ":" + window + ":"
}

// saltTTL is longer than a day's keys are in use.
const saltTTL = 3 * 24 * time.Hour

// Salt returns the salt of a day (counted from 1970), which all processes on these servers share.
// The first call creates it; it expires after three days.
func (s *Redis) Salt(ctx context.Context, day int64) (salt []byte, err error) {
	name := "limit:{all}:salt:" + strconv.FormatInt(day, 10)
	salt = make([]byte, 32)
	rand.Read(salt)
	err = s.ask(ctx, func(ctx context.Context) error {
		made, err := s.client.SetNX(ctx, name, salt, saltTTL).Result()
		if err == nil && !made {
			salt, err = s.client.Get(ctx, name).Bytes()
		}
		return err
	})
	return salt, err
}
