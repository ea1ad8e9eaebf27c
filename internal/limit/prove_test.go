package limit_test

import (
	"context"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/limit"
)

func all(t *testing.T, s limit.Stage) *limit.Proof {
	t.Helper()
	r, err := limit.Prove(t.Context(), s, "all", 1)
	must(t, err)
	return r
}

func sqlite(t *testing.T) limit.Stage {
	t.Helper()
	l, err := ledger.OpenFile(t.Context(), filepath.Join(t.TempDir(), "ledger.db"))
	must(t, err)
	t.Cleanup(func() { l.Close() })
	var now time.Time
	l.Now = func() time.Time { return now }
	return limit.LedgerStage("sqlite", l, func(at time.Time) { now = at })
}

// onRedis opens a stage whose readings of the server's clock take a while, as on a busy machine.
func onRedis(t *testing.T) limit.Stage {
	t.Helper()
	server := redistest.Start(t, redistest.Options{})
	client := redis.NewClient(&redis.Options{Addr: server.Addr})
	t.Cleanup(func() { client.Close() })
	return limit.RedisStage(limit.NewRedis(client), somebody,
		func(ctx context.Context) (time.Time, error) {
			now, err := client.Time(ctx).Result()
			for at := now; err == nil && at.Before(now.Add(50*time.Millisecond)); {
				at, err = client.Time(ctx).Result()
			}
			return now, err
		})
}

func TestStages(t *testing.T) {
	for name, open := range map[string]func(*testing.T) limit.Stage{
		"memory": func(*testing.T) limit.Stage { return limit.MemoryStage() },
		"sqlite": sqlite, "redis": onRedis,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := all(t, open(t))
			t.Logf("%+v %+v", r.Boundary, r.Retry)
			if !r.Kept || r.Retry.Denials == 0 || len(r.Traffic) != 3 {
				t.Errorf("%+v %+v %+v", r.Boundary, r.Retry, r.Traffic)
			}
			// On Redis the calls take real time, and on a slow machine some cross the boundary.
			if b := r.Boundary; name != "redis" && (b.Fixed != 100 || b.Log != 50) {
				t.Errorf("%+v", b)
			}
			t.Logf("%+v", r.Traffic)
		})
	}
}

// TestBrokenPromises: Judge rejects a log that counts in fixed windows, and waits that are a
// microsecond too long or too short.
func TestBrokenPromises(t *testing.T) {
	for name, wrong := range map[string]func(takeFunc) takeFunc{
		"fixed": func(real takeFunc) takeFunc {
			return func(ctx context.Context, p *limit.Policy, at time.Time,
				cost int64) (limit.Decision, error) {
				fixed := *p
				fixed.Algorithm = limit.Fixed
				return real(ctx, &fixed, at, cost)
			}
		},
		"late":  wait(time.Microsecond),
		"early": wait(-time.Microsecond),
	} {
		s := limit.MemoryStage()
		s.Take = wrong(s.Take)
		r := all(t, s)
		if r.Kept {
			t.Errorf("%s: kept: %+v %+v", name, r.Boundary, r.Retry)
		}
		if name != "fixed" && r.Retry.Early+r.Retry.Late != r.Retry.Denials {
			t.Errorf("%s: %+v", name, r.Retry)
		}
	}
}

// takeFunc is the type of Stage.Take.
type takeFunc = func(context.Context, *limit.Policy, time.Time, int64) (limit.Decision, error)

// wait returns a function that lengthens the promised waits.
func wait(more time.Duration) func(takeFunc) takeFunc {
	return func(real takeFunc) takeFunc {
		return func(ctx context.Context, p *limit.Policy, at time.Time,
			cost int64) (limit.Decision, error) {
			d, err := real(ctx, p, at, cost)
			if !d.Allowed {
				d.RetryAfter += more
			}
			return d, err
		}
	}
}
