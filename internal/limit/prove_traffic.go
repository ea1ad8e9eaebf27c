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
	Calls           int64 `json:"allowed"`
	Most            int64 `json:"most_in_a_window"`   // in any window, whenever it begins
	DeniedWithRoom  int   `json:"denied_with_room"`   // denied calls that would have fitted
	AllowedOverfull int   `json:"allowed_over_limit"` // allowed calls that did not fit

	inside      []int64 // times, in Unix µs, of the allowed calls still in the window
	over, under int64   // as in Traffic
}

// callLimit is small, because a real store takes time.
const callLimit = 50

// calls returns the moments of each kind of traffic: evenly, half more than the limit; bursts at
// random; and a caller who exploits the counter, with all calls at the end of a window and more
// as soon as any unit has faded.
func calls(s Stage, seed uint64) map[string][]time.Duration {
	random := rand.New(rand.NewPCG(seed, 3))
	all := map[string][]time.Duration{}
	w, end := s.Window, s.Window*time.Duration(s.Windows)
	for at := time.Duration(0); at < end; at += w * 2 / (3 * callLimit) {
		all["steady"] = append(all["steady"], at)
	}
	for at := time.Duration(0); at < end; at += time.Duration(random.Int64N(int64(w))) {
		all["bursty"] = append(all["bursty"], slices.Repeat([]time.Duration{at},
			random.IntN(callLimit))...)
	}
	for i := range s.Windows {
		begin := w * time.Duration(i)
		switch i % 3 {
		case 0:
			all["adversarial"] = append(all["adversarial"], slices.Repeat(
				[]time.Duration{begin + w - w/50}, callLimit)...)
		case 1:
			for j := range time.Duration(callLimit) {
				all["adversarial"] = append(all["adversarial"], begin+w*(j+1)/callLimit-w/50)
			}
		}
	}
	return all
}

// playTraffic compares the counter with the log.
func playTraffic(ctx context.Context, s Stage, seed uint64) (all []Traffic, err error) {
	moments := calls(s, seed)
	for _, name := range []string{"steady", "bursty", "adversarial"} {
		got, err := s.play(ctx, name, moments[name], Log, Counter)
		if err != nil {
			return nil, err
		}
		all = append(all, Traffic{name, callLimit, len(moments[name]), got[0], got[1], got[1].over,
			got[1].under})
	}
	return all, nil
}

// play makes a call at each moment under each algorithm, and returns what each algorithm admits.
func (s Stage) play(ctx context.Context, scene string, moments []time.Duration,
	algorithms ...Algorithm) ([]Admitted, error) {
	begin, err := s.Begin(ctx)
	if err != nil {
		return nil, err
	}
	all := make([]Admitted, len(algorithms))
	for _, after := range moments {
		for i, algorithm := range algorithms {
			p, at := s.policy(scene, algorithm, callLimit), begin.Add(after)
			if algorithm == Counter {
				look, err := s.Take(ctx, p, at, 0)
				if err != nil {
					return nil, err
				}
				all[i].compare(look, s.Window)
			}
			d, err := s.Take(ctx, p, at, 1)
			if err != nil {
				return nil, err
			}
			all[i].count(d, s.Window)
		}
	}
	return all, nil
}

// used returns the number of allowed calls in the window that ends now.
func (a *Admitted) used(now int64, window time.Duration) int64 {
	for len(a.inside) > 0 && a.inside[0] <= now-window.Microseconds() {
		a.inside = a.inside[1:]
	}
	return int64(len(a.inside))
}

// compare compares the used units that a look reports with the true number.
func (a *Admitted) compare(look Decision, window time.Duration) {
	off := callLimit - look.Remaining - a.used(look.At, window)
	a.over, a.under = max(a.over, off), max(a.under, -off)
}

// count counts a decision and compares it with the true count in the window.
func (a *Admitted) count(d Decision, window time.Duration) {
	room := a.used(d.At, window) < callLimit
	switch {
	case d.Allowed && !room:
		a.AllowedOverfull++
	case !d.Allowed && room:
		a.DeniedWithRoom++
	}
	if d.Allowed {
		a.Calls++
		a.inside = append(a.inside, d.At)
		a.Most = max(a.Most, int64(len(a.inside)))
	}
}
