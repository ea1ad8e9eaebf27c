package redisledger

import (
	"context"
	_ "embed"
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
)

// perUnit is the sliding log of the usual articles: one member for each unit.
//
//go:embed testdata/per_unit.lua
var perUnit string

// BenchmarkLedger prints what a charge costs the server beside the per-unit log, redis_rate and an
// empty script, all on one server in one run. The README's figures come from it.
func BenchmarkLedger(b *testing.B) { benchmark(b, (*figures).run) }

// BenchmarkReservations prints what a charge costs the server beside open reservations.
func BenchmarkReservations(b *testing.B) { benchmark(b, (*figures).reservations) }

func benchmark(b *testing.B, run func(*figures)) {
	l, err := Open(context.Background(), redistest.Start(b, redistest.Options{}).URL())
	if err != nil {
		b.Fatal(err)
	}
	defer l.Close()
	f := &figures{B: b, l: l, client: l.client}
	f.out = tabwriter.NewWriter(os.Stdout, 2, 8, 2, ' ', 0)
	for b.Loop() {
		run(f)
	}
	f.out.Flush()
}

// A figure is the least of so many batches of so many calls: whatever else runs on the machine only
// adds to it.
const batches, batch = 10, 1000

// kind is a kind of call, and how the server time of one becomes the figure.
type kind struct {
	call func(i int)
	of   float64 // 1, or what a call is to be multiplied by
}

type figures struct {
	*testing.B
	l      *Ledger
	client redis.UniversalClient
	out    *tabwriter.Writer
}

func day(units int64) quota.Limit {
	return quota.Limit{Bucket: "default", Units: units, Window: quota.Sliding(24 * time.Hour)}
}

var wide = []quota.Limit{day(quota.MaxUnits)}

// row compares two kinds of calls, in batches that alternate.
func (f *figures) row(name string, one, other kind) {
	least := [2]float64{math.Inf(1), math.Inf(1)}
	for n := range batches {
		for i, k := range []kind{one, other} {
			least[i] = min(least[i], k.of*f.serverTime(n*batch, k.call))
		}
	}
	fmt.Fprintf(f.out, "%s\t%.2f µs\t%.2f ×\n", name, least[0], least[0]/least[1])
}

func (f *figures) run() {
	f.fill("warm", 1000) // beyond the size at which Redis keeps a set as a list
	one, rate := f.charges("warm", wide, 1), f.allowN(true)
	fmt.Fprintf(f.out, "\nserver time of one call (commandstats)\t\tratio\n")
	f.row("empty script, against redis_rate", kind{f.script("return 1", "e"), 1}, rate)
	f.row("redis_rate AllowN, allowed", rate, rate)
	for _, units := range []int64{1, 100, 1600} {
		charge := f.charges("warm", wide, units)
		f.row(fmt.Sprintf("charge of %d, against redis_rate", units), charge, rate)
		f.row(fmt.Sprintf("one member per unit, %d units, against the charge", units),
			f.articles(units), charge)
	}
	for _, logged := range []int{200, 10_000, 1_000_000} {
		name := "logged" + strconv.Itoa(logged)
		f.fill(name, logged)
		f.row(fmt.Sprintf("charge with %d logged, against a short log", logged),
			f.charges(name, wide, 1), one)
	}
	zone, _ := time.LoadLocation("America/Los_Angeles")
	three := []quota.Limit{day(quota.MaxUnits), day(quota.MaxUnits), day(quota.MaxUnits / 2)}
	three[1].Window = quota.Window{Calendar: "day", Zone: zone}
	three[2].Window = quota.Sliding(time.Minute)
	f.fill("three", 1000)
	f.row("charge under a limit of 24 hours and the same of a day, against redis_rate",
		f.charges("three", three[:2], 1), rate)
	f.row("charge under these and fewer units a minute, against redis_rate",
		f.charges("three", three, 1), rate)
	falling := slices.Clone(three)
	falling[1].Units = quota.MaxUnits / 4 * 3
	f.row("charge under three limits, each of fewer units, against redis_rate",
		f.charges("three", falling, 1), rate)
	mixed := f.full("mixed", func(int) int64 { return 1 + rand.Int64N(100) }, 10_000)
	skewed := f.full("skewed", func(i int) int64 { return 1 + int64(i/5000)*1599 }, 5050)
	f.row("denial of 1 to 100 units with 10,000 mixed entries, against redis_rate",
		f.denials("mixed", mixed, 100), rate)
	f.row("denial of up to half the limit, against redis_rate",
		f.denials("mixed", mixed, mixed/2), rate)
	f.row("denial of 1 to 100 units with 5,000 of 1 and then 50 of 1,600, against redis_rate",
		f.denials("skewed", skewed, 100), rate)
	f.row("denial of up to half the limit, against redis_rate",
		f.denials("skewed", skewed, skewed/2), rate)
	f.row("(redis_rate's own denial, which is not exact)", f.allowN(false), rate)
	f.sums()
	f.memory()
}

