package costs

import (
	"maps"
	"regexp"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/costs/formula"
	"quotabudget/internal/grammar"
	"quotabudget/internal/quota"
)

// rules is a price that depends on the request or on the response.
type rules struct {
	takes   formulas // known before the call
	holds   []holding
	settles map[string]*formula.Formula // usage, by bucket
	failed  map[string]*formula.Formula // usage of a failed call
	usage   []string                    // paths of the object usage in expressions
	events  []string                    // events of a stream with the usage; empty: any
	free    *formula.Formula
	async   *async // or nil
	lapse   quota.Lapse
	ttl     time.Duration
}

// vary reports whether the price differs from call to call.
func (p *rules) vary() bool {
	return len(p.holds) > 0 || p.free != nil ||
		slices.ContainsFunc(p.takes, func(e entry[*formula.Formula]) bool {
			return !e.value.Constant()
		})
}

// use reports whether the price of a call depends on a table.
func (p *rules) use(table string) bool {
	for _, h := range p.holds {
		if h.Estimate.Uses(table) || p.settles[h.bucket] != nil && p.settles[h.bucket].Uses(table) {
			return true
		}
	}
	return false
}

// holding is an estimate of a call's cost. Most is its upper bound, or nil if the estimate implies
// it; Certain is its lower bound, or nil if unknown.
type holding struct {
	bucket                  string
	Estimate, Most, Certain *formula.Formula
}

// UnmarshalYAML reads an estimate, or {estimate, most, certain}.
func (h *holding) UnmarshalYAML(n *yaml.Node) error {
	type plain holding
	return grammar.DecodeEither(n, &h.Estimate, (*plain)(h))
}

// estimates reports whether it may hold less than the upper bound.
func (h holding) estimates() bool {
	return h.Most != nil || h.Estimate.Uses(slices.Collect(maps.Keys(formula.Quantiles()))...)
}

// Defaults of a method.
const defaultTTL = 10 * time.Minute

var idForm = regexp.MustCompile(`^[a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)+$`)
