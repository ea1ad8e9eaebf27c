package costs

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/costs/answer"
	"quotabudget/internal/costs/formula"
	"quotabudget/internal/quota"
	"quotabudget/internal/spell"
	"quotabudget/internal/yamlfile"
)

// errorForm is where an answer that is no success says what is wrong.
type errorForm struct {
	message []string // paths of the message, the first that is there
	word    string   // path of the one word of an error that has nothing else
	reasons []words
	found   []found
	metric  *formula.Formula // the upstream's own name of the bucket that is empty
	since   *formula.Formula // when the upstream's window began
}

// words are the reasons in an object, or in each item of a list.
type words struct {
	items
	name, domain string // keys of an item
}

// items are those at a path that a condition holds of; nil is no condition.
type items struct {
	at    string
	where *formula.Formula
}

// found is an object that expressions know by its name: what is at take in the first of the items.
type found struct {
	items
	name, take string
}

// learning is what answers tell about a bucket.
type learning struct {
	bucket string
	where  *formula.Formula
	window quota.Window // of the limit; zero where the list does not say

	limit, used, remaining, reset place
}

// place is where a value of a response is: in a header, at a path in its JSON, or what an
// expression makes of them.
type place struct {
	header, path string
	policy       string // the item's name, in a header of several
	as           answer.Form
	units        *formula.Formula
	after        time.Duration // always so long
}

// refusing is a rule on answers that refuse.
type refusing struct {
	statuses []statusRange // any of them; empty: any that is no success
	where    *formula.Formula
	kind     Kind
	as       string
	bucket   string
	until    place
	window   bool // until the end of the bucket's window
}

// statusRange is 429, or 5xx.
type statusRange struct{ least, most int }

func (r *reader) errorForm(n *yaml.Node) {
	form := &r.table.errors
	var metric, since *yaml.Node
	r.fields(n, "errors", "errors", yamlfile.Fields{
		"metric":  func(n *yaml.Node) { metric = n },
		"since":   func(n *yaml.Node) { since = n },
		"message": func(n *yaml.Node) { form.message = r.paths(n, "message") },
		"word":    func(n *yaml.Node) { form.word = r.path(n, "word") },
		"reasons": func(n *yaml.Node) {
			r.List(n, "reasons", func(n *yaml.Node) {
				w := words{name: "reason", domain: "domain"}
				known := r.itemFields(&w.items)
				known["name"] = func(n *yaml.Node) { w.name = r.path(n, "name") }
				known["domain"] = func(n *yaml.Node) { w.domain = r.path(n, "domain") }
				r.fields(n, "reasons", "reasons", known, "at")
				form.reasons = append(form.reasons, w)
			})
		},
		"found": func(n *yaml.Node) {
			r.each(n, "found", func(name string, key, n *yaml.Node) {
				if !wordForm.MatchString(name) || r.taken(name) {
					r.Add(key, "found: %q cannot be used as a name, or is in use",
						spell.Clip(name))
				}
				f := found{name: name}
				known := r.itemFields(&f.items)
				known["take"] = func(n *yaml.Node) { f.take = r.path(n, "take") }
				r.fields(n, "found "+spell.Clip(name), "found", known, "at")
				form.found = append(form.found, f)
				r.scope.Found = append(r.scope.Found, name)
			})
		},
	})
	if metric != nil {
		form.metric, _ = r.expression(metric, "metric", formula.Refused, formula.Text)
	}
	if since != nil {
		form.since, _ = r.expression(since, "since", formula.Refused, formula.Text)
	}
}

func (r *reader) itemFields(i *items) yamlfile.Fields {
	return yamlfile.Fields{
		"at": func(n *yaml.Node) { i.at = r.path(n, "at") },
		"where": func(n *yaml.Node) {
			i.where, _ = r.expression(n, "where", formula.Item, formula.Condition)
		},
	}
}

func (r *reader) learning(n *yaml.Node) {
	var l learning
	var window, zone *yaml.Node
	r.fields(n, "learn", "learn", yamlfile.Fields{
		"bucket": func(n *yaml.Node) { l.bucket = r.bucketOf(n) },
		"where": func(n *yaml.Node) {
			l.where, _ = r.expression(n, "where", formula.Answer, formula.Condition)
		},
		"window":    func(n *yaml.Node) { window = n },
		"timezone":  func(n *yaml.Node) { zone = n },
		"limit":     func(n *yaml.Node) { l.limit = r.place(n, "limit", answer.Number) },
		"used":      func(n *yaml.Node) { l.used = r.place(n, "used", answer.Number) },
		"remaining": func(n *yaml.Node) { l.remaining = r.place(n, "remaining", answer.Number) },
		"reset":     func(n *yaml.Node) { l.reset = r.place(n, "reset", "") },
		"source":    func(n *yaml.Node) { r.sourceOf(n) },
		"note":      func(n *yaml.Node) { r.text(n, "note") },
	}, "bucket")
	l.window = r.window(window, zone)
	switch none := (place{}); {
	case l.used != none && l.limit == none:
		r.Add(n, "learn: used needs a limit: write the place of it, or a number")
	case l.remaining == none && l.used == none && l.reset == none:
		r.Add(n, "learn: write remaining or used, or reset")
	}
	r.table.learn = append(r.table.learn, l)
}

