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

// Estimate says how much is set aside for a call whose price is known only after it.
type Estimate struct {
	Worst bool  // the most that it can take, whatever calls have taken so far
	Most  int64 // no more than this; 0 for no cap
}

// Estimates are by method, or by method and bucket (openai.responses.create/tokens); "" is all
// others.
type Estimates map[string]Estimate

// ParseEstimates reads words such as worst, learned, METHOD=worst and METHOD/BUCKET=2000: the most
// that a call can take; the least of that and of what calls have taken so far, as the price list
// says; and that, but no more than so many units. table has the methods.
func ParseEstimates(words []string, known func(method, bucket string) error) (Estimates, error) {
	all := Estimates{}
	for _, word := range words {
		of, policy, named := strings.Cut(word, "=")
		if !named {
			of, policy = "", word
		}
		method, bucket, _ := strings.Cut(of, "/")
		if named {
			if err := known(method, bucket); err != nil {
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
		all[of] = e
	}
	return all, nil
}

// of is the policy for a bucket of the method.
func (all Estimates) of(method, bucket string) Estimate {
	for _, name := range []string{method + "/" + quota.WholeOf(bucket), method, ""} {
		if e, ok := all[name]; ok {
			return e
		}
	}
	return Estimate{}
}

// apply raises what is held to the most that a call can take, or sets it to a number of units that
// the user chose, which need not keep to the bound on estimates. The most stays what it is.
func (all Estimates) apply(m costs.Method, q costs.Quote) {
	for i, c := range q.Costs {
		whole, most := quota.WholeOf(c.Bucket), max(c.Units, c.Most)
		estimated := slices.ContainsFunc(m.Terms, func(t costs.Term) bool {
			return t.Bucket == whole && t.Hold != ""
		})
		switch of := all.of(m.ID, c.Bucket); {
		case !estimated:
		case of.Worst:
			q.Costs[i] = quota.Cost{Bucket: c.Bucket, Units: most}
		case of.Most > 0 && most > of.Most:
			units := min(c.Units, max(of.Most, q.Certain[c.Bucket]))
			q.Costs[i] = quota.Cost{Bucket: c.Bucket, Units: units, Most: most}
		}
	}
}

const (
	sampleSize  = 200 // calls, the newest
	sampleLeast = 20  // calls, before a quantile says anything
)

// samples holds what the newest calls took beyond their certain units, by method, bucket and the
// facts that set their price.
type samples struct {
	mu  sync.Mutex
	all map[sampled]*sample
}

// sampled identifies calls that are priced alike, so that one predicts another.
type sampled struct{ method, bucket, priced string }

type sample struct {
	once  sync.Once // asks the ledger
	mu    sync.Mutex
	units []int64
	next  int
	order []int64 // the same, sorted
}

func (s *samples) of(name sampled) *sample {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.all == nil {
		s.all = map[sampled]*sample{}
	}
	if s.all[name] == nil {
		if len(s.all) >= maxSamples {
			clear(s.all) // somebody makes up names of models
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
	} else {
		i, _ := slices.BinarySearch(s.order, s.units[s.next])
		s.order = slices.Delete(s.order, i, i+1)
		s.units[s.next] = units
		s.next = (s.next + 1) % sampleSize
	}
	i, _ := slices.BinarySearch(s.order, units)
	s.order = slices.Insert(s.order, i, units)
}

// quantile is the least that at least so many percent of the calls took no more than.
func (s *sample) quantile(percentile int) (int64, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.units) < sampleLeast {
		return 0, false
	}
	return s.order[(len(s.order)*percentile+99)/100-1], true
}

// learned returns quantiles of what calls of the method took: first by the ledger's newest entries,
// then by what this process has booked.
func (t *Transport) learned(ctx context.Context, method string) costs.Learned {
	return func(priced, bucket string, percentile int) (int64, bool) {
		if t.Estimates.of(method, bucket).Worst {
			return 0, false
		}
		name := sampled{method, bucket, priced}
		s := t.samples.of(name)
		s.once.Do(func() { t.seed(ctx, name, s) })
		return s.quantile(percentile)
	}
}

// seed fills the sample with the ledger's entries, which do not say what of their units was
// certain: all of them count. Without entries the sample begins empty.
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

// remember adds what a call took to the samples of calls like it.
func (e *exchange) remember(took []quota.Cost) {
	for _, c := range took {
		name := sampled{e.call.Method, c.Bucket, e.quote.Priced}
		e.gate.samples.of(name).add(max(0, c.Units-e.quote.Certain[c.Bucket]))
	}
}
