package costs

import (
	"cmp"
	"regexp"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/costs/formula"
	"quotabudget/internal/grammar"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// fact is a text about a call that chooses its bucket part or its price, such as the model.
type fact struct {
	name    string
	Request *formula.Formula // value in the request
	// Response is the value in the response, which replaces that in the request; or nil.
	Response *formula.Formula
}

// UnmarshalYAML reads an expression, or {request, response}.
func (f *fact) UnmarshalYAML(n *yaml.Node) error {
	type plain fact
	return grammar.DecodeEither(n, &f.Request, (*plain)(f))
}

// wordForm matches names of facts and tables, which are used in expressions.
var wordForm = regexp.MustCompile(`^[a-z][a-z0-9_]{0,62}$`)

// methodFact is a fact of every request: the method that it calls.
const methodFact = "method"

func (r *reader) fact(name string, f fact, at grammar.Place) {
	if !r.free(name, at) {
		return
	}
	r.splits = append(r.splits, name)
	request := at
	if f.Response != nil {
		request = at.Key("request")
	}
	r.compile(&f.Request, formula.Request, formula.Text, request)
	r.compile(&f.Response, formula.Answer, formula.Text, at.Key("response"))
	if f.name = name; f.Request != nil {
		r.table.facts = append(r.table.facts, f)
	}
}

// free reports whether a name is still unused in expressions, and adds a problem if not.
func (r *reader) free(name string, at grammar.Place) bool {
	if wordForm.MatchString(name) && !r.names[name] && !formula.Reserved(name) {
		r.names[name] = true
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
	b := f.Bucket
	b.Name, b.Unit, b.Source = name, unitOf(f.Unit), r.source(f.Source, at.Key("source"))
	for i, fact := range f.Split {
		if fact != methodFact && !slices.Contains(r.splits, fact) {
			at.Key("split").Item(i).Add("%q is not among the facts of split, nor %s%s",
				words.Clip(fact), methodFact, words.DidYouMean(fact, r.splits))
		}
	}
	if word := cmp.Or(f.Reset, "day"); f.Timezone != "" && !quota.IsCalendarWord(word) {
		at.Key("reset").Add("%q is not a calendar window such as day", words.Clip(word))
	} else if f.Timezone != "" {
		b.Reset = window(word, f.Timezone, at.Key("timezone"))
	}
	for i, l := range f.Limits {
		at := at.Key("limits").Item(i)
		if l.Headroom > l.Units {
			at.Key("headroom").Add("%d is more than the %d units of the limit", l.Headroom, l.Units)
		}
		b.Limits = append(b.Limits, quota.Limit{Bucket: name, Units: l.Units, Headroom: l.Headroom,
			Window: window(l.Window, l.Timezone, at.Key("window"))})
	}
	if f.Daily != nil {
		b.Daily, b.Limits = *f.Daily, nil
		for _, w := range []quota.Window{quota.Sliding(24 * time.Hour), b.Reset} {
			b.Limits = append(b.Limits, quota.Limit{Bucket: name, Units: b.Daily,
				Headroom: b.Daily * defaultHeadroom / 100, Window: w})
		}
	}
	if other, ok := r.metrics[b.Metric]; ok && b.Metric != "" {
		at.Key("metric").Add("bucket %s has the metric of %s", b.Name, other)
	}
	r.metrics[b.Metric], r.places[b.Name] = b.Name, len(r.table.buckets)
	r.table.buckets = append(r.table.buckets, b)
}
