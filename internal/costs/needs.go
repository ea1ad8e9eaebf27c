package costs

import (
	"maps"
	"slices"

	"quotabudget/internal/costs/formula"
)

// needs records which parts of a request must be read to price a call of the method.
func (r *reader) needs(m *Method) {
	note := func(f *formula.Formula) {
		if f != nil {
			m.needsJSON = m.needsJSON || f.Uses("body", "count")
			m.needsBody = m.needsBody || m.needsJSON || f.Uses("body_bytes")
		}
	}
	var facts []string
	for _, term := range m.Terms {
		facts = append(facts, r.table.buckets[r.places[term.Bucket]].Split...)
	}
	if m.lines != nil {
		note(m.lines.Sent)
		m.needsJSON = m.needsJSON || m.lines.List != ""
		m.needsBody = m.needsBody || m.needsJSON
	}
	m.parted = slices.ContainsFunc(facts, func(name string) bool { return name != methodFact })
	if p := m.rules; p != nil {
		var used []*formula.Formula
		for _, a := range p.takes {
			used = append(used, a.units)
		}
		for _, h := range p.holds {
			used = append(used, h.Estimate, h.Most, h.Certain)
		}
		for _, n := range slices.Backward(r.table.numbers) {
			if anyUses(used, n.name) {
				used, m.numbers = append(used, n.value), slices.Insert(m.numbers, 0, n)
			}
		}
		for _, f := range used {
			note(f)
		}
		used = append(used, p.free)
		if p.async != nil {
			used = append(used, p.async.Poll, p.async.Done, p.async.Results)
		}
		used = slices.AppendSeq(used, maps.Values(p.settles))
		used = slices.AppendSeq(used, maps.Values(p.failed))
		for _, f := range r.table.facts {
			if anyUses(used, f.name) {
				facts = append(facts, f.name)
			}
		}
	}
	m.facts = r.withUsed(facts)
	for _, f := range r.table.facts {
		if slices.Contains(m.facts, f.name) {
			note(f.Request)
		}
	}
}

// factsOfAnswers returns the facts that any method needs to read or report its responses.
func (r *reader) factsOfAnswers() (facts []string) {
	t := &r.table
	used := []*formula.Formula{t.Errors.Metric, t.Errors.Since}
	for _, l := range t.Learn {
		used = append(used, l.Where, l.Limit.units, l.Used.units, l.Remaining.units)
	}
	for _, f := range t.Refusals {
		used = append(used, f.Where)
	}
	for _, f := range t.facts {
		unlisted := func(w warning) bool { return w.fact == f.name }
		if anyUses(used, f.name) || slices.ContainsFunc(t.warns, unlisted) {
			facts = append(facts, f.name)
		}
	}
	return r.withUsed(facts)
}

// anyUses reports whether one of the expressions refers to a name.
func anyUses(all []*formula.Formula, name string) bool {
	return slices.ContainsFunc(all, func(f *formula.Formula) bool {
		return f != nil && f.Uses(name)
	})
}

// withUsed adds the facts that facts use, in front of them.
func (r *reader) withUsed(facts []string) []string {
	for _, f := range slices.Backward(r.table.facts) {
		for _, before := range r.table.facts {
			if slices.Contains(facts, f.name) && f.Request.Uses(before.name) {
				facts = append(facts, before.name)
			}
		}
	}
	return facts
}
