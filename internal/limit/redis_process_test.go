package limit_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/limit"
)

// TestMain turns the test binary into the process that TestProcesses starts.
func TestMain(m *testing.M) {
	if addr := os.Getenv("LIMIT_TEST_REDIS"); addr != "" {
		if err := hammer(addr); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		return
	}
	os.Exit(m.Run())
}

var shared = &limit.Policy{
	Name: "shared", Units: 50, Window: 300 * time.Millisecond, Algorithm: limit.Log}

// hammer charges until its standard input ends, and prints the stamp and cost of each allowed
// charge.
func hammer(addr string) error {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		bufio.NewReader(os.Stdin).ReadByte()
		cancel()
	}()
	client := redis.NewClient(&redis.Options{Addr: addr})
	defer client.Close()
	store := limit.NewRedis(client)
	for ctx.Err() == nil {
		asks := []limit.Ask{{Policy: shared, Cost: 1 + rand.Int64N(9)}}
		allowed, err := store.Take(context.Background(), asks)
		if err != nil {
			return err
		}
		if allowed { // the stamp is one window before everything is free again
			d := asks[0].Decision
			fmt.Println(d.At+(d.ResetAfter-shared.Window).Microseconds(), asks[0].Cost)
		}
	}
	return nil
}

// TestProcesses: four processes share a limit while the server's clock jumps. By the stamps of
// the allowed charges, no window exceeds it.
func TestProcesses(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{Clock: true})
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	server.SetNow(t, now)
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var outputs []*strings.Builder
	var ends []func() error
	for range 4 {
		cmd := exec.Command(exe)
		cmd.Env = append(os.Environ(), "LIMIT_TEST_REDIS="+server.Addr, "GORACE=atexit_sleep_ms=0")
		var out strings.Builder
		cmd.Stdout, cmd.Stderr = &out, os.Stderr
		in, err := cmd.StdinPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		outputs = append(outputs, &out)
		ends = append(ends, func() error { in.Close(); return cmd.Wait() })
	}
	random := rand.New(rand.NewPCG(1, 1))
	believed := now // a jump forward counts: what has left the window by then stays gone
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	defer client.Close()
	for deadline := time.Now().Add(time.Minute); client.DBSize(t.Context()).Val() == 0; {
		if time.Now().After(deadline) {
			t.Fatal("no process has charged anything")
		}
		time.Sleep(10 * time.Millisecond)
	}
	for i := range 800 {
		switch random.IntN(100) {
		case 0, 1:
			now = now.Add(-time.Duration(random.Int64N(int64(time.Second))))
			if now.Before(believed) {
				now = believed
			}
		case 2:
			now = now.Add(time.Duration(random.Int64N(int64(2 * time.Second))))
			believed = now
		default:
			now = now.Add(time.Duration(random.Int64N(int64(20 * time.Millisecond))))
		}
		server.SetNow(t, now)
		for range 20 { // gives the processes time to run
			if err := client.Ping(t.Context()).Err(); err != nil {
				t.Fatalf("%d: %v", i, err)
			}
		}
	}
	type charge struct{ at, units int64 }
	var all []charge
	processes := 0
	for i, end := range ends {
		if err := end(); err != nil {
			t.Fatal(err)
		}
		before := len(all)
		for line := range strings.Lines(outputs[i].String()) {
			var c charge
			if _, err := fmt.Sscan(line, &c.at, &c.units); err != nil {
				t.Fatal(err)
			}
			all = append(all, c)
		}
		if len(all) > before {
			processes++
		}
	}
	slices.SortFunc(all, func(a, b charge) int { return int(a.at - b.at) })
	oldest, sum, most := 0, int64(0), int64(0)
	for _, c := range all {
		sum += c.units
		for ; all[oldest].at <= c.at-shared.Window.Microseconds(); oldest++ {
			sum -= all[oldest].units
		}
		most = max(most, sum)
	}
	t.Logf("%d charges by %d processes, at most %d in a window", len(all), processes, most)
	if most > shared.Units || most < shared.Units-9 || len(all) < 50 || processes < 2 {
		t.Errorf("%d charges by %d processes, at most %d of %d in a window",
			len(all), processes, most, shared.Units)
	}
}
