package limit

import (
	"context"
	"math/rand/v2"
	"time"
)

// Proof holds the results of scenes that test the guarantees of the algorithms on a real store. A
// scene that was not run is nil.
type Proof struct {
	On       string    `json:"on"`
	Seed     uint64    `json:"seed"`
	Kept     bool      `json:"kept"` // every guarantee held
	Boundary *Boundary `json:"boundary,omitempty"`
	Traffic  []Traffic `json:"counter,omitempty"`
	Retry    *Retry    `json:"retry,omitempty"`
}

// Prove plays one of the scenes boundary, counter and retry, or all, and judges the results.
func Prove(ctx context.Context, s Stage, scene string, seed uint64) (r *Proof, err error) {
	r = &Proof{On: s.On, Seed: seed}
	chosen := func(name string) bool { return err == nil && (scene == name || scene == "all") }
	if chosen("boundary") {
		r.Boundary, err = playBoundary(ctx, s)
	}
	if chosen("counter") {
		r.Traffic, err = playTraffic(ctx, s, seed)
	}
	if chosen("retry") {
		r.Retry, err = playRetry(ctx, s, seed)
	}
	r.judge()
	return r, err
}

// judge sets Kept. It requires that the log never admits more than its limit and denies nothing
// that fits, that the counter admits at most twice its limit and its estimate is off by at most
// one limit, and that a denied call is allowed at the promised time and no sooner.
func (r *Proof) judge() {
	r.Kept = true
	if b := r.Boundary; b != nil {
		r.Kept = b.inLog.Most <= b.Limit && b.Counter <= 2*b.Limit
	}
	for _, t := range r.Traffic {
		r.Kept = r.Kept && t.Log.Most <= t.Limit && t.Log.DeniedWithRoom == 0 &&
			t.Counter.Most <= 2*t.Limit && max(t.Over, t.Under) <= t.Limit
	}
	if r.Retry != nil {
		r.Kept = r.Kept && r.Retry.Early == 0 && r.Retry.Late == 0
	}
}

// Boundary reports how many of 100 calls were allowed, 50 on each side of a window boundary.
type Boundary struct {
	Limit   int64   `json:"limit"` // units in a window
	Window  float64 `json:"window_seconds"`
	Fixed   int64   `json:"fixed"`
	Counter int64   `json:"counter"`
	Log     int64   `json:"log"`

	inLog Admitted // on a slow store the calls take longer than a window
}

// playBoundary makes 50 calls shortly before the end of a window, and 50 shortly after it.
func playBoundary(ctx context.Context, s Stage) (*Boundary, error) {
	var moments []time.Duration
	for i := range time.Duration(2 * callLimit) {
		moments = append(moments, s.Window+s.Around*(2*(i-callLimit)+1)/(2*callLimit))
	}
	got, err := s.play(ctx, "boundary", moments, Fixed, Counter, Log)
	if err != nil {
		return nil, err
	}
	return &Boundary{Limit: callLimit, Window: s.Window.Seconds(), Fixed: got[0].Calls,
		Counter: got[1].Calls, Log: got[2].Calls, inLog: got[2]}, nil
}

// policy returns a policy that no other scene uses.
func (s Stage) policy(scene string, a Algorithm, units int64) *Policy {
	return &Policy{
		Name: "prove-" + scene + "-" + string(a), Units: units, Window: s.Window, Algorithm: a}
}

// Retry counts retries of denied calls: the early ones, which must be denied again, and those at
// the promised time, which must be allowed.
type Retry struct {
	Denials int   `json:"denials"`
	Micros  int64 `json:"early_by_microseconds"` // the smallest amount by which a retry was early
	Early   int   `json:"early_allowed"`
	Late    int   `json:"late_denied"`
}

// playRetry makes random charges under the log, and retries the denied ones.
func playRetry(ctx context.Context, s Stage, seed uint64) (*Retry, error) {
	at, err := s.Begin(ctx)
	if err != nil {
		return nil, err
	}
	random := rand.New(rand.NewPCG(seed, 2))
	const units = 20
	p := s.policy("retry", Log, units)
	r := &Retry{Micros: s.Early.Microseconds()}
	for r.Denials < s.Denials {
		at = at.Add(time.Duration(random.Int64N(int64(s.Window / 10))))
		cost := 1 + random.Int64N(units)
		d, err := s.Take(ctx, p, at, cost)
		if err != nil {
			return nil, err
		}
		if d.Allowed || d.RetryAfter < 2*s.Early {
			continue
		}
		at = time.UnixMicro(d.At).Add(d.RetryAfter)
		if err := r.again(ctx, s, p, at, cost); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// again retries a denied call before the promised moment, until an attempt is no longer early.
func (r *Retry) again(ctx context.Context, s Stage, p *Policy, promised time.Time,
	cost int64) error {
	early := int64(0) // how early the last denied attempt was
	for at := promised.Add(-s.Early); ; {
		d, err := s.Take(ctx, p, at, cost)
		if err != nil {
			return err
		}
		before := promised.UnixMicro() - d.At
		switch {
		case before <= 0 && early == 0: // the round trip took too long for an early attempt
			return nil
		case before > 0 && d.Allowed:
			r.Early++
		case before > 0:
			early = before
			if !s.Waits {
				at = promised
			}
			continue
		case !d.Allowed:
			r.Late++
		}
		r.Denials++
		if early > 0 {
			r.Micros = min(r.Micros, early)
		}
		return nil
	}
}
