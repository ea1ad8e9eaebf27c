package costs

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"quotabudget/internal/costs/formula"
	"quotabudget/internal/grammar"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// method checks a method, and adds it to the table.
func (r *reader) method(id string, f fileMethod, at, list grammar.Place) {
	if !idForm.MatchString(id) {
		at.Add("%q is not the ID of a method, such as messages.create", words.Clip(id))
	}
	m := Method{ID: id, Upload: f.Upload, Form: f.Form, Note: f.Note, OAuth: r.table.oauth,
		Source: r.source(f.Source, at.Key("source"))}
	if f.OAuth != nil {
		m.OAuth = *f.OAuth
	}
	for _, text := range f.Route {
		if verb, path, _ := strings.Cut(text, " "); strings.HasPrefix(path, "/") {
			m.routes = append(m.routes, newRoute(verb, path, id))
			m.Verb, m.Path = cmp.Or(m.Verb, verb), cmp.Or(m.Path, path)
		}
	}
	if f.Lines != nil {
		at := at.Key("lines")
		m.lines = &calls{list: f.Lines.List, body: f.Lines.Body,
			file:  r.expression(f.Lines.File, formula.Answer, formula.Text, at.Key("file")),
			sent:  r.expression(f.Lines.Sent, formula.Request, formula.Text, at.Key("sent")),
			route: r.expression(f.Lines.Route, formula.Item, formula.Text, at.Key("route"))}
	}
	r.price(&m, f, at, list)
	r.addRoutes(&m, at.Key("route"))
	r.needs(&m)
	r.table.listed[id] = m
}

// price checks the price of a method.
func (r *reader) price(m *Method, f fileMethod, at, list grammar.Place) {
	switch {
	case f.Cost != nil:
		m.Costs = r.costs(f.Cost, at.Key("cost"))
		m.Terms = termsOf(m.Costs)
		for _, other := range []string{"take", "hold", "settle", "failed", "usage", "events",
			"free", "async", "lapse", "ttl"} {
			if at.Has(other) {
				at.Key(other).Add("a method with a cost takes no more than that: write take in " +
					"place of cost")
			}
		}
	case f.Take == nil && f.Hold == nil:
		at.Add("write cost, take or hold")
	default:
		rules := r.rules(m, f, at, list)
		constant := !slices.ContainsFunc(rules.takes, func(a amount) bool {
			return !a.units.Constant()
		})
		if !constant || len(rules.holds) > 0 || rules.free != nil {
			m.rules = rules
		}
	}
}

// rules reads a price that depends on the request or on the response.
func (r *reader) rules(m *Method, f fileMethod, at, list grammar.Place) *rules {
	p := &rules{lapse: quota.LapseCharge, ttl: duration(f.TTL, defaultTTL), events: f.Events,
		usage: []string{"usage"}}
	if f.Lapse != "" {
		p.lapse = quota.Lapse(f.Lapse)
	}
	if f.Usage != nil {
		p.usage = f.Usage
	}
	terms := map[string]*Term{}
	for _, e := range f.Take {
		terms[e.key] = &Term{Bucket: e.key}
	}
	for _, a := range r.amounts(f.Take, formula.Request, at.Key("take")) {
		terms[a.bucket].Take = a.units.Text
		p.takes = append(p.takes, a)
		if units, err := a.units.Units(nil); a.units.Constant() && err == nil {
			if units == 0 {
				at.Key("take").Key(a.bucket).Add("0 is no cost: leave it out")
			}
			m.Costs = append(m.Costs, quota.Cost{Bucket: a.bucket, Units: units})
		}
	}
	for _, e := range f.Hold {
		at := at.Key("hold").Key(e.key)
		if terms[e.key] != nil {
			at.Add("bucket %s is in take and in hold", words.Clip(e.key))
		}
		terms[e.key] = &Term{Bucket: e.key}
		if h := r.holding(e.key, e.value, at); h.units != nil {
			p.holds = append(p.holds, h)
			terms[e.key].Hold = h.units.Text
		}
	}
	p.settles = r.truth(f.Settle, terms, at.Key("settle"), true)
	for bucket, units := range p.settles {
		terms[bucket].Settle = units.Text
	}
	if f.Failed != nil {
		p.failed = r.truth(f.Failed, terms, at.Key("failed"), true)
	} else {
		p.failed = r.truth(r.failed, terms, list.Key("failed"), false)
	}
	p.free = r.expression(f.Free, formula.Answer, formula.Condition, at.Key("free"))
	if f.Async != nil {
		at := at.Key("async")
		p.async = &async{headers: f.Async.Headers, lapse: duration(f.Async.Lapse, 0),
			poll:    r.expression(f.Async.Poll, formula.Answer, formula.Text, at.Key("poll")),
			done:    r.expression(f.Async.Done, formula.Answer, formula.Condition, at.Key("done")),
			results: r.expression(f.Async.Results, formula.Answer, formula.Text, at.Key("results"))}
	}
	r.sortCosts(m.Costs)
	for _, term := range terms {
		m.Terms = append(m.Terms, *term)
	}
	slices.SortFunc(m.Terms, func(a, b Term) int { return r.places[a.Bucket] - r.places[b.Bucket] })
	return p
}

