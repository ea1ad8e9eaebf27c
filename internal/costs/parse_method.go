package costs

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"time"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/costs/formula"
	"quotabudget/internal/quota"
	"quotabudget/internal/spell"
	"quotabudget/internal/yamlfile"
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
	pending *pending
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

// pending matches responses whose usage a later response reports, and finds their id.
type pending struct{ where, id *formula.Formula }

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

func (r *reader) method(id string, key, n *yaml.Node) {
	if !idForm.MatchString(id) {
		r.Add(key, "%q is not the ID of a method, such as messages.create", id)
	}
	m := Method{ID: id, OAuth: r.table.oauth}
	parts := map[string]*yaml.Node{}
	part := func(name string) func(*yaml.Node) {
		return func(n *yaml.Node) { parts[name] = n }
	}
	required := []string{"route", "source"}
	if r.old {
		required = []string{"route", "cost", "source"}
	}
	r.fields(n, "method "+spell.Clip(id), "method", yamlfile.Fields{
		"route":   func(n *yaml.Node) { m.routes = r.routes(n) },
		"cost":    part("cost"),
		"take":    part("take"),
		"hold":    part("hold"),
		"settle":  part("settle"),
		"failed":  part("failed"),
		"usage":   part("usage"),
		"events":  part("events"),
		"free":    part("free"),
		"pending": part("pending"),
		"reports": func(n *yaml.Node) {
			m.reports, r.table.reports = r.expression(n, "reports", formula.Request, formula.Text)
		},
		"lapse":  part("lapse"),
		"ttl":    part("ttl"),
		"source": func(n *yaml.Node) { m.Source = r.sourceOf(n) },
		"upload": func(n *yaml.Node) { m.Upload = r.Bool(n, "upload") },
		"oauth":  func(n *yaml.Node) { m.OAuth = r.Bool(n, "oauth") },
		"note":   func(n *yaml.Node) { m.Note = r.text(n, "note") },
	}, required...)
	r.price(n, &m, parts)
	if len(m.routes) > 0 {
		m.Verb, m.Path = m.routes[0].verb, m.routes[0].path
	}
	r.addRoutes(n, &m)
	r.needs(&m)
	r.table.listed[id] = m
}

// price reads what a method takes.
func (r *reader) price(n *yaml.Node, m *Method, parts map[string]*yaml.Node) {
	if cost := parts["cost"]; cost != nil {
		m.Costs = r.costs(cost)
		m.Terms = termsOf(m.Costs)
		for _, other := range sorted(parts) {
			if other != "cost" {
				r.Add(parts[other], "%s: a method with a cost takes no more than that: write take "+
					"in place of cost", other)
			}
		}
		return
	}
	if parts["take"] == nil && parts["hold"] == nil {
		if !r.old {
			r.Add(n, "method %s: write cost, take or hold", spell.Clip(m.ID))
		}
		return
	}
	rules := r.rules(m, parts)
	constant := !slices.ContainsFunc(rules.takes, func(a amount) bool {
		return !a.units.Constant()
	})
	if constant && len(rules.holds) == 0 && rules.free == nil {
		rules = nil
	}
	m.rules = rules
}

// rules reads the parts of a method whose price depends on the request or on the answer.
func (r *reader) rules(m *Method, parts map[string]*yaml.Node) *rules {
	p := &rules{lapse: quota.LapseCharge, ttl: defaultTTL, usage: []string{"usage"}}
	terms := map[string]*Term{}
	term := func(bucket string, at *yaml.Node) *Term {
		if terms[bucket] != nil {
			r.Add(at, "bucket %s is in take and in hold", spell.Clip(bucket))
		}
		terms[bucket] = &Term{Bucket: bucket}
		return terms[bucket]
	}
	r.amounts(parts["take"], "take", formula.Request, func(a amount, key *yaml.Node) {
		t := term(a.bucket, key)
		if a.units == nil {
			return
		}
		t.Take = a.units.Text
		p.takes = append(p.takes, a)
		if units, err := a.units.Units(nil); a.units.Constant() && err == nil {
			if units == 0 {
				r.Add(key, "take of %s: 0 is no cost: leave it out", a.bucket)
			}
			m.Costs = append(m.Costs, quota.Cost{Bucket: a.bucket, Units: units})
		}
	})
	if n := parts["hold"]; n != nil {
		r.each(n, "hold", func(bucket string, key, n *yaml.Node) {
			h := r.holding(bucket, key, n)
			t := term(bucket, key)
			if h.units != nil {
				p.holds = append(p.holds, h)
				t.Hold = h.units.Text
			}
		})
	}
	truth := func(what string, n *yaml.Node, own bool) map[string]*formula.Formula {
		all := map[string]*formula.Formula{}
		r.amounts(n, what, formula.Answer, func(a amount, key *yaml.Node) {
			t := terms[a.bucket]
			if t != nil && a.units != nil {
				all[a.bucket] = a.units
				if what == "settle" {
					t.Settle = a.units.Text
				}
			} else if t == nil && own {
				r.Add(key, "%s of %s: the method neither takes nor holds it", what, a.bucket)
			}
		})
		return all
	}
	p.settles = truth("settle", parts["settle"], true)
	p.failed = truth("failed", cmp.Or(parts["failed"], r.failed), parts["failed"] != nil)
	r.answering(p, parts)
	r.sortCosts(m.Costs)
	for _, name := range slices.Collect(maps.Keys(terms)) {
		m.Terms = append(m.Terms, *terms[name])
	}
	slices.SortFunc(m.Terms, func(a, b Term) int { return r.places[a.Bucket] - r.places[b.Bucket] })
	return p
}

