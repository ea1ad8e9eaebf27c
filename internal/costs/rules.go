package costs

import (
	"maps"
	"regexp"
	"slices"
	"time"

	"quotabudget/internal/costs/formula"
	"quotabudget/internal/quota"
)

// rules are what a method takes where that depends on the request or on the answer.
type rules struct {
	takes   []amount // known when the call is made
	holds   []holding
	settles map[string]*formula.Formula // the truth, by bucket
	failed  map[string]*formula.Formula // the truth of a call that failed
	usage   []string                    // paths of the object that expressions call usage
	events  []string                    // of a stream, that may hold it; empty: any
	free    *formula.Formula
	async   *async // or nil
	lapse   quota.Lapse
	ttl     time.Duration
}

// use reports whether the price of a call depends on a table.
func (p *rules) use(table string) bool {
	for _, h := range p.holds {
		if h.units.Uses(table) || p.settles[h.bucket] != nil && p.settles[h.bucket].Uses(table) {
			return true
		}
	}
	return false
}

type amount struct {
	bucket string
	units  *formula.Formula
}

// holding is an estimate of what a call takes. most is its upper bound, nil if the estimate implies
// it; certain is its lower bound, nil if unknown.
type holding struct {
	amount
	most, certain *formula.Formula
}

// estimates reports whether it may hold less than the most.
func (h holding) estimates() bool {
	return h.most != nil || h.units.Uses(slices.Collect(maps.Keys(formula.Quantiles()))...)
}

// What holds of a method that does not say otherwise.
const defaultTTL = 10 * time.Minute

var idForm = regexp.MustCompile(`^[a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)+$`)
