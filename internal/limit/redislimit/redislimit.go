// Package redislimit keeps what a limiter has charged in Redis, for all processes together.
package redislimit

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
	"quotabudget/internal/limit"
)

// Store decides by one script for each request, at the time of the server. A request that is alone
// takes one round trip; what is asked meanwhile shares the next one, in the order of asking. The
// keys begin with "limit:{all}:", so they are all in one slot of a cluster. Only the parts of split
// keys are in slots of their own, "limit:{1}:" and so on, and take a round trip each.
//
// While the servers are away, it returns an error at once, and asks them a few times a second.
type Store struct {
	client redis.UniversalClient
	parts  limit.Sharded
	queues queue.Queues[int, work] // of slots, by the part whose keys are there
	away   atomic.Int64            // Unix ns up to which nothing is asked, after a failure; else 0
}

// How long a request waits for an answer at most, and how often servers that are away are asked.
const (
	patience   = 500 * time.Millisecond
	retryEvery = 200 * time.Millisecond
)

var errAway = errors.New("redis was away a moment ago")

// New returns a store on a client's server or servers.
func New(client redis.UniversalClient) *Store {
	s := &Store{client: client}
	s.parts.Step = s.step
	return s
}

// Take is limit.Store.Take. After an error, a charge may have been made: asking again charges
// again.
func (s *Store) Take(ctx context.Context, asks []limit.Ask) (bool, error) {
	if slices.ContainsFunc(asks, func(a limit.Ask) bool { return a.Policy.Shards > 1 }) {
		return s.parts.Take(ctx, asks)
	}
	return s.step(ctx, asks)
}

// ask calls the servers, unless they are away.
func (s *Store) ask(ctx context.Context, call func(context.Context) error) error {
	away := s.away.Load()
	if now := time.Now(); away != 0 && (now.UnixNano() < away ||
		!s.away.CompareAndSwap(away, now.Add(patience).UnixNano())) { // one asks for all
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
	case ctx.Err() == nil && !errors.As(err, &reply): // neither the caller's end nor an answer
		s.away.Store(time.Now().Add(retryEvery).UnixNano())
	}
	return err
}

// step has the script decide once, with what other callers ask meanwhile.
func (s *Store) step(ctx context.Context, asks []limit.Ask) (allowed bool, err error) {
	err = s.ask(ctx, func(ctx context.Context) error {
		allowed, err = s.together(ctx, asks)
		return err
	})
	return allowed, err
}

// prefix is the name of an ask's key up to who asks: slot, policy, algorithm, and window in µs.
func prefix(a *limit.Ask) string {
	tag := "all"
	if a.Part > 0 {
		tag = strconv.Itoa(a.Part)
	}
	p := a.Policy
	window := strconv.FormatInt(p.Window.Microseconds(), 10)
	return "limit:{" + tag + "}:" + p.Name + ":" + string(p.Algorithm) + ":" + window + ":"
}

func micros(n int64) time.Duration { return time.Duration(n) * time.Microsecond }

// saltTTL is longer than the keys of a day are in use.
const saltTTL = 3 * 24 * time.Hour

// Salt is the salt of a day since 1970, which all processes on these servers share. The first to
// ask makes it up, and three days later it is gone.
func (s *Store) Salt(ctx context.Context, day int64) (salt []byte, err error) {
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
