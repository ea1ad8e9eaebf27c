package costs

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"quotabudget/internal/grammar"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// method checks a method, and adds it to the table.
func (r *reader) method(id string, f fileMethod, at, list grammar.Place) {
	if !idForm.MatchString(id) {
		at.Add("%q is not the ID of a method, such as messages.create", words.Clip(id))
	}
	m := Method{ID: id, Upload: f.Upload, Form: f.Form, Note: f.Note, OAuth: r.table.OAuth,
		Source: r.source(f.Source, at.Key("source"))}
	if f.OAuth != nil {
		m.OAuth = *f.OAuth
	}
	for _, text := range f.Route {
		if verb, path, _ := strings.Cut(text, " "); strings.HasPrefix(path, "/") {
			m.routes = append(m.routes, route{verb, strings.Split(path[1:], "/"), id})
			m.Verb, m.Path = cmp.Or(m.Verb, verb), cmp.Or(m.Path, path)
		}
	}
	if m.lines = f.Lines; m.lines != nil {
		at := at.Key("lines")
		r.compile(&m.lines.File, scopeAnswer, resultText, at.Key("file"))
		r.compile(&m.lines.Sent, scopeRequest, resultText, at.Key("sent"))
		r.compile(&m.lines.Route, scopeItem, resultText, at.Key("route"))
	}
	if f.Cost != nil {
		m.Costs = r.costs(f.Cost, at.Key("cost"))
		m.Terms = termsOf(m.Costs)
	} else if rules := r.rules(&m, f, at, list); rules.vary() {
		m.rules = rules
	}
	r.addRoutes(&m, at.Key("route"))
	r.table.needs(&m)
	r.table.listed[id] = m
}

// rules reads a price that depends on the request or on the response.
func (r *reader) rules(m *Method, f fileMethod, at, list grammar.Place) *rules {
	p := &rules{lapse: cmp.Or(f.Lapse, quota.LapseCharge), ttl: cmp.Or(f.TTL, defaultTTL),
		events: f.Events, usage: f.Usage, free: f.Free, async: f.Async}
	if p.usage == nil {
		p.usage = []string{"usage"}
	}
	terms := map[string]*Term{}
	for _, e := range f.Take {
		terms[e.key] = &Term{Bucket: e.key}
	}
	for _, a := range r.amounts(f.Take, scopeRequest, at.Key("take")) {
		terms[a.key].Take = a.value.Text
		p.takes = append(p.takes, a)
		if units, err := a.value.Units(nil); a.value.Constant() && err == nil {
			if units == 0 {
				at.Key("take").Key(a.key).Add("0 is no cost: leave it out")
			}
			m.Costs = append(m.Costs, quota.Cost{Bucket: a.key, Units: units})
		}
	}
	for _, e := range f.Hold {
		at := at.Key("hold").Key(e.key)
		if terms[e.key] != nil {
			at.Add("bucket %s is in take and in hold", words.Clip(e.key))
		}
		terms[e.key] = &Term{Bucket: e.key}
		r.knownBucket(e.key, at)
		h, estimate := e.value, at
		h.bucket = e.key
		if h.Most != nil {
			estimate = at.Key("estimate")
		}
		r.compile(&h.Estimate, scopeHold, resultNumber, estimate)
		r.compile(&h.Most, scopeRequest, resultNumber, at.Key("most"))
		r.compile(&h.Certain, scopeRequest, resultNumber, at.Key("certain"))
		if h.Estimate != nil {
			p.holds = append(p.holds, h)
			terms[e.key].Hold = h.Estimate.Text
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
	r.compile(&p.free, scopeAnswer, resultCondition, at.Key("free"))
	if p.async != nil {
		at := at.Key("async")
		r.compile(&p.async.Poll, scopeAnswer, resultText, at.Key("poll"))
		r.compile(&p.async.Done, scopeAnswer, resultCondition, at.Key("done"))
		r.compile(&p.async.Results, scopeAnswer, resultText, at.Key("results"))
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
func (r *reader) truth(list formulas, terms map[string]*Term, at grammar.Place,
	own bool) map[string]*formula {
	all := map[string]*formula{}
	for _, a := range r.amounts(list, scopeAnswer, at) {
		if terms[a.key] != nil {
			all[a.key] = a.value
		} else if own {
			at.Key(a.key).Add("the method neither takes nor holds it")
		}
	}
	return all
}

// amounts compiles expressions by bucket, and omits invalid ones.
func (r *reader) amounts(list formulas, kind scopeKind, at grammar.Place) (all formulas) {
	for _, e := range list {
		at := at.Key(e.key)
		r.knownBucket(e.key, at)
		if r.compile(&e.value, kind, resultNumber, at); e.value != nil {
			all = append(all, e)
		}
	}
	return all
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
		for _, form := range slices.Clone(m.routes) {
			for _, prefix := range r.table.Uploads {
				words := append(strings.Split(prefix[1:], "/"), form.words...)
				m.routes = append(m.routes, route{form.verb, words, m.ID})
			}
		}
	}
	for _, route := range m.routes {
		path := strings.Join(route.words, "/")
		shape := route.verb + " " + nameForm.ReplaceAllString(path, "{")
		if other, ok := r.shapes[shape]; ok {
			at.Add("methods %s and %s share the route %s /%s", other, m.ID, route.verb, path)
		}
		r.shapes[shape] = m.ID
	}
	r.table.routes = append(r.table.routes, m.routes...)
}

func (r *reader) profile(name string, f fileProfile, at grammar.Place) {
	p := profile{}
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
		p[e.key] = price{r.costs(e.value.Cost, at.Key("cost")),
			r.source(e.value.Source, at.Key("source"))}
	}
	r.table.profiles[name] = p
}
