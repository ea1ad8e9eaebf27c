package redisledger

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
)

// BenchmarkLedgerGroups prints what a charge costs the server when several are decided in one call,
// and how many charges a second 20 callers of one process make, beside redis_rate and an empty
// script.
func BenchmarkLedgerGroups(b *testing.B) {
	benchmark(b, func(f *figures) {
		f.fill("warm", 1000)
		f.groups()
		f.throughput()
	})
}

// groups charges in groups of a given size.
func (f *figures) groups() {
	fmt.Fprintf(f.out, "\nserver time of one charge (commandstats)\t\tratio\n")
	f.charges("warm", wide, 1).call(0) // the server knows the labels
	for _, size := range []int{1, 4, 16, 64} {
		groups := kind{func(int) { f.group("warm", size) }, 1 / float64(size)}
		f.row(fmt.Sprintf("charge in a group of %d, against redis_rate", size), groups,
			f.allowN(true))
	}
}

func (f *figures) group(credential string, size int) {
	group := make([]*operation, size)
	for i := range group {
		group[i] = asking(f.l.coded(charging(charge(credential, wide, 1))), f.l.now())
	}
	f.l.send(context.Background(), group)
	for _, o := range group {
		if o.Work.err != nil || o.Work.reply.status() != allowed {
			f.Fatal(o.Work.reply, o.Work.err)
		}
	}
}

// throughput is of callers of one process on one credential. Each figure is the median of rounds in
// which all kinds take turns.
func (f *figures) throughput() {
	limiter := redis_rate.NewLimiter(f.client)
	limit := redis_rate.Limit{Rate: 1e6, Burst: 1e9, Period: time.Hour}
	run := f.script("return 1", "e")
	calls := []func(){
		func() { run(0) },
		func() {
			if _, err := limiter.AllowN(context.Background(), "throughput", limit, 1); err != nil {
				panic(err)
			}
		},
		func() {
			d, err := f.l.Charge(context.Background(), charge("throughput", wide, 1))
			if err != nil || !d.Allowed {
				panic(fmt.Sprint(d, err))
			}
		},
	}
	for _, callers := range []int{1, 20} {
		seconds := make([][]float64, len(calls))
		for range 5 {
			for i, call := range calls {
				seconds[i] = append(seconds[i], timed(callers, 10_000/callers, call))
			}
		}
		empty, rate, ours := median(seconds[0]), median(seconds[1]), median(seconds[2])
		fmt.Fprintf(f.out, "%d callers of one process\t%.0f/s\t%.2f × redis_rate's, %.2f × an "+
			"empty script's, %.0f µs a charge\n", callers, 10_000/ours, rate/ours, empty/ours,
			ours*1e6*float64(callers)/10_000)
	}
}

// timed is how long so many callers take for so many calls each.
func timed(callers, each int, call func()) float64 {
	var wg sync.WaitGroup
	start := time.Now()
	for range callers {
		wg.Go(func() {
			for range each {
				call()
			}
		})
	}
	wg.Wait()
	return time.Since(start).Seconds()
}
