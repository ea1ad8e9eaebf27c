package costs

import (
	"regexp"
	"slices"

	"quotabudget/internal/costs/formula"
	"quotabudget/internal/grammar"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
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

// wordForm matches names of facts and tables, which are used in expressions.
var wordForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

// methodFact is a fact of every request: the method that it calls.
const methodFact = "method"

func (r *reader) fact(name string, f fileFact, at grammar.Place) {
	if !r.free(name, at) {
		return
	}
	r.splits = append(r.splits, name)
	if f.Response == "" {
		if text := r.expression(f.Request, formula.Request, formula.Text, at); text != nil {
			r.table.facts = append(r.table.facts, fact{name: name, text: text})
		}
		return
	}
	text := r.expression(f.Request, formula.Request, formula.Text, at.Key("request"))
	response := r.expression(f.Response, formula.Answer, formula.Text, at.Key("response"))
	if text != nil {
		r.table.facts = append(r.table.facts, fact{name, text, response})
	}
}

func (r *reader) number(name, text string, at grammar.Place) {
	if !r.free(name, at) {
		return
	}
	if f := r.expression(text, formula.Request, formula.Number, at); f != nil {
		r.table.numbers = append(r.table.numbers, number{name, f})
	}
}

// free reports whether a name is still unused in expressions, and adds a problem if not.
func (r *reader) free(name string, at grammar.Place) bool {
	_, table := r.scope.Tables[name]
	same := func(n number) bool { return n.name == name }
	if wordForm.MatchString(name) && !table && !slices.ContainsFunc(r.table.numbers, same) &&
		!slices.Contains(r.splits, name) && !formula.Reserved(name) {
		return true
	}
	at.Add("%q cannot be used as a name, or is in use", words.Clip(name))
	return false
}

// bucket checks a bucket, and adds it to the table.
func (r *reader) bucket(name string, f fileBucket, at grammar.Place) {
	if err := quota.CheckName(name); err != nil {
		at.Add("%v", err)
	}
	b := Bucket{Name: name, Metric: f.Metric, Split: f.Split, Required: f.Required, Note: f.Note,
		Unit: unitOf(f.Unit), Source: r.source(f.Source, at.Key("source"))}
	for i, fact := range f.Split {
		if fact != methodFact && !slices.Contains(r.splits, fact) {
			at.Key("split").Item(i).Add("%q is not among the facts of split, nor %s%s",
				words.Clip(fact), methodFact, words.DidYouMean(fact, r.splits))
		}
	}
	switch {
	case f.Timezone != "":
		b.Reset = reset(f, at)
	case f.Reset != "":
		at.Key("reset").Add("timezone is missing")
	}
	switch {
	case f.Daily != nil && f.Limits != nil:
		at.Add("write daily or limits, one of them")
	case f.Limits != nil:
		for i, l := range f.Limits {
			b.Limits = append(b.Limits, limit(l, b, at.Key("limits").Item(i)))
		}
	case f.Daily != nil && f.Timezone == "":
		at.Add("timezone is missing: in which the day of its units begins")
	case f.Daily != nil:
		b.Daily = *f.Daily
		b.Limits = b.dailyLimits()
	}
	if b.Required && len(b.Limits) == 0 && !at.Key("daily").Refused() {
		at.Add("it is required, and has no limits: write daily or limits")
	}
	if len(b.Limits) > 0 && f.Source == "" {
		at.Add("source is missing")
	}
	if other, ok := r.metrics[b.Metric]; ok && b.Metric != "" {
		at.Key("metric").Add("bucket %s has the metric of %s", b.Name, other)
	}
	r.metrics[b.Metric], r.places[b.Name] = b.Name, len(r.table.buckets)
	r.table.buckets = append(r.table.buckets, b)
}

// limit checks a limit of a new account.
func limit(f fileLimit, b Bucket, at grammar.Place) quota.Limit {
	if f.Headroom > f.Units {
		at.Key("headroom").Add("%d is more than the %d units of the limit", f.Headroom, f.Units)
	}
	return quota.Limit{Bucket: b.Name, Units: f.Units, Headroom: f.Headroom,
		Window: window(f.Window, f.Timezone, at.Key("window"))}
}

// reset returns the calendar window in which the upstream counts a bucket, by default a day.
func reset(f fileBucket, at grammar.Place) quota.Window {
	word := f.Reset
	if word == "" {
		word = "day"
	}
	if !quota.IsCalendarWord(word) {
		at.Key("reset").Add("%q is not a calendar window such as day", words.Clip(word))
		return quota.Window{}
	}
	return window(word, f.Timezone, at.Key("timezone"))
}
