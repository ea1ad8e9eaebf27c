package costs

import (
	"regexp"
	"slices"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/costs/formula"
	"quotabudget/internal/quota"
	"quotabudget/internal/spell"
	"quotabudget/internal/yamlfile"
)

// fact is a text about a call that chooses its bucket part or its price, such as the model.
type fact struct {
	name string
	text *formula.Formula // value in the request
	// response is the value in the response, which replaces text; or nil.
	response *formula.Formula
}

// number is a named number of a request that several expressions share.
type number struct {
	name  string
	value *formula.Formula
}

// wordForm is what facts and tables may be called: their names stand in expressions.
var wordForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

// methodFact is the fact that each request has: the method that it calls.
const methodFact = "method"

// fact reads a fact: an expression, or {request, response}.
func (r *reader) fact(name string, key, n *yaml.Node) {
	if !r.free(name, key, "split") {
		return
	}
	r.splits = append(r.splits, name)
	f := fact{name: name}
	read := func(kind formula.Kind, into **formula.Formula) func(*yaml.Node) {
		return func(n *yaml.Node) {
			*into, _ = r.expression(n, "split "+name, kind, formula.Text)
		}
	}
	if n.Kind == yaml.MappingNode {
		r.fields(n, "split "+spell.Clip(name), "fact", yamlfile.Fields{
			"request":  read(formula.Request, &f.text),
			"response": read(formula.Answer, &f.response),
		}, "request", "response")
	} else {
		read(formula.Request, &f.text)(n)
	}
	if f.text != nil {
		r.table.facts = append(r.table.facts, f)
	}
}

// number reads a number that several expressions share.
func (r *reader) number(name string, key, n *yaml.Node) {
	if !r.free(name, key, "numbers") {
		return
	}
	if f, ok := r.expression(n, "numbers "+name, formula.Request, formula.Number); ok {
		r.table.numbers = append(r.table.numbers, number{name, f})
	}
}

// free reports whether a name is still unused in expressions, and adds a problem if not.
func (r *reader) free(name string, key *yaml.Node, what string) bool {
	if wordForm.MatchString(name) && !r.taken(name) {
		return true
	}
	r.Add(key, "%s: %q cannot be used as a name, or is in use", what, spell.Clip(name))
	return false
}

// taken reports whether a name means something in expressions already.
func (r *reader) taken(name string) bool {
	_, table := r.scope.Tables[name]
	same := func(n number) bool { return n.name == name }
	return table || slices.ContainsFunc(r.table.numbers, same) ||
		slices.Contains(r.splits, name) || formula.Reserved(name)
}

func (r *reader) bucket(name string, key, n *yaml.Node) {
	if err := quota.CheckName(name); err != nil {
		r.Add(key, "bucket %v", err)
	}
	what := "bucket " + spell.Clip(name)
	b := Bucket{Name: name, Required: r.old, Unit: Unit{Name: "units", Scale: 1}}
	var daily, reset, zone, limits, source *yaml.Node
	required := []string{}
	if r.old {
		required = []string{"metric", "daily", "timezone"}
	}
	r.fields(n, what, "bucket", yamlfile.Fields{
		"unit":   func(n *yaml.Node) { b.Unit = r.unit(n) },
		"metric": func(n *yaml.Node) { b.Metric = r.text(n, "metric") },
		"split":  func(n *yaml.Node) { b.Split = r.splitOf(n) },
		"daily": func(n *yaml.Node) {
			daily, b.Daily = n, r.Number(n, "daily", 0, quota.MaxUnits)
		},
		"reset":    func(n *yaml.Node) { reset = n },
		"timezone": func(n *yaml.Node) { zone = n },
		"limits":   func(n *yaml.Node) { limits = n },
		"required": func(n *yaml.Node) { b.Required = r.Bool(n, "required") },
		"source":   func(n *yaml.Node) { source, b.Source = n, r.sourceOf(n) },
		"note":     func(n *yaml.Node) { b.Note = r.text(n, "note") },
	}, required...)
	b.Reset = r.reset(reset, zone)
	switch {
	case daily != nil && limits != nil:
		r.Add(n, "%s: write daily or limits, one of them", what)
	case limits != nil:
		r.List(limits, "limits", func(n *yaml.Node) { b.Limits = append(b.Limits, r.limit(n, b)) })
	case daily != nil && !b.Reset.IsCalendar() && !r.old:
		r.Add(n, "%s: timezone is missing: in which the day of its units begins", what)
	case daily != nil && b.Reset.IsCalendar():
		b.Limits = b.dailyLimits()
	}
	if b.Required && len(b.Limits) == 0 && !r.old {
		r.Add(n, "%s: it is required, and has no limits: write daily or limits", what)
	}
	if len(b.Limits) > 0 && source == nil && !r.old {
		r.Add(n, "%s: source is missing", what)
	}
	r.addBucket(n, b)
}

