package limit_test

import (
	"flag"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/limit"
)

var long = flag.Bool("long", false, "compare Redis with memory for minutes")

// both is the same limiter on Redis and in memory.
type both struct {
	server *redistest.Server
	client *redis.Client
	store  *limit.Redis
	memory *limit.Memory
	latest time.Time
}

func startBoth(t *testing.T) *both {
	server := redistest.Start(t, redistest.Options{Clock: true})
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { client.Close() })
	return &both{server: server, client: client, store: limit.NewRedis(client),
		memory: limit.NewMemory()}
}

// clockStart is a time at which every calendar window in these tests begins.
var clockStart = time.Date(2026, 1, 2, 3, 0, 0, 0, time.UTC)

// take decides the asks on both, and describes how they differ.
func (b *both) take(t *testing.T, now time.Time, asks []limit.Ask) (difference string) {
	t.Helper()
	b.server.SetNow(t, now)
	if b.latest.Before(now) {
		b.latest = now
	}
	want := slices.Clone(asks)
	allowed := b.memory.TakeAt(now.UnixMicro(), want)
	got, err := b.store.Take(t.Context(), asks)
	must(t, err)
	for i := range asks {
		if got != allowed || asks[i].Decision != want[i].Decision {
			difference += fmt.Sprintf("%+v, key %x, cost %d:\n%+v, in memory\n%+v\n",
				*asks[i].Policy, asks[i].Key[0], asks[i].Cost, asks[i].Decision,
				want[i].Decision)
		}
	}
	return difference
}

// TestSameAsMemory makes random requests, with changing limits and a clock set back by up to a
// minute: every decision of Redis equals memory's.
func TestSameAsMemory(t *testing.T) {
	t.Parallel()
	b, histories := startBoth(t), uint64(150)
	if *long {
		histories = 6000
	}
	for seed := range histories {
		random := rand.New(rand.NewPCG(seed, 1))
		policies := randomPolicies(random, seed)
		now := clockStart.Add(4*time.Minute + time.Duration(seed)*time.Hour)
		b.memory, b.latest = limit.NewMemory(), now
		for step := range 120 {
			if random.IntN(3) > 0 { // else another call in the same microsecond
				now = now.Add(time.Duration(random.Int64N(8_000_000)) * time.Microsecond)
			}
			if random.IntN(20) == 0 { // set the clock back
				most := time.Minute - max(0, b.latest.Sub(now))
				back := time.Duration(random.Int64N(1 + int64(most)))
				now = now.Add(-back).Truncate(time.Microsecond)
			}
			asks := randomAsks(random, policies)
			if difference := b.take(t, now, asks); difference != "" {
				t.Fatalf("seed %d, step %d: %s", seed, step, difference)
			}
		}
	}
}

// TestClockSetBack sets the clock back between charges, which must neither free units nor charge
// them again. It also fills a fixed window that would be too long for a counter with as many units.
// Redis and memory must agree.
func TestClockSetBack(t *testing.T) {
	t.Parallel()
	type step struct {
		at         float64 // seconds
		cost, left int64   // units
	}
	const half = limit.MaxUnits / 2
	short := limit.Policy{Units: 4, Window: 30 * time.Second}
	b := startBoth(t)
	for _, test := range []struct {
		name       string
		policy     limit.Policy
		algorithms []limit.Algorithm
		steps      []step
	}{
		{"what had expired counts again", short, []limit.Algorithm{limit.Log, limit.Fixed}, []step{
			{0, 3, 1}, {30, 0, 4}, {89.999, 0, 4}, {29.999, 0, 1}, {29.999, 2, 1}, {30, 2, 2},
		}},
		{"what a counter had lost, too", short, []limit.Algorithm{limit.Counter}, []step{
			{0, 3, 1}, {60, 0, 4}, {119.999, 0, 4}, {59.999, 0, 3}, {29.999, 2, 1},
		}},
		{"what had left at a charge stays gone", short, []limit.Algorithm{limit.Log}, []step{
			{0, 1, 3}, {10, 1, 2}, {20, 1, 1}, {30, 1, 1}, {25, 1, 0}, {25, 1, 0}, {40, 1, 0},
		}},
		{"a long window", limit.Policy{Units: limit.MaxUnits, Window: limit.MaxWindow},
			[]limit.Algorithm{limit.Fixed}, []step{{0, half, half}, {0, half, 0}, {0, half, 0}}},
	} {
		for _, algorithm := range test.algorithms {
			t.Run(test.name+", "+string(algorithm), func(t *testing.T) {
				b.memory = limit.NewMemory()
				test.policy.Name, test.policy.Algorithm = t.Name(), algorithm
				for i, s := range test.steps {
					asks := []limit.Ask{{Policy: &test.policy, Key: somebody, Cost: s.cost}}
					now := clockStart.Add(time.Duration(s.at * float64(time.Second)))
					if difference := b.take(t, now, asks); difference != "" {
						t.Errorf("step %d: %s", i+1, difference)
					}
					if asks[0].Remaining != s.left {
						t.Errorf("step %d: %+v, want %d left", i+1, asks[0].Decision, s.left)
					}
				}
			})
		}
	}
}

func randomPolicies(random *rand.Rand, seed uint64) (all []*limit.Policy) {
	most := []int64{20, 20, 5000, limit.MaxUnits}[random.IntN(4)]
	for i := range 3 {
		all = append(all, &limit.Policy{
			Name: fmt.Sprint(i, "-", seed), Units: 1 + random.Int64N(most),
			Window:      time.Duration(1+random.Int64N(60)) * time.Second,
			Algorithm:   algorithms[random.IntN(3)],
			CountDenied: random.IntN(3) == 0,
		})
	}
	return all
}

func randomAsks(random *rand.Rand, policies []*limit.Policy) (asks []limit.Ask) {
	for _, p := range policies[:1+random.IntN(3)] {
		// A log that counts denied calls drops those beyond the limit at different times.
		if random.IntN(10) == 0 && !(p.CountDenied && p.Algorithm == limit.Log) {
			changed := *p
			changed.Units = 1 + random.Int64N(20)
			p = &changed
		}
		asks = append(asks, limit.Ask{
			Policy: p, Key: limit.Key{byte(random.IntN(2))}, Cost: random.Int64N(p.Units + 2)})
	}
	return asks
}
