package limit

import (
	"context"
	"math/rand/v2"
	"slices"
	"time"
)

// Traffic compares what the log and the counter admit of the same calls, and reports the error of
// the counter's estimate.
type Traffic struct {
	Traffic string   `json:"traffic"`
	Limit   int64    `json:"limit"`
	Calls   int      `json:"calls"`
	Log     Admitted `json:"log"`
	Counter Admitted `json:"counter"`
	Over    int64    `json:"estimate_over"`  // largest overestimate, in units
	Under   int64    `json:"estimate_under"` // largest underestimate, in units
}

// Admitted compares an algorithm's decisions with the true count in the window.
type Admitted struct {
	Calls           int   `json:"allowed"`
	Most            int64 `json:"most_in_a_window"`   // in any window, whenever it begins
	DeniedWithRoom  int   `json:"denied_with_room"`   // denied calls that would have fitted
	AllowedOverfull int   `json:"allowed_over_limit"` // allowed calls that did not fit
}

// trafficLimit is small, because a real store takes time.
const trafficLimit = 50

// calls returns the moments of each kind of traffic: evenly, half more than the limit; bursts at
// random; and a caller who exploits the counter, with all calls at the end of a window and more
// as soon as any unit has faded.
func calls(s Stage, seed uint64) map[string][]time.Duration {
	random := rand.New(rand.NewPCG(seed, 3))
	all := map[string][]time.Duration{}
	w, end := s.Window, s.Window*time.Duration(s.Windows)
	for at := time.Duration(0); at < end; at += w * 2 / (3 * trafficLimit) {
		all["steady"] = append(all["steady"], at)
	}
	for at := time.Duration(0); at < end; at += time.Duration(random.Int64N(int64(w))) {
		all["bursty"] = append(all["bursty"], slices.Repeat([]time.Duration{at},
			random.IntN(trafficLimit))...)
	}
	for i := range s.Windows {
		begin := w * time.Duration(i)
		switch i % 3 {
		case 0:
			all["adversarial"] = append(all["adversarial"], slices.Repeat(
				[]time.Duration{begin + w - w/50}, trafficLimit)...)
		case 1:
			for j := range time.Duration(trafficLimit) {
				all["adversarial"] = append(all["adversarial"], begin+w*(j+1)/trafficLimit-w/50)
			}
		}
	}
	return all
}

// playTraffic compares the counter with the log.
func playTraffic(ctx context.Context, s Stage, seed uint64) ([]Traffic, error) {
	var all []Traffic
	moments := calls(s, seed)
	for _, name := range []string{"steady", "bursty", "adversarial"} {
		t := Traffic{Traffic: name, Limit: trafficLimit, Calls: len(moments[name])}
		if err := t.play(ctx, s, moments[name]); err != nil {
			return nil, err
		}
		all = append(all, t)
	}
	return all, nil
}

func (t *Traffic) play(ctx context.Context, s Stage, moments []time.Duration) error {
	begin, err := s.Begin(ctx)
	if err != nil {
		return err
	}
	log := s.policy(t.Traffic, Log, trafficLimit)
	counter := s.policy(t.Traffic, Counter, trafficLimit)
	inLog, inCounter := truth{window: s.Window}, truth{window: s.Window}
	for _, after := range moments {
		at := begin.Add(after)
		d, err := s.Take(ctx, log, at, 1)
		if err != nil {
			return err
		}
		t.Log.count(d, &inLog)
		look, err := s.Take(ctx, counter, at, 0)
		if err != nil {
			return err
		}
		off := trafficLimit - look.Remaining - inCounter.at(look.At)
		t.Over, t.Under = max(t.Over, off), max(t.Under, -off)
		if d, err = s.Take(ctx, counter, at, 1); err != nil {
			return err
		}
		t.Counter.count(d, &inCounter)
	}
	return nil
}

// truth holds the moments, in µs, of the allowed calls that are still in the window.
type truth struct {
	window time.Duration
	inside []int64
}

func (t *truth) at(now int64) int64 {
	for len(t.inside) > 0 && t.inside[0] <= now-t.window.Microseconds() {
		t.inside = t.inside[1:]
	}
	return int64(len(t.inside))
}

// count counts a decision and compares it with the true count in the window.
func (a *Admitted) count(d Decision, t *truth) {
	room := t.at(d.At) < trafficLimit
	switch {
	case d.Allowed && !room:
		a.AllowedOverfull++
	case !d.Allowed && room:
		a.DeniedWithRoom++
	}
	if d.Allowed {
		a.Calls++
		t.inside = append(t.inside, d.At)
		a.Most = max(a.Most, int64(len(t.inside)))
	}
}
