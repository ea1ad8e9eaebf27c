package redisstore_test

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
	"quotabudget/lua"
)

// A figure is the least of so many batches of so many calls: whatever else runs on the machine only
// adds to it.
const batches, batch = 8, 320

// figures prints what calls cost the server (commandstats), beside redis_rate on the same server in
// the same run.
type figures struct {
	*testing.B
	*env
	out *tabwriter.Writer
}

// BenchmarkLedger prints the figures of docs/benchmarks.md.
func BenchmarkLedger(b *testing.B) {
	f := &figures{b, openEnv(b, redistest.Start(b, redistest.Options{}).URL()),
		tabwriter.NewWriter(os.Stdout, 2, 8, 2, ' ', 0)}
	f.client.ConfigSet(b.Context(), "slowlog-log-slower-than", "500") // µs
	f.client.ConfigSet(b.Context(), "slowlog-max-len", "100000")
	for b.Loop() {
		f.run()
	}
	f.out.Flush()
}

func dayOf(units int64) quota.Limit {
	return quota.Limit{Bucket: "default", Units: units, Window: quota.Sliding(24 * time.Hour)}
}

// wide are two limits that nothing fills.
var wide = []quota.Limit{dayOf(quota.MaxUnits),
	{Bucket: "default", Units: quota.MaxUnits / 2, Window: quota.Sliding(time.Minute)}}

func charge(credential string, limits []quota.Limit, units int64) quota.Charge {
	return quota.Charge{Credential: credential, ID: quota.NewID(time.Now()), Limits: limits,
		Costs: []quota.Cost{{Bucket: "default", Units: units}},
		Labels: quota.Labels{"method": "youtube.videos.list", "region": "US", "job": "trending",
			"run": "5t1vgxr0wb"}}
}

func (f *figures) run() {
	f.fill("warm", 10_000)
	rate := f.serverTime(1, f.allowN())
	fmt.Fprintf(f.out, "\nserver time of one call (commandstats)\t\tagainst\n")
	row := func(name string, us, base float64, what string) {
		fmt.Fprintf(f.out, "%s\t%.1f µs\t%.2f × %s\n", name, us, us/base, what)
	}
	row("redis_rate AllowN", rate, rate, "redis_rate")
	alone := f.serverTime(1, f.charges("warm", wide, 1))
	for _, size := range []int{1, 4, 16, 64} {
		row(fmt.Sprintf("charge in a group of %d", size), f.serverTime(size,
			f.charges("warm", wide, size)), rate, "redis_rate")
	}
	f.fill("million", 1_000_000)
	f.fill("short", 10)
	short := f.serverTime(1, f.charges("short", wide, 1))
	row("charge with 1,000,000 logged", f.serverTime(1, f.charges("million", wide, 1)), short,
		"a short log")
	used, err := f.Usage(context.Background(), "warm", wide[:1])
	noError(f, err)
	row("denial of 1 to 100 units", f.serverTime(1, f.denials("warm",
		used.Buckets[0].Limits[0].Used)), rate, "redis_rate")
	row("hold and settlement", f.serverTime(1, f.settled("warm", 1)), alone, "a charge alone")
	row("hold and settlement, 16 callers", f.serverTime(16, f.settled("warm", 16)), alone,
		"a charge alone")
	for i := range 5000 {
		r := hold("held", "r"+strconv.Itoa(i), time.Hour+time.Duration(rand.Int64N(86400))*time.Second)
		setAside(f, f.env, r)
	}
	row("charge with 5,000 holds", f.serverTime(1, f.charges("held", wide, 1)), alone,
		"a charge alone")
	row("hold and settlement with 5,000 holds", f.serverTime(1, f.settled("held", 1)), alone,
		"a charge alone")
	f.throughput()
	f.memory()
	f.others("million")
	f.others("held")
	took, what := f.longest()
	fmt.Fprintf(f.out, "longest script or command\t%s\t%s\n", took, what)
}

// others makes the calls that no other figure measures.
func (f *figures) others(credential string) {
	ctx := context.Background()
	l := openEnv(f, "redis://"+f.client.(*redis.Client).Options().Addr) // has read nothing before
	c := charge(credential, wide, 1)
	noError(f, l.Cancel(ctx, c, allow(f, l, c)))
	noError(f, only(l.Reserve(ctx, hold(credential, "other", time.Hour))))
	noError(f, only(l.Release(ctx, quota.Release{Credential: credential,
		Reservation: quota.ReservationID("other", "default")})))
	noError(f, only(l.Usage(ctx, credential, wide)))
	noError(f, only(l.Sums(ctx, quota.SumQuery{Credential: credential, Bucket: "default"})))
	noError(f, only(l.Adjust(ctx, adjustOf(credential, -20))))
	noError(f, only(l.Ledger.Check(ctx, credential, "default", true)))
}

// serverTime returns the µs that the server spends on the scripts of one of size calls that are
// made together.
func (f *figures) serverTime(size int, call func()) float64 {
	least := math.Inf(1)
	for range batches {
		f.client.ConfigResetStat(context.Background())
		for range batch / size {
			call()
		}
		stats := f.client.Info(context.Background(), "commandstats").Val()
		_, after, _ := strings.Cut(stats, "cmdstat_evalsha:calls=")
		_, after, _ = strings.Cut(after, "usec=")
		text, _, _ := strings.Cut(after, ",")
		us, err := strconv.ParseFloat(text, 64)
		if err != nil {
			f.Fatal(stats)
		}
		least = min(least, us/float64(batch/size*size))
	}
	return least
}