func (r *reader) bucketOf(n *yaml.Node) string {
	name := r.text(n, "bucket")
	r.knownBucket(name, n)
	return name
}

// place reads the name of a header, an expression, or {header: NAME} or {path: PATH} with the form
// of what is there: a moment has no usual one.
func (r *reader) place(n *yaml.Node, what string, usual answer.Form) place {
	p := place{as: usual}
	if n.Kind == yaml.ScalarNode && usual != "" {
		if n.Tag == "!!str" && headerForm.MatchString(n.Value) {
			p.header = n.Value
		} else {
			p.units, _ = r.expression(n, what, formula.Answer, formula.Number)
		}
		return p
	}
	r.fields(n, what, "place", yamlfile.Fields{
		"header": func(n *yaml.Node) { p.header = r.form(n, "header", headerForm) },
		"path":   func(n *yaml.Node) { p.path = r.path(n, "path") },
		"policy": func(n *yaml.Node) { p.policy = r.text(n, "policy") },
		"as": func(n *yaml.Node) {
			p.as = answer.Form(r.text(n, "as"))
			if !slices.Contains(answer.Forms(), p.as) {
				r.Add(n, "as: %q is not one of %v%s", spell.Clip(string(p.as)), answer.Forms(),
					spell.DidYouMean(string(p.as), texts(answer.Forms())))
			}
		},
	})
	if (p.header == "") == (p.path == "") {
		r.Add(n, "%s: write header or path, one of them", what)
	}
	if usual == "" && (p.as == "" || p.as == answer.Number) {
		r.Add(n, "%s: as is missing: rfc3339, epoch, duration, seconds, millis or date", what)
	}
	return p
}

func texts[T ~string](all []T) (words []string) {
	for _, one := range all {
		words = append(words, string(one))
	}
	return words
}

func (r *reader) refusing(n *yaml.Node) {
	var f refusing
	var until *yaml.Node
	r.fields(n, "refusal", "refusal", yamlfile.Fields{
		"status": func(n *yaml.Node) { f.statuses = r.statuses(n) },
		"where": func(n *yaml.Node) {
			f.where, _ = r.expression(n, "where", formula.Refused, formula.Condition)
		},
		"kind": func(n *yaml.Node) {
			f.kind = Kind(r.text(n, "kind"))
			if !slices.Contains(kinds(), f.kind) {
				r.Add(n, "kind %q: it is one of %s%s", spell.Clip(string(f.kind)),
					strings.Join(texts(kinds()), ", "),
					spell.DidYouMean(string(f.kind), texts(kinds())))
			}
		},
		"as":     func(n *yaml.Node) { f.as = r.text(n, "as") },
		"bucket": func(n *yaml.Node) { f.bucket = r.bucketOf(n) },
		"until":  func(n *yaml.Node) { until = n },
		"source": func(n *yaml.Node) { r.sourceOf(n) },
		"note":   func(n *yaml.Node) { r.text(n, "note") },
	}, "kind")
	switch {
	case until == nil:
	case until.Kind != yaml.ScalarNode:
		f.until = r.place(until, "until", "")
	case r.text(until, "until") == "window":
		f.window = true
	default:
		var err error
		f.until.after, err = time.ParseDuration(until.Value)
		if err != nil || f.until.after < time.Second || f.until.after > answer.Farthest {
			r.Add(until, "until: write window, a time such as 1m, {header: NAME, as: FORM} or "+
				"{path: PATH, as: FORM}")
		}
	}
	for _, before := range r.table.refusals {
		if before.covers(f) {
			r.Add(n, "refusal: never applies: a rule before it is for the same statuses, "+
				"and has no where")
			break
		}
	}
	r.table.refusals = append(r.table.refusals, f)
}

// covers reports whether a rule holds for every response that a later one is for.
func (f refusing) covers(later refusing) bool {
	if f.where != nil {
		return false
	}
	in := func(s statusRange) bool {
		return slices.ContainsFunc(f.statuses, func(of statusRange) bool {
			return of.least <= s.least && s.most <= of.most
		})
	}
	outside := func(s statusRange) bool { return !in(s) }
	return len(f.statuses) == 0 && !later.ofSuccess() ||
		len(later.statuses) > 0 && !slices.ContainsFunc(later.statuses, outside)
}

// statuses reads 429, 5xx, or a list of those.
func (r *reader) statuses(n *yaml.Node) (all []statusRange) {
	one := func(n *yaml.Node) {
		text := r.text(n, "status")
		digits := strings.TrimSuffix(text, "xx")
		status, err := strconv.Atoi(digits)
		least, most := status, status
		if digits != text {
			least, most = status*100, status*100+99
		}
		if err != nil || least < 100 || most > 599 {
			r.Add(n, "status: %q is not one such as 429 or 5xx", spell.Clip(text))
		}
		all = append(all, statusRange{least, most})
	}
	if n.Kind == yaml.SequenceNode {
		r.List(n, "status", one)
	} else {
		one(n)
	}
	return all
}