// settled is a group of holds, and one of their settlements, which do not ask what remains, and whose
// answers are not kept, as the proxy's are not.
func (f *figures) settled(credential string, size int) kind {
	return kind{of: 2 / float64(size), call: func(int) {
		var holds, ends []*operation
		for i := range size {
			r := hold(credential, quota.NewID(time.Now()), time.Hour)
			s := quota.Settle{Credential: credential, Reservation: r.ID, ID: quota.NewID(time.Now()),
				Costs: []quota.Cost{{Bucket: "default", Units: 1 + int64(i%99)}}, Labels: r.Labels,
				Once: true}
			holds = append(holds, asking(f.l.coded(reserving(r)), f.l.now()))
			q := settling(s)
			q.label = f.l.told.code(q.audience(), q.label)
			ends = append(ends, asking(q, f.l.now()))
		}
		f.l.send(context.Background(), holds)
		f.l.sendSettlements(context.Background(), ends)
		for i, o := range slices.Concat(holds, ends) {
			if o.Work.err != nil || o.Work.reply.status() != allowed {
				panic(fmt.Sprint(i, o.Work.reply, o.Work.err))
			}
		}
	}}
}

// hold is an estimate that is charged if it lapses.
func hold(credential, id string, ttl time.Duration) quota.Reserve {
	return quota.Reserve{
		Credential: credential, ID: quota.ReservationID(id, "default"), TTL: ttl, Limits: wide,
		Costs: []quota.Cost{{Bucket: "default", Units: 50, Most: 100}}, Lapse: quota.LapseCharge,
		Labels: charge(credential, wide, 1).Labels,
	}
}

// holds settles what was held, and charges beside holds that become entries when they lapse.
func (f *figures) holds() {
	none := f.charges("warm", wide, 1)
	// Sent as they are, past the queue: the server is faster when calls follow each other at once.
	alone := kind{func(int) { f.group("warm", 1) }, 1}
	f.row("hold and settlement, against a charge", f.settled("warm", 1), alone)
	for _, size := range []int{4, 16} {
		f.row(fmt.Sprintf("hold and settlement in groups of %d, against a charge alone", size),
			f.settled("warm", size), alone)
	}
	f.fill("lapsing", 1000)
	for i := range 5000 {
		ttl := time.Hour + time.Duration(rand.Int64N(24*3600))*time.Second
		r := hold("lapsing", "r"+strconv.Itoa(i), ttl)
		if d, err := f.l.Reserve(context.Background(), r); err != nil || !d.Allowed {
			f.Fatal(d, err)
		}
	}
	f.row("charge beside 5000 holds that are charged when they lapse, against none",
		f.charges("lapsing", wide, 1), none)
	f.row("hold and settlement beside them, against a charge beside none",
		f.settled("lapsing", 1), alone)
}

// reservations charges beside open reservations, and is denied beside them, against charges beside
// none.
func (f *figures) reservations() {
	f.fill("warm", 1000) // beyond the size at which Redis keeps a set as a list
	fmt.Fprintf(f.out, "\nserver time of one call (commandstats)\t\tratio\n")
	for _, open := range []int{1, 100, 5000} {
		name := "open" + strconv.Itoa(open)
		f.fill(name, 1000)
		for i := range open {
			d, err := f.l.Reserve(context.Background(), quota.Reserve{
				Credential: name, ID: "default.r" + strconv.Itoa(i), Limits: wide,
				Costs: []quota.Cost{{Bucket: "default", Units: 1 + rand.Int64N(100)}},
				TTL:   time.Hour + time.Duration(rand.Int64N(24*3600))*time.Second,
			})
			if err != nil || !d.Allowed {
				f.Fatal(d, err)
			}
		}
		none := f.charges("warm", wide, 1)
		f.row(fmt.Sprintf("charge beside %d open reservations, against none", open),
			f.charges(name, wide, 1), none)
		used, _ := f.l.Usage(context.Background(), name, wide)
		full := used.Buckets[0].Limits[0].Used + used.Buckets[0].Held
		f.row(fmt.Sprintf("denial of 1 to 100 units beside %d, against a charge beside none", open),
			f.denials(name, full, 100), none)
	}
	f.holds()
}

func charge(credential string, limits []quota.Limit, units int64) quota.Charge {
	return quota.Charge{
		Credential: credential, ID: quota.NewID(time.Now()),
		Costs: []quota.Cost{{Bucket: "default", Units: units}}, Limits: limits,
		Labels: quota.Labels{
			"method": "youtube.videos.list", "region": "US", "job": "trending", "run": "5t1vgxr0wb",
		},
	}
}

// denials asks for 1 to most units where limit is used up.
func (f *figures) denials(credential string, limit, most int64) kind {
	limits := []quota.Limit{day(limit)}
	return f.decided(false, func() quota.Charge {
		return charge(credential, limits, 1+rand.Int64N(most))
	})
}

func (f *figures) charges(credential string, limits []quota.Limit, units int64) kind {
	return f.decided(true, func() quota.Charge { return charge(credential, limits, units) })
}

// decided is charges that are all allowed, or all denied.
func (f *figures) decided(allowed bool, next func() quota.Charge) kind {
	return kind{of: 1, call: func(int) {
		d, err := f.alone(charging(next()))
		if err != nil || d.Allowed != allowed {
			panic(fmt.Sprint(d, err))
		}
	}}
}

