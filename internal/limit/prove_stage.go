package limit

import (
	"context"
	"time"

	"quotabudget/internal/quota"
)

// Stage is a store on which scenes are played.
type Stage struct {
	On      string        // name of the store
	Window  time.Duration // window of the limits
	Windows int           // duration of a traffic scene, in windows
	Denials int           // number of denied calls to retry
	Around  time.Duration // calls are made this long before and after a boundary
	// Early is how long before the promised time a denied call is retried. With Waits, the stage
	// runs in real time and the call is retried until that time.
	Early time.Duration
	Waits bool
	// Begin returns the beginning of a window of the clock. A scene's moments count from it.
	Begin func(ctx context.Context) (time.Time, error)
	// Take charges a cost at a moment, which never goes back. A cost of 0 only reads.
	Take func(ctx context.Context, p *Policy, at time.Time,
		cost int64) (Decision, error)
}

// MemoryStage returns the limiter in memory, in simulated time.
func MemoryStage() Stage {
	m := NewMemory()
	return Stage{
		On: "memory", Window: time.Minute, Windows: 200, Denials: 400, Early: time.Microsecond,
		Around: 3 * time.Second,
		Begin: func(context.Context) (time.Time, error) {
			return time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), nil
		},
		Take: func(_ context.Context, p *Policy, at time.Time,
			cost int64) (Decision, error) {
			asks := []Ask{{Policy: p, Cost: cost}}
			m.TakeAt(at.UnixMicro(), asks)
			return asks[0].Decision, nil
		},
	}
}

type charger interface {
	Charge(ctx context.Context, c quota.Charge) (quota.Decision, error)
}

// LedgerStage returns a stage on a ledger whose clock can be set, such as a SQLite file's. The
// ledger only runs the log; the other algorithms run in memory at the same moments.
func LedgerStage(name string, l charger, setNow func(time.Time)) Stage {
	s := MemoryStage()
	memory := s.Take
	s.On, s.Windows, s.Denials = name, 5, 40
	s.Take = func(ctx context.Context, p *Policy, at time.Time,
		cost int64) (Decision, error) {
		if p.Algorithm != Log {
			return memory(ctx, p, at, cost)
		}
		setNow(at)
		d, err := l.Charge(ctx, quota.Charge{
			Credential: "prove", ID: quota.NewID(at),
			Costs: []quota.Cost{{Bucket: p.Name, Units: cost}},
			Limits: []quota.Limit{{Bucket: p.Name, Units: p.Units,
				Window: quota.Sliding(p.Window)}},
		})
		return Decision{
			At: d.At.UnixMicro(), Allowed: d.Allowed, RetryAfter: d.RetryAfter(),
		}, err
	}
	return s
}

// RedisStage returns the limiter on a server, in real time. Nothing else may use the key.
func RedisStage(store Store, key Key,
	clock func(ctx context.Context) (time.Time, error)) Stage {
	var ahead time.Duration // how far the server's clock is ahead of ours, at most
	s := Stage{On: "redis", Window: 500 * time.Millisecond, Windows: 4, Denials: 5,
		Around: 200 * time.Millisecond, Early: 20 * time.Millisecond, Waits: true}
	s.Begin = func(ctx context.Context) (time.Time, error) {
		// Measured from the response, a slow one would delay every later call, and no retry
		// would ever be early.
		sent := time.Now()
		now, err := clock(ctx)
		ahead = now.Sub(sent)
		return now.Truncate(s.Window).Add(s.Window), err
	}
	s.Take = func(ctx context.Context, p *Policy, at time.Time,
		cost int64) (Decision, error) {
		if !quota.Pause(ctx, time.Until(at.Add(-ahead))) {
			return Decision{}, ctx.Err()
		}
		asks := []Ask{{Policy: p, Key: key, Cost: cost}}
		_, err := store.Take(ctx, asks)
		return asks[0].Decision, err
	}
	return s
}
