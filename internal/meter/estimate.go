package meter

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
)

// Estimate limits how much is set aside for a call whose price is known only afterwards.
type Estimate struct {
	Worst bool  // set the call's maximum aside, whatever earlier calls used
	Most  int64 // maximum units to set aside; 0 for no maximum
}

// Estimates maps a method, or a method and bucket (openai.responses.create/tokens), to its
// estimate. The key "" is for all others.
type Estimates map[string]Estimate

// ParseEstimates parses words such as worst, learned, METHOD=worst and METHOD/BUCKET=2000. For
// worst, a call's maximum is held; for learned, the units that the price list learns from earlier
// calls, if fewer; for a number, the learned units up to that number. check returns an error for a
// method or bucket that the price list lacks.
func ParseEstimates(words []string, check func(method, bucket string) error) (Estimates, error) {
	all := Estimates{}
	for _, word := range words {
		subject, policy, named := strings.Cut(word, "=")
		if !named {
			subject, policy = "", word
		}
		method, bucket, _ := strings.Cut(subject, "/")
		if named {
			if err := check(method, bucket); err != nil {
				return nil, err
			}
		}
		var e Estimate
		switch n, err := strconv.ParseInt(policy, 10, 64); {
		case policy == "worst":
			e.Worst = true
		case policy == "learned":
		case err != nil || n < 1 || n > quota.MaxUnits:
			return nil, fmt.Errorf("%q is not worst, learned or a number of units", policy)
		default:
			e.Most = n
		}
		all[subject] = e
	}
	return all, nil
}

func (all Estimates) estimateOf(method, bucket string) Estimate {
	for _, name := range []string{method + "/" + quota.WholeOf(bucket), method, ""} {
		if e, ok := all[name]; ok {
			return e
		}
	}
	return Estimate{}
}

// apply raises the hold to the call's maximum, or sets it to the user's number of units, which may
// be below the bound on estimates. It does not change the maximum.
func (all Estimates) apply(m costs.Method, q costs.Quote) {
	for i, c := range q.Costs {
		whole, maximum := quota.WholeOf(c.Bucket), max(c.Units, c.Most)
		estimated := slices.ContainsFunc(m.Terms, func(t costs.Term) bool {
			return t.Bucket == whole && t.Hold != ""
		})
		switch estimate := all.estimateOf(m.ID, c.Bucket); {
		case !estimated:
		case estimate.Worst:
			q.Costs[i] = quota.Cost{Bucket: c.Bucket, Units: maximum}
		case estimate.Most > 0 && maximum > estimate.Most:
			units := min(c.Units, max(estimate.Most, q.Certain[c.Bucket]))
			q.Costs[i] = quota.Cost{Bucket: c.Bucket, Units: units, Most: maximum}
		}
	}
}

const (
	sampleSize  = 200 // number of newest calls in a sample
	sampleLeast = 20  // minimum number of calls for a quantile
)

// samples contains the units that the newest calls used beyond their certain units, by method,
// bucket and the facts that set their price.
type samples struct {
	mu  sync.Mutex
	all map[sampled]*sample
}

// sampled identifies calls that are priced alike, so that each predicts the others.
type sampled struct{ method, bucket, priced string }

type sample struct {
	once  sync.Once // reads the ledger
	mu    sync.Mutex
	units []int64
	next  int
}

func (s *samples) sampleOf(name sampled) *sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[sampled]*sample{}
	}
	if s.all[name] == nil {
		if len(s.all) >= maxSamples {
			clear(s.all) // a caller invents names of models
		}
		s.all[name] = &sample{}
	}
	return s.all[name]
}

const maxSamples = 10_000

func (s *sample) add(units int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.units) < sampleSize {
		s.units = append(s.units, units)
		return
	}
	s.units[s.next] = units
	s.next = (s.next + 1) % sampleSize
}

// quantile returns a percentile of the units that the calls used, or false if there are too few
// calls.
func (s *sample) quantile(percentile int) (int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.units) < sampleLeast {
		return 0, false
	}
	sorted := slices.Sorted(slices.Values(s.units))
	return sorted[(len(sorted)*percentile+99)/100-1], true
}

// learned returns quantiles of the units that calls of the method used, according to the ledger's
// newest entries and then the bookings of this process.
func (t *Transport) learned(ctx context.Context, method string) costs.Learned {
	return func(priced, bucket string, percentile int) (int64, bool) {
		if t.Estimates.estimateOf(method, bucket).Worst {
			return 0, false
		}
		name := sampled{method, bucket, priced}
		s := t.samples.sampleOf(name)
		s.once.Do(func() { t.seed(ctx, name, s) })
		return s.quantile(percentile)
	}
}

// seed fills the sample with the ledger's entries. Entries do not show how many of their units were
// certain, so all units count.
func (t *Transport) seed(ctx context.Context, name sampled, s *sample) {
	ctx, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer done()
	entries, err := t.Budget.Ledger.Entries(ctx, quota.Query{Credential: t.Budget.Credential,
		Bucket: name.bucket, Limit: 5 * sampleSize})
	if err != nil {
		t.Log.Debug("cannot read earlier calls from the ledger", "method", name.method,
			"error", err)
		return
	}
	for _, e := range entries {
		if e.Labels[quota.LabelMethod] == name.method &&
			e.Labels[quota.LabelPriced] == name.priced {
			s.add(e.Units)
		}
	}
}