// charges are made in one run of charge.lua.
func (f *figures) charges(credential string, limits []quota.Limit, size int) func() {
	return func() {
		group := make([]quota.Charge, size)
		for i := range group {
			group[i] = charge(credential, limits, 1)
		}
		decisions, err := f.store.ChargeTogether(context.Background(), group)
		for i, d := range decisions {
			if err == nil && d == nil { // the first of the hour
				err = only(f.Charge(context.Background(), group[i]))
			}
		}
		noError(f, err)
	}
}

func (f *figures) denials(credential string, limit int64) func() {
	return func() {
		d, err := f.Charge(context.Background(), charge(credential, []quota.Limit{dayOf(limit)},
			1+rand.Int64N(100)))
		if err != nil || d.Allowed {
			f.Fatal(d, err)
		}
	}
}

// hold is an estimate that is charged if it lapses.
func hold(credential, id string, ttl time.Duration) quota.Reserve {
	return quota.Reserve{Credential: credential, ID: quota.ReservationID(id, "default"), TTL: ttl,
		Limits: wide, Costs: []quota.Cost{{Bucket: "default", Units: 50, Most: 100}},
		Lapse: quota.LapseCharge, Labels: charge(credential, wide, 1).Labels}
}

// settled holds and settles, as so many callers at once.
func (f *figures) settled(credential string, callers int) func() {
	return func() {
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				r := hold(credential, quota.NewID(time.Now()), time.Hour)
				d, err := f.Reserve(context.Background(), r)
				if err == nil && d.Allowed {
					_, err = f.Settle(context.Background(), quota.Settle{Credential: credential,
						Reservation: r.ID, ID: quota.NewID(time.Now()), Labels: r.Labels, Once: true,
						Costs: []quota.Cost{{Bucket: "default", Units: 40}}})
				}
				if err != nil || !d.Allowed {
					f.Error(d, err)
				}
			})
		}
		all.Wait()
	}
}

func (f *figures) allowN() func() {
	limiter := redis_rate.NewLimiter(f.client)
	limit := redis_rate.Limit{Rate: 1e6, Burst: 1e9, Period: time.Hour}
	return func() {
		if r, err := limiter.AllowN(context.Background(), "allow", limit, 1); err != nil ||
			r.Allowed == 0 {
			panic(fmt.Sprint(r, err))
		}
	}
}

// fill logs entries of 1 to 100 units over the last 20 hours, as charges would have.
func (f *figures) fill(credential string, n int) {
	ctx := context.Background()
	f.charges(credential, wide, 1)() // writes the state
	key := "quota:{" + credential + "}:default:log"
	f.client.ZRemRangeByRank(ctx, key, 0, -1)
	now, total := time.Now().UnixMicro(), int64(0)
	pipe := f.client.Pipeline()
	for i := range n {
		units := 1 + rand.Int64N(100)
		total += units
		at := now - int64(n-i)*(20*3600*1_000_000/int64(n))
		pipe.ZAdd(ctx, key, redis.Z{Score: float64(at), Member: fmt.Sprintf("%d:%d:%s:%s", total, units,
			quota.NewID(time.Now()), charge(credential, wide, 1).Labels.Encode())})
		if i%10_000 == 9_999 || i == n-1 {
			noError(f, only(pipe.Exec(ctx)))
		}
	}
}

// throughput prints the charges a second of 20 callers of one process. Each figure is the median of
// rounds in turn.
func (f *figures) throughput() {
	calls := []func(){f.allowN(), func() { allow(f, f.env, charge("throughput", wide, 1)) }}
	seconds := make([][]float64, len(calls))
	for range 5 {
		for i, call := range calls {
			began := time.Now()
			var all sync.WaitGroup
			for range 20 {
				all.Go(func() {
					for range 500 {
						call()
					}
				})
			}
			all.Wait()
			seconds[i] = append(seconds[i], time.Since(began).Seconds())
		}
	}
	for i := range seconds {
		slices.Sort(seconds[i])
	}
	rate, ours := seconds[0][2], seconds[1][2]
	fmt.Fprintf(f.out, "20 callers of one process\t%.0f/s\t%.2f × redis_rate's\n", 10_000/ours,
		rate/ours)
}

// memory prints what 10,000 charges take.
func (f *figures) memory() {
	const n = 10_000
	for range n / 50 {
		f.charges("memory", wide, 50)()
	}
	var bytes int64
	for _, key := range f.client.Keys(context.Background(), "quota:{memory}:*").Val() {
		bytes += f.client.MemoryUsage(context.Background(), key, 0).Val()
	}
	fmt.Fprintf(f.out, "memory of a charge with its labels\t%d bytes\t\n", bytes/n)
}

// longest returns the longest time for which the ledger occupied the server, by its slow log, and
// with what. The other commands there are the benchmark's own.
func (f *figures) longest() (most time.Duration, what string) {
	logged, err := f.client.SlowLogGet(context.Background(), -1).Result()
	noError(f, err)
	names := make(map[string]string) // of scripts, by their hashes
	for _, name := range lua.Names {
		names[redis.NewScript(lua.Source(name)).Hash()] = name + ".lua"
	}
	own := []string{"ZADD", "ZREMRANGEBYRANK", "INFO", "CONFIG", "KEYS", "MEMORY", "SLOWLOG"}
	for _, entry := range logged {
		command := strings.ToUpper(entry.Args[0])
		if command == "EVALSHA" {
			command = names[entry.Args[1]] // "" for redis_rate's
		}
		if entry.Duration > most && command != "" && !slices.Contains(own, command) {
			most, what = entry.Duration, command
		}
	}
	return most, what
}
