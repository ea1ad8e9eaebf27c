package costs

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/grammar"
	"quotabudget/internal/quota"
)

// errorForm locates the reason in an error response.
type errorForm struct {
	Message []string // paths of the message; the first that exists counts
	Word    string   // path of the word of an error without a reason
	Reasons []struct {
		items        `yaml:",inline"`
		Name, Domain string // keys of an item
	}
	Found  entries[found]
	Metric *formula // the upstream's name of the exhausted bucket
	Since  *formula // when the upstream's window began
}

// items locates the objects at a path that meet a condition; nil is no condition.
type items struct {
	At    string
	Where *formula
}

// found is a named object in expressions: the value at Take in the first of the items.
type found struct {
	items `yaml:",inline"`
	Take  string
}

// learning is a rule for what responses report about a bucket.
type learning struct {
	Bucket, Source, Timezone string
	Where                    *formula
	Window                   string // of the limit

	Limit, Used, Remaining, Reset place

	window quota.Window // parsed; zero if the list has none
}

// formulas returns the rule's expressions. Some are nil.
func (l learning) formulas() []*formula {
	return []*formula{l.Where, l.Limit.units, l.Used.units, l.Remaining.units}
}

// place locates a value in a response: in a header, at a path in its JSON, or by an expression.
type place struct {
	Header, Path string
	Policy       string // name of the item, in a header with several
	As           Form

	scalar yaml.Node // the place as written, if it is not a mapping
	units  *formula
	after  time.Duration // fixed duration
}

// UnmarshalYAML reads a scalar, whose meaning depends on its key, or a mapping.
func (p *place) UnmarshalYAML(n *yaml.Node) error {
	type plain place
	return grammar.DecodeEither(n, &p.scalar, (*plain)(p))
}

// refusing is a rule for responses that refuse a call.
type refusing struct {
	Status         statuses // empty: any from 300 on
	Where          *formula
	Kind           Kind
	As             string
	Bucket, Source string
	Until          place
	window         bool // until the end of the bucket's window
}

// statusRange is a status or a class of them, such as 429 or 5xx.
type statusRange struct{ first, last int }

// statuses is a status or several.
type statuses []statusRange

// UnmarshalYAML reads texts such as 429 and 5xx. The schema allows nothing else.
func (s *statuses) UnmarshalYAML(n *yaml.Node) error {
	var list grammar.List[string]
	err := n.Decode(&list)
	for _, text := range list {
		digits, class := strings.CutSuffix(text, "xx")
		first, _ := strconv.Atoi(digits)
		last := first
		if class {
			first, last = first*100, first*100+99
		}
		*s = append(*s, statusRange{first, last})
	}
	return err
}

func (r *reader) errorForm(form *errorForm, at grammar.Place) {
	for i := range form.Reasons {
		w := &form.Reasons[i]
		r.compile(&w.Where, scopeItem, resultCondition, at.Key("reasons").Item(i).Key("where"))
		w.Name, w.Domain = cmp.Or(w.Name, "reason"), cmp.Or(w.Domain, "domain")
	}
	for i := range form.Found {
		e, at := &form.Found[i], at.Key("found").Pair(i)
		r.free(e.key, at)
		r.compile(&e.value.Where, scopeItem, resultCondition, at.Key("where"))
		r.scope.Found = append(r.scope.Found, e.key)
	}
	r.compile(&form.Metric, scopeRefused, resultText, at.Key("metric"))
	r.compile(&form.Since, scopeRefused, resultText, at.Key("since"))
}

func (r *reader) learning(l *learning, at grammar.Place) {
	r.knownBucket(l.Bucket, at.Key("bucket"))
	r.source(l.Source, at.Key("source"))
	r.compile(&l.Where, scopeAnswer, resultCondition, at.Key("where"))
	l.window = window(l.Window, l.Timezone, at.Key("window"))
	r.amount(&l.Limit, at.Key("limit"))
	r.amount(&l.Used, at.Key("used"))
	r.amount(&l.Remaining, at.Key("remaining"))
}

// amount completes the place of a number: a header, an expression, or a header or path with a form.
func (r *reader) amount(p *place, at grammar.Place) {
	p.As = cmp.Or(p.As, FormNumber)
	switch text := p.scalar.Value; {
	case text == "":
	case p.scalar.ShortTag() == "!!str" && headerForm.MatchString(text):
		p.Header = text
	default:
		p.units = &formula{Text: text}
		r.compile(&p.units, scopeAnswer, resultNumber, at)
	}
}

func (r *reader) refusing(rule *refusing, before []refusing, at grammar.Place) {
	r.knownBucket(rule.Bucket, at.Key("bucket"))
	r.source(rule.Source, at.Key("source"))
	r.compile(&rule.Where, scopeRefused, resultCondition, at.Key("where"))
	rule.window = rule.Until.scalar.Value == "window"
	rule.Until.after, _ = time.ParseDuration(rule.Until.scalar.Value) // otherwise a place
	if slices.ContainsFunc(before, func(b refusing) bool { return b.covers(*rule) }) {
		at.Add("never applies: a rule before it is for the same statuses, and has no where")
	}
}

// covers reports whether a rule applies to every response to which a later one applies.
func (f refusing) covers(later refusing) bool {
	outside := func(s statusRange) bool {
		return !slices.ContainsFunc(f.Status, func(listed statusRange) bool {
			return listed.first <= s.first && s.last <= listed.last
		})
	}
	return f.Where == nil && (len(f.Status) == 0 && !later.ofSuccess() ||
		len(later.Status) > 0 && !slices.ContainsFunc(later.Status, outside))
}