// alone asks in no group, whoever else asks.
func (f *figures) alone(r request) (quota.Decision, error) {
	group := []*operation{asking(f.l.coded(r), f.l.now())}
	f.l.send(context.Background(), group)
	if err := group[0].Work.err; err != nil {
		return quota.Decision{}, err
	}
	return f.l.answered(context.Background(), &group[0].Work.request, group[0].Work.reply)
}

// serverTime is the µs that the server spends on a script of a batch, whose calls are numbered from
// first. Four clients call at once, so that the server is never idle: waking up would be most of
// what is measured.
func (f *figures) serverTime(first int, call func(i int)) float64 {
	ctx := context.Background()
	f.client.ConfigResetStat(ctx)
	var wg sync.WaitGroup
	for client := range 4 {
		wg.Go(func() {
			for i := client; i < batch; i += 4 {
				call(first + i)
			}
		})
	}
	wg.Wait()
	info := parseInfo(f.client.Info(ctx, "commandstats").Val())
	_, after, _ := strings.Cut(info["cmdstat_evalsha"], "usec_per_call=")
	text, _, _ := strings.Cut(after, ",")
	us, err := strconv.ParseFloat(text, 64)
	if err != nil {
		f.Fatal(info)
	}
	return us
}

func median(v []float64) float64 {
	slices.Sort(v)
	return v[len(v)/2]
}

func (f *figures) script(source, key string, args ...any) func(int) {
	s := redis.NewScript(source)
	return func(int) {
		if err := s.Run(context.Background(), f.client, []string{key}, args...).Err(); err != nil {
			panic(err)
		}
	}
}

func (f *figures) allowN(allow bool) kind {
	limiter := redis_rate.NewLimiter(f.client)
	limit := redis_rate.Limit{Rate: 1e6, Burst: 1e9, Period: time.Hour}
	if !allow {
		limit = redis_rate.Limit{Rate: 1, Burst: 1, Period: time.Hour}
		limiter.AllowN(context.Background(), "deny", limit, 1)
	}
	key := map[bool]string{true: "allow", false: "deny"}[allow]
	return kind{of: 1, call: func(int) {
		r, err := limiter.AllowN(context.Background(), key, limit, 1)
		if err != nil || (r.Allowed > 0) != allow {
			panic(fmt.Sprint(r, err))
		}
	}}
}

// articles charges on the per-unit log, emptied each time: with more in it, it would only be
// slower.
func (f *figures) articles(units int64) kind {
	s, ctx, keys := redis.NewScript(perUnit), context.Background(), []string{"article"}
	window := (24 * time.Hour).Microseconds()
	return kind{of: 1, call: func(int) {
		id := quota.NewID(time.Now())
		if err := s.Run(ctx, f.client, keys, window, 10_000, units, id).Err(); err != nil {
			panic(err)
		}
		f.client.Del(ctx, keys...)
	}}
}

// full is the limit that a log of entries uses up.
func (f *figures) full(credential string, units func(i int) int64, n int) int64 {
	f.log(credential, units, n)
	f.l.Charge(context.Background(), charge(credential, wide, 1)) // writes the state
	used, err := f.l.Usage(context.Background(), credential, wide)
	if err != nil {
		f.Fatal(err)
	}
	return used.Buckets[0].Limits[0].Used
}

// fill logs entries of 1 to 100 units.
func (f *figures) fill(credential string, n int) {
	f.log(credential, func(int) int64 { return 1 + rand.Int64N(100) }, n)
}

// log logs entries over the last 20 hours, as charges would have.
func (f *figures) log(credential string, size func(i int) int64, n int) {
	ctx := context.Background()
	now := time.Now().UnixMicro()
	var total int64
	pipe := f.client.Pipeline()
	for i := range n {
		units := size(i)
		total += units
		at := now - int64(n-i)*(20*3600*1_000_000/int64(n))
		entry := member{total: total, units: units, id: quota.NewID(time.Now()), mark: "abcd",
			packed: true}
		pipe.ZAdd(ctx, logKey(credential, "default"),
			redis.Z{Score: float64(at), Member: entry.String()})
		if i%10_000 == 9_999 {
			pipe.Exec(ctx)
		}
	}
	if _, err := pipe.Exec(ctx); err != nil {
		f.Fatal(err)
	}
}

// memory is what 10,000 charges take: their log, with what it shares.
func (f *figures) memory() {
	ctx := context.Background()
	for _, units := range []int64{1, 1600} {
		name := fmt.Sprintf("memory%d", units)
		const n = 10_000
		for range n {
			f.l.Charge(ctx, charge(name, wide, units))
		}
		var bytes int64
		for _, key := range keysOf(name, "default")[:3] {
			used, err := f.client.MemoryUsage(ctx, key, 0).Result()
			if err != nil {
				panic(err)
			}
			bytes += used
		}
		fmt.Fprintf(f.out, "memory of a charge of %d with its labels\t%d bytes\n", units, bytes/n)
	}
}