func (r *reader) addBucket(n *yaml.Node, b Bucket) {
	if other, ok := r.metrics[b.Metric]; ok && (b.Metric != "" || r.old) {
		r.Add(n, "bucket %s has the metric of %s", b.Name, other)
	}
	r.metrics[b.Metric], r.places[b.Name] = b.Name, len(r.table.buckets)
	r.table.buckets = append(r.table.buckets, b)
}

// limit reads what a new account is given.
func (r *reader) limit(n *yaml.Node, b Bucket) quota.Limit {
	l := quota.Limit{Bucket: b.Name}
	var window, zone *yaml.Node
	r.fields(n, "limit", "limit", yamlfile.Fields{
		"units":    func(n *yaml.Node) { l.Units = r.Number(n, "units", 0, quota.MaxUnits) },
		"headroom": func(n *yaml.Node) { l.Headroom = r.Number(n, "headroom", 0, quota.MaxUnits) },
		"window":   func(n *yaml.Node) { window = n },
		"timezone": func(n *yaml.Node) { zone = n },
	}, "units", "window")
	if l.Headroom > l.Units {
		r.Add(n, "headroom: %d is more than the %d units of the limit", l.Headroom, l.Units)
	}
	l.Window = r.window(window, zone)
	return l
}

func (r *reader) window(window, zone *yaml.Node) (w quota.Window) {
	if window == nil {
		return w
	}
	name := ""
	if zone != nil {
		name = r.text(zone, "timezone")
	}
	w, err := quota.ParseWindow(r.text(window, "window"), name)
	if err != nil {
		r.Add(window, "window: %v", err)
	}
	return w
}

// reset reads the calendar window by which the upstream counts a bucket: a day, if it is not said.
func (r *reader) reset(reset, zone *yaml.Node) (w quota.Window) {
	word := "day"
	switch {
	case zone == nil && reset != nil:
		r.Add(reset, "reset: timezone is missing")
		return w
	case zone == nil:
		return w
	case reset != nil:
		word = r.text(reset, "reset")
	}
	w, err := quota.ParseWindow(word, r.text(zone, "timezone"))
	switch {
	case reset != nil && (err != nil || !w.IsCalendar()):
		r.Add(reset, "reset: %q is not a calendar window such as day", spell.Clip(word))
	case err != nil:
		r.Add(zone, "timezone: %v", err)
	}
	return w
}

// splitOf reads the facts by which a bucket is split.
func (r *reader) splitOf(n *yaml.Node) []string {
	names := r.texts(n, "split")
	for _, name := range names {
		if name != methodFact && !slices.Contains(r.splits, name) {
			r.Add(n, "split: %q is not among the facts of split, nor %s%s", spell.Clip(name),
				methodFact, spell.DidYouMean(name, r.splits))
		}
	}
	return names
}

func (r *reader) unit(n *yaml.Node) Unit {
	u, err := parseUnit(r.text(n, "unit"))
	if err != nil {
		r.Add(n, "unit: %v", err)
	}
	return u
}
