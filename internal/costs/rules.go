package costs

import (
	"maps"
	"regexp"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/grammar"
	"quotabudget/internal/quota"
)

// rules is a price that depends on the request or on the response.
type rules struct {
	takes   formulas // known before the call
	holds   []holding
	settles map[string]*formula // usage, by bucket
	failed  map[string]*formula // usage of a failed call
	usage   []string            // paths of the object usage in expressions
	events  []string            // events of a stream with the usage; empty: any
	free    *formula
	async   *async // or nil
	lapse   quota.Lapse
	ttl     time.Duration
}

// vary reports whether the price differs from call to call.
func (p *rules) vary() bool {
	return len(p.holds) > 0 || p.free != nil ||
		slices.ContainsFunc(p.takes, func(e entry[*formula]) bool {
			return !e.value.Constant()
		})
}

// use reports whether the price of a call depends on a table.
func (p *rules) use(table string) bool {
	return slices.ContainsFunc(p.holds, func(h holding) bool {
		return anyUses([]*formula{h.Estimate, p.settles[h.bucket]}, table)
	})
}

// holding is an estimate of a call's cost. Most is its upper bound, or nil if the estimate implies
// it; Certain is its lower bound, or nil if unknown.
type holding struct {
	bucket                  string
	Estimate, Most, Certain *formula
}

// UnmarshalYAML reads an estimate, or {estimate, most, certain}.
func (h *holding) UnmarshalYAML(n *yaml.Node) error {
	type plain holding
	return grammar.DecodeEither(n, &h.Estimate, (*plain)(h))
}

// estimates reports whether it may hold less than the upper bound.
func (h holding) estimates() bool {
	return h.Most != nil || h.Estimate.Uses(slices.Collect(maps.Keys(quantiles))...)
}

// Defaults of a method.
const defaultTTL = 10 * time.Minute

var idForm = regexp.MustCompile(`^[a-zA-Z0-9_-]+(\.[a-zA-Z0-9_-]+)+$`)

// needs records which parts of a request must be read to price a call of the method.
func (t *Table) needs(m *Method) {
	request, response := m.formulas()
	for _, n := range slices.Backward(t.numbers) {
		if anyUses(request, n.key) {
			request, m.numbers = append(request, n.value), slices.Insert(m.numbers, 0, n)
		}
	}
	var facts []string
	for _, term := range m.Terms {
		facts = append(facts, t.bucketNamed(term.Bucket).Split...)
	}
	m.parted = slices.ContainsFunc(facts, func(name string) bool { return name != methodFact })
	for _, f := range t.facts {
		if anyUses(request, f.name) || anyUses(response, f.name) {
			facts = append(facts, f.name)
		}
	}
	m.facts = t.withUsed(facts)
	for _, f := range t.facts {
		if slices.Contains(m.facts, f.name) {
			request = append(request, f.Request)
		}
	}
	m.needsJSON = m.lines != nil && m.lines.List != "" || anyUses(request, "body", "count")
	m.needsBody = m.needsJSON || anyUses(request, "body_bytes")
}

// formulas returns the expressions of a method's price that are evaluated on the request and on the
// response. Some are nil.
func (m *Method) formulas() (request, response []*formula) {
	if m.lines != nil {
		request = append(request, m.lines.Sent)
	}
	p := m.rules
	if p == nil {
		return request, nil
	}
	for _, a := range p.takes {
		request = append(request, a.value)
	}
	for _, h := range p.holds {
		request = append(request, h.Estimate, h.Most, h.Certain)
	}
	response = slices.AppendSeq([]*formula{p.free}, maps.Values(p.settles))
	if p.async != nil {
		response = append(response, p.async.Poll, p.async.Done, p.async.Results)
	}
	return request, slices.AppendSeq(response, maps.Values(p.failed))
}

// factsOfAnswers returns the facts that any method needs to read or report its responses.
func (t *Table) factsOfAnswers() (facts []string) {
	used := []*formula{t.Errors.Metric, t.Errors.Since}
	for _, l := range t.Learn {
		used = append(used, l.formulas()...)
	}
	for _, f := range t.Refusals {
		used = append(used, f.Where)
	}
	for _, f := range t.facts {
		warns := func(p PriceTable) bool { return p.warn == f.name }
		if anyUses(used, f.name) || slices.ContainsFunc(t.tables, warns) {
			facts = append(facts, f.name)
		}
	}
	return t.withUsed(facts)
}

// anyUses reports whether one of the expressions refers to one of the names.
func anyUses(all []*formula, names ...string) bool {
	return slices.ContainsFunc(all, func(f *formula) bool {
		return f != nil && f.Uses(names...)
	})
}

// withUsed returns facts, and the facts that they use.
func (t *Table) withUsed(facts []string) []string {
	for _, f := range slices.Backward(t.facts) {
		for _, before := range t.facts {
			if slices.Contains(facts, f.name) && f.Request.Uses(before.name) {
				facts = append(facts, before.name)
			}
		}
	}
	return facts
}