// truth reads the expressions for the usage of a call, by bucket. A method's own expressions may
// only name buckets that it takes or holds.
func (r *reader) truth(list entries[string], terms map[string]*Term, at grammar.Place,
	own bool) map[string]*formula.Formula {
	all := map[string]*formula.Formula{}
	for _, a := range r.amounts(list, formula.Answer, at) {
		if terms[a.bucket] != nil {
			all[a.bucket] = a.units
		} else if own {
			at.Key(a.bucket).Add("the method neither takes nor holds it")
		}
	}
	return all
}

// amounts compiles expressions by bucket, and omits invalid ones.
func (r *reader) amounts(list entries[string], kind formula.Kind, at grammar.Place) (all []amount) {
	for _, e := range list {
		r.knownBucket(e.key, at.Key(e.key))
		if units := r.expression(e.value, kind, formula.Number, at.Key(e.key)); units != nil {
			all = append(all, amount{e.key, units})
		}
	}
	return all
}

func (r *reader) holding(bucket string, f fileHold, at grammar.Place) (h holding) {
	r.knownBucket(bucket, at)
	h.bucket = bucket
	if f.Most == "" {
		h.units = r.expression(f.Estimate, formula.Hold, formula.Number, at)
		return h
	}
	h.units = r.expression(f.Estimate, formula.Hold, formula.Number, at.Key("estimate"))
	h.most = r.expression(f.Most, formula.Request, formula.Number, at.Key("most"))
	h.certain = r.expression(f.Certain, formula.Request, formula.Number, at.Key("certain"))
	return h
}

func (r *reader) knownBucket(name string, at grammar.Place) {
	if _, ok := r.places[name]; !ok && name != "" && !r.file.Full() {
		at.Add("bucket %q is not among the buckets%s", words.Clip(name), didYouMean(name, r.places))
	}
}

// costs sorts units by bucket into the order of the buckets.
func (r *reader) costs(list entries[int64], at grammar.Place) (costs []quota.Cost) {
	for _, e := range list {
		r.knownBucket(e.key, at.Key(e.key))
		costs = append(costs, quota.Cost{Bucket: e.key, Units: e.value})
	}
	r.sortCosts(costs)
	return costs
}

func (r *reader) sortCosts(costs []quota.Cost) {
	slices.SortFunc(costs, func(a, b quota.Cost) int {
		return r.places[a.Bucket] - r.places[b.Bucket]
	})
}

// termsOf returns the terms of a fixed price.
func termsOf(costs []quota.Cost) (terms []Term) {
	for _, c := range costs {
		terms = append(terms, Term{Bucket: c.Bucket, Take: strconv.FormatInt(c.Units, 10)})
	}
	return terms
}

// addRoutes adds the routes of a method to the table, also below the upload paths.
func (r *reader) addRoutes(m *Method, at grammar.Place) {
	if m.Upload {
		for _, of := range slices.Clone(m.routes) {
			for _, prefix := range r.table.uploads {
				path := prefix + "/" + strings.Join(of.words, "/")
				m.routes = append(m.routes, newRoute(of.verb, path, m.ID))
			}
		}
	}
	for _, route := range m.routes {
		if other, ok := r.shapes[route.shape()]; ok {
			at.Add("methods %s and %s share the route %s /%s", other, m.ID, route.verb,
				strings.Join(route.words, "/"))
		}
		r.shapes[route.shape()] = m.ID
	}
	r.table.routes = append(r.table.routes, m.routes...)
}

func (r *reader) profile(name string, f fileProfile, at grammar.Place) {
	p := profile{prices: map[string]price{}}
	for i, e := range f.Methods {
		at := at.Key("methods").Pair(i)
		m, ok := r.table.listed[e.key]
		switch {
		case r.file.Full():
			return
		case !ok:
			at.Add("profile %s prices %q, which is not among the methods%s", name, e.key,
				didYouMean(e.key, r.table.listed))
		case !m.Known():
			at.Add("profile %s prices %s, whose price depends on the call", name, e.key)
		}
		p.prices[e.key] = price{r.costs(e.value.Cost, at.Key("cost")),
			r.source(e.value.Source, at.Key("source"))}
	}
	r.table.profiles[name] = p
}
