package limit_test

import (
	"context"
	"fmt"
	"math"
	"os"
	"regexp"
	"slices"
	"strconv"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/limit"
)

// BenchmarkLimiter compares the server time of a decision with redis_rate's, on the same server.
// Each measurement is paired with ones of redis_rate just before and after.
func BenchmarkLimiter(b *testing.B) {
	server := redistest.Start(b, redistest.Options{})
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	store := limit.NewRedis(client)
	out := tabwriter.NewWriter(os.Stdout, 2, 8, 2, ' ', 0)
	ctx := context.Background()
	rate := redis_rate.NewLimiter(client)
	allowN := func() {
		limit := redis_rate.Limit{Rate: 1e6, Burst: 1e9, Period: time.Hour}
		if r, err := rate.AllowN(ctx, "bench", limit, 1); err != nil || r.Allowed != 1 {
			panic(fmt.Sprint(r, err))
		}
	}
	take := func(algorithms ...limit.Algorithm) func() {
		var policies []*limit.Policy
		for i, algorithm := range algorithms {
			policies = append(policies, &limit.Policy{
				Name: fmt.Sprint("bench", i), Units: 1e6, Window: time.Hour, Algorithm: algorithm})
		}
		return func() {
			asks := make([]limit.Ask, len(policies))
			for i, p := range policies {
				asks[i] = limit.Ask{Policy: p, Cost: 1}
			}
			if allowed, err := store.Take(ctx, asks); err != nil || !allowed {
				panic(fmt.Sprint(asks, err))
			}
		}
	}
	for b.Loop() {
		fmt.Fprintf(out, "\nserver time of one call (commandstats)\t\tratio\n")
		counter := take(limit.Counter)
		for _, algorithm := range []limit.Algorithm{limit.Counter, limit.Fixed, limit.Log} {
			ours, theirs := pair(b, client, take(algorithm), allowN)
			fmt.Fprintf(out, "%s, against redis_rate AllowN\t%.1f µs\t%.2f ×\n", algorithm, ours,
				ours/theirs)
		}
		three, one := pair(b, client,
			take(limit.Counter, limit.Counter, limit.Counter), counter)
		fmt.Fprintf(out, "three counters in one call, against one\t%.1f µs\t%.2f ×\n", three,
			three/one)
		three, one = pair(b, client, take(limit.Log, limit.Log, limit.Log),
			take(limit.Log))
		fmt.Fprintf(out, "three logs in one call, against one\t%.1f µs\t%.2f ×\n", three, three/one)
		wall, single := roundTrips(
			take(limit.Counter, limit.Counter, limit.Counter), counter)
		fmt.Fprintf(out, "the same three counters, round trip\t%.0f µs\t%.2f ×\n", wall,
			wall/single)
		for _, callers := range []int{1, 20, 64} {
			ours, theirs := throughput(callers, counter, allowN)
			fmt.Fprintf(out, "%d callers of one process: counters, against redis_rate's calls\t"+
				"%.0f/s\t%.2f ×\n", callers, ours, ours/theirs)
		}
	}
	out.Flush()
}

// pair returns the server time of two calls, each the minimum over alternating batches, because
// other load can only add to it.
func pair(b *testing.B, client *redis.Client, one, other func()) (ours, theirs float64) {
	ours, theirs = math.Inf(1), math.Inf(1)
	for range 15 {
		theirs = min(theirs, serverTime(b, client, other))
		ours = min(ours, serverTime(b, client, one))
	}
	return ours, theirs
}

var perCall = regexp.MustCompile(`cmdstat_evalsha:.*usec_per_call=([0-9.]+)`)

// serverTime returns the server's µs per call. Four clients call at once to keep the server busy.
func serverTime(b *testing.B, client *redis.Client, call func()) float64 {
	ctx := context.Background()
	call()
	client.ConfigResetStat(ctx)
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for range 250 {
				call()
			}
		})
	}
	all.Wait()
	found := perCall.FindStringSubmatch(client.Info(ctx, "commandstats").Val())
	if found == nil {
		b.Fatal("the server has no statistics")
	}
	us, _ := strconv.ParseFloat(found[1], 64)
	return us
}

// throughput returns the calls per second of the given number of callers, as medians of
// alternating rounds.
func throughput(callers int, one, other func()) (ours, theirs float64) {
	const calls = 10_000
	var all [2][]float64
	for range 7 {
		for i, call := range []func(){one, other} {
			var wg sync.WaitGroup
			began := time.Now()
			for range callers {
				wg.Go(func() {
					for range calls / callers {
						call()
					}
				})
			}
			wg.Wait()
			all[i] = append(all[i], calls/time.Since(began).Seconds())
		}
	}
	slices.Sort(all[0])
	slices.Sort(all[1])
	return all[0][3], all[1][3]
}

// roundTrips returns the µs of two calls of a single client, as medians of alternating calls.
func roundTrips(one, other func()) (ours, theirs float64) {
	var all [2][]float64
	for range 5000 {
		for i, call := range []func(){one, other} {
			began := time.Now()
			call()
			all[i] = append(all[i], float64(time.Since(began).Nanoseconds())/1000)
		}
	}
	slices.Sort(all[0])
	slices.Sort(all[1])
	return all[0][2500], all[1][2500]
}
