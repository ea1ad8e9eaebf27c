package limit

import (
	"cmp"
	"slices"
	"sync"
)

// Stats counts the decisions of a guard since the start. Its zero value is ready; nil counts
// nothing.
type Stats struct {
	mu      sync.Mutex
	counts  map[string]*Counts
	denied  map[string]int64
	offline int64
}

// Counts holds the decisions under a policy.
type Counts struct {
	Policy   string
	Allowed  int64
	NearMiss int64 // allowed with less than a tenth of the limit left
	Denied   int64
	Observed int64 // would have been denied
}

// Denied is a caller and its number of denials.
type Denied struct {
	Who   string // the name of an API key, or a network
	Times int64
}

// maxDenied is the maximum number of callers counted. A new caller replaces the rarest one and
// inherits its count, so that no caller that is denied often is missed.
const maxDenied = 100

// count counts a request: each of its limits and the decision.
func (s *Stats) count(q request, allowed bool) {
	if s == nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.counts == nil {
		s.counts, s.denied = map[string]*Counts{}, map[string]int64{}
	}
	for i, l := range q.limits {
		a, n := &q.asks[i], s.counts[l.Name]
		if n == nil {
			n = &Counts{Policy: l.Name}
			s.counts[l.Name] = n
		}
		switch {
		case !a.Allowed && l.Observe:
			n.Observed++
		case !a.Allowed:
			n.Denied++
			s.deny(cmp.Or(q.caller.Key, q.caller.Network))
		case allowed:
			n.Allowed++
			if a.Remaining < a.Policy.Units/10 {
				n.NearMiss++
			}
		}
	}
}

func (s *Stats) deny(who string) {
	if who == "" { // a decision for another program
		return
	}
	_, counted := s.denied[who]
	if counted || len(s.denied) < maxDenied {
		s.denied[who]++
		return
	}
	var rarest string
	least := int64(-1)
	for other, times := range s.denied {
		if least < 0 || times < least {
			rarest, least = other, times
		}
	}
	delete(s.denied, rarest)
	s.denied[who] = least + 1
}

// Counts returns the counts of each policy, by name.
func (s *Stats) Counts() []Counts {
	s.mu.Lock()
	defer s.mu.Unlock()
	all := make([]Counts, 0, len(s.counts))
	for _, n := range s.counts {
		all = append(all, *n)
	}
	slices.SortFunc(all, func(a, b Counts) int { return cmp.Compare(a.Policy, b.Policy) })
	return all
}

// Undecided returns how many requests could not be decided because the store was unreachable.
func (s *Stats) Undecided() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.offline
}

// TopDenied returns the callers denied most often, at most n. Counts of rare ones may be too high.
func (s *Stats) TopDenied(n int) []Denied {
	s.mu.Lock()
	all := make([]Denied, 0, len(s.denied))
	for who, times := range s.denied {
		all = append(all, Denied{who, times})
	}
	s.mu.Unlock()
	slices.SortFunc(all, func(a, b Denied) int {
		return cmp.Or(cmp.Compare(b.Times, a.Times), cmp.Compare(a.Who, b.Who))
	})
	return all[:min(n, len(all))]
}
