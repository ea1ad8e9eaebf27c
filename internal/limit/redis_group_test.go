package limit_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/limit"
)

// TestGroupsAreAsOneByOne plays random requests in groups of 1 to 64, some of them after the
// server lost its scripts. Every answer must equal the one Memory gives, request by request.
func TestGroupsAreAsOneByOne(t *testing.T) {
	t.Parallel()
	b := startBoth(t)
	for seed := range uint64(64) {
		random := rand.New(rand.NewPCG(seed, 2))
		policies := randomPolicies(random, seed)
		now := time.Date(2026, 1, 2, 3, 4, 0, 0, time.UTC).Add(time.Duration(seed) * time.Hour)
		b.memory = limit.NewMemory()
		for step := range 4 {
			now = now.Add(time.Duration(random.Int64N(8_000_000)) * time.Microsecond)
			b.server.SetNow(t, now)
			var group, want [][]limit.Ask
			var allowed []bool
			for range 1 + seed {
				asks := randomAsks(random, policies)
				group, want = append(group, asks), append(want, slices.Clone(asks))
				allowed = append(allowed, b.memory.TakeAt(now.UnixMicro(), want[len(want)-1]))
			}
			if random.IntN(8) == 0 {
				b.client.ScriptFlush(t.Context())
			}
			got, err := b.store.TakeInGroup(t.Context(), group)
			if err != nil {
				t.Fatal(err)
			}
			for i := range group {
				for j, a := range group[i] {
					if got[i] != allowed[i] || a.Decision != want[i][j].Decision {
						t.Fatalf("seed %d, step %d, request %d: %+v, in memory %+v", seed, step,
							i+1, a.Decision, want[i][j].Decision)
					}
				}
			}
		}
	}
}

// TestCallersOfAGroup queues callers behind one: one of them leaves, one's key is damaged, and
// the server has lost the script. The others are allowed exactly the limit, and each gets its own
// answer.
func TestCallersOfAGroup(t *testing.T) {
	t.Parallel()
	b := startBoth(t)
	b.server.SetNow(t, time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC))
	const callers, units = 40, 25
	p := &limit.Policy{Name: "hot", Units: units, Window: time.Hour, Algorithm: limit.Log}
	ctx := t.Context()
	damaged := []limit.Ask{{Policy: p, Key: limit.Key{2}, Cost: 1}}
	if _, err := b.store.Take(ctx, damaged); err != nil {
		t.Fatal(err)
	}
	b.client.Set(ctx, b.client.Keys(ctx, "limit:*").Val()[0], "text", 0)
	b.client.ScriptFlush(ctx)

	var all sync.WaitGroup
	var mu sync.Mutex
	var remaining []int64
	denied := 0
	take := func() {
		asks := []limit.Ask{{Policy: p, Key: limit.Key{1}, Cost: 1}}
		allowed, err := b.store.Queued(ctx, asks)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err != nil:
			t.Error(err)
		case allowed:
			remaining = append(remaining, asks[0].Remaining)
		default:
			denied++
		}
	}
	leaves, leave := context.WithCancel(ctx)
	left := make(chan error, 1)
	queue := func() {
		for range callers {
			all.Go(take)
		}
		all.Go(func() {
			if _, err := b.store.Queued(ctx, slices.Clone(damaged)); err == nil {
				t.Error("a damaged key was charged")
			}
		})
		go func() {
			_, err := b.store.Queued(leaves, []limit.Ask{{Policy: p, Key: limit.Key{1}, Cost: 1}})
			left <- err
		}()
	}
	began, gone := false, false
	lead := []limit.Ask{{Policy: p, Key: limit.Key{3}, Cost: 1}}
	err := b.store.Lead(ctx, lead, func(queued int) bool {
		switch {
		case !began:
			began = true
			queue()
		case !gone && queued == callers+3:
			leave()
			if err := <-left; !errors.Is(err, context.Canceled) {
				t.Errorf("the caller that left got %v", err)
			}
			gone = true
		}
		return gone
	})
	if err != nil {
		t.Fatal(err)
	}
	all.Wait()
	slices.Sort(remaining)
	if len(remaining) != units || denied != callers-units ||
		len(slices.Compact(remaining)) != units {
		t.Errorf("%d allowed, %d denied, remaining %v", len(remaining), denied, remaining)
	}
}

// TestAnswerOfEndedCaller: a caller whose ctx ends when the reply has arrived still gets the
// answer.
func TestAnswerOfEndedCaller(t *testing.T) {
	b := startBoth(t)
	hook := &endsAfter{end: func() {}}
	b.client.AddHook(hook)
	p := &limit.Policy{Name: "ended", Units: 100, Window: time.Hour, Algorithm: limit.Log}
	if _, err := b.store.Queued(t.Context(), []limit.Ask{{Policy: p}}); err != nil {
		t.Fatal(err) // there are a connection and the script now
	}
	for i := range 40 {
		ctx, end := context.WithCancel(t.Context())
		hook.end = end
		asks := []limit.Ask{{Policy: p, Cost: 1}}
		if ok, err := b.store.Queued(ctx, asks); err != nil || !ok {
			t.Fatalf("call %d: %v %v", i+1, ok, err)
		}
	}
}

// endsAfter is a hook that ends a context after each command.
type endsAfter struct{ end func() }

func (e *endsAfter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (e *endsAfter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

func (e *endsAfter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		err := next(ctx, cmd)
		if err == nil {
			e.end()
		}
		return err
	}
}
