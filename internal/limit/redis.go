package limit

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/lua"
)

var script = redis.NewScript(lua.Source("limit"))

// Redis decides each request with one script, at the server's time. Keys begin with "limit:{all}:",
// which puts them into one slot of a cluster. Only the parts of split keys have separate slots,
// "limit:{1}:" and so on, and cost a round trip each.
//
// While the servers are unreachable, Take fails at once, and the servers are tried a few times a
// second.
type Redis struct {
	client redis.UniversalClient
	away   atomic.Int64 // Unix ns until which no call is made after a failure; 0 if reachable
	salt   atomic.Pointer[salt]
}

// salt is the servers' salt, with the time it was read.
type salt struct {
	bytes []byte
	read  time.Time
}

// Timeout of a request, and the interval between attempts while the servers are unreachable.
const (
	patience   = 500 * time.Millisecond
	retryEvery = 200 * time.Millisecond
)

var errAway = errors.New("redis was away a moment ago")

// NewRedis returns a store that uses the client's servers.
func NewRedis(client redis.UniversalClient) *Redis { return &Redis{client: client} }

// Take implements Store. After an error, a charge may have been made, and calling again
// charges again.
func (s *Redis) Take(ctx context.Context, asks []Ask) (bool, error) {
	if slices.ContainsFunc(asks, func(a Ask) bool { return a.Policy.Shards > 1 }) {
		return TakeParts(ctx, asks, s.step)
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
	case ctx.Err() == nil && !errors.As(err, &reply): // ctx has not ended, and no server replied
		s.away.Store(time.Now().Add(retryEvery).UnixNano())
	}
	return err
}

// step decides asks whose keys are in one slot.
func (s *Redis) step(ctx context.Context, asks []Ask) (bool, error) {
	keys, args := make([]string, len(asks)), make([]any, 0, 5*len(asks))
	for i := range asks {
		a, denied := &asks[i], 0
		if a.Policy.CountDenied {
			denied = 1
		}
		keys[i] = prefix(a) + hex.EncodeToString(a.Key[:])
		args = append(args, string(a.Policy.Algorithm), a.Policy.Units,
			a.Policy.Window.Microseconds(), a.Cost, denied)
	}
	var reply []int64
	err := s.ask(ctx, func(ctx context.Context) (err error) {
		reply, err = script.Run(ctx, s.client, keys, args...).Int64Slice()
		return err
	})
	if err != nil {
		return false, err
	}
	return decisions(reply, asks)
}

// decisions stores the reply of limit.lua in the asks.
func decisions(reply []int64, asks []Ask) (allowed bool, err error) {
	if len(reply) != 2+4*len(asks) {
		return false, fmt.Errorf("limit.lua returned %d numbers for %d policies",
			len(reply), len(asks))
	}
	for i := range asks {
		r := reply[2+4*i:]
		asks[i].Decision = Decision{
			At: reply[1], Allowed: r[0] == 1, Never: r[0] < 0, Remaining: r[1],
			NextAfter: micros(r[2]), ResetAfter: micros(r[3]),
		}
		if d := &asks[i].Decision; !d.Allowed && !d.Never {
			d.RetryAfter = d.NextAfter
		}
	}
	return reply[0] == 1, nil
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

// Salt implements Store. All processes on these servers share a salt, which the first call creates.
// It is reread once a minute, because servers that lost it create another one.
func (s *Redis) Salt(ctx context.Context) ([]byte, error) {
	if current := s.salt.Load(); current != nil && time.Since(current.read) < time.Minute {
		return current.bytes, nil
	}
	const name = "limit:{all}:salt"
	bytes := make([]byte, saltLength)
	rand.Read(bytes)
	err := s.ask(ctx, func(ctx context.Context) error {
		isNew, err := s.client.SetNX(ctx, name, bytes, 0).Result()
		if err == nil && !isNew {
			bytes, err = s.client.Get(ctx, name).Bytes()
		}
		return err
	})
	if err == nil {
		s.salt.Store(&salt{bytes, time.Now()})
	}
	return bytes, err
}