// answering reads how a method's answer is read, and what becomes of a hold without one.
func (r *reader) answering(p *rules, parts map[string]*yaml.Node) {
	if n := parts["usage"]; n != nil {
		p.usage = r.paths(n, "usage")
	}
	if n := parts["events"]; n != nil {
		p.events = r.texts(n, "events")
	}
	if n := parts["free"]; n != nil {
		p.free, _ = r.expression(n, "free", formula.Answer, formula.Condition)
	}
	if n := parts["pending"]; n != nil {
		p.pending = &pending{}
		r.fields(n, "pending", "pending", yamlfile.Fields{
			"where": func(n *yaml.Node) {
				p.pending.where, _ = r.expression(n, "where", formula.Answer, formula.Condition)
			},
			"id": func(n *yaml.Node) {
				p.pending.id, _ = r.expression(n, "id", formula.Answer, formula.Text)
			},
		}, "where", "id")
	}
	if n := parts["lapse"]; n != nil {
		p.lapse = quota.Lapse(r.text(n, "lapse"))
		if p.lapse != quota.LapseCharge && p.lapse != quota.LapseRelease {
			r.Add(n, "lapse %q: it is charge or release", spell.Clip(string(p.lapse)))
		}
	}
	if n := parts["ttl"]; n != nil {
		var err error
		if p.ttl, err = time.ParseDuration(r.text(n, "ttl")); err != nil || p.ttl < time.Second ||
			p.ttl > 24*time.Hour {
			r.Add(n, "ttl: %q is not a duration from 1s to 24h", spell.Clip(n.Value))
		}
	}
}

// amounts reads expressions by bucket, nil where one has a mistake; a nil node has none.
func (r *reader) amounts(n *yaml.Node, what string, kind formula.Kind,
	read func(amount, *yaml.Node)) {
	if n == nil {
		return
	}
	r.each(n, what, func(bucket string, key, n *yaml.Node) {
		r.knownBucket(bucket, key)
		of := what + " of " + spell.Clip(bucket)
		units, _ := r.expression(n, of, kind, formula.Number)
		read(amount{bucket, units}, key)
	})
}

// holding reads an estimate: an expression, or {estimate, most, certain}.
func (r *reader) holding(bucket string, key, n *yaml.Node) holding {
	r.knownBucket(bucket, key)
	h := holding{amount: amount{bucket: bucket}}
	what := "hold of " + spell.Clip(bucket)
	if n.Kind != yaml.MappingNode {
		h.units, _ = r.expression(n, what, formula.Hold, formula.Number)
		return h
	}
	r.fields(n, what, "hold", yamlfile.Fields{
		"estimate": func(n *yaml.Node) {
			h.units, _ = r.expression(n, "estimate of "+bucket, formula.Hold, formula.Number)
		},
		"most": func(n *yaml.Node) {
			h.most, _ = r.expression(n, "most of "+bucket, formula.Request, formula.Number)
		},
		"certain": func(n *yaml.Node) {
			h.certain, _ = r.expression(n, "certain of "+bucket, formula.Request, formula.Number)
		},
	}, "estimate", "most")
	return h
}

func (r *reader) knownBucket(name string, key *yaml.Node) {
	if _, ok := r.places[name]; !ok {
		r.Add(key, "bucket %q is not among the buckets%s", name, didYouMean(name, r.places))
	}
}

// expression compiles an expression; it is false where that has a mistake. A number without a name
// in it is evaluated, too.
func (r *reader) expression(n *yaml.Node, what string, kind formula.Kind,
	compile func(string, formula.Scope) (*formula.Formula, error)) (*formula.Formula, bool) {
	text, ok := r.Text(n, what)
	if !ok {
		return nil, false
	}
	scope := r.scope
	scope.Kind = kind
	for _, f := range r.table.facts {
		scope.Facts = append(scope.Facts, f.name)
	}
	for _, n := range r.table.numbers {
		scope.Numbers = append(scope.Numbers, n.name)
	}
	f, err := compile(text, scope)
	if err == nil && f.Constant() && f.IsNumber() {
		_, err = f.Units(nil)
	}
	if err != nil {
		r.Add(n, "%s: %v", what, err)
		return nil, false
	}
	return f, true
}

// costs reads the units by bucket and puts them in the order of the buckets.
func (r *reader) costs(n *yaml.Node) []quota.Cost {
	var costs []quota.Cost
	r.each(n, "cost", func(bucket string, key, n *yaml.Node) {
		r.knownBucket(bucket, key)
		costs = append(costs, quota.Cost{Bucket: bucket,
			Units: r.Number(n, "cost of "+spell.Clip(bucket), 1, quota.MaxUnits)})
	})
	r.sortCosts(costs)
	return costs
}

func (r *reader) sortCosts(costs []quota.Cost) {
	slices.SortFunc(costs, func(a, b quota.Cost) int {
		return r.places[a.Bucket] - r.places[b.Bucket]
	})
}

// termsOf are the terms of a price that is known.
func termsOf(costs []quota.Cost) (terms []Term) {
	for _, c := range costs {
		terms = append(terms, Term{Bucket: c.Bucket, Take: strconv.FormatInt(c.Units, 10)})
	}
	return terms
}
