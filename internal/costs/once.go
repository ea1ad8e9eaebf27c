package costs

import (
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/costs/answer"
	"quotabudget/internal/costs/formula"
	"quotabudget/internal/quota"
	"quotabudget/internal/yamlfile"
)

// once is what an upstream bills once in a window, however often it answers it.
type once struct {
	window quota.Window
	kinds  []resource
}

// resource is the items at a path, identified by their kind and the text at id.
type resource struct {
	items
	kind, id string
	takes    []amount // by one of them
}

// once reads the resources that are billed once. It calls read for each bucket and its units.
func (r *reader) once(n *yaml.Node, read func(amount, *yaml.Node, string)) *once {
	if n == nil {
		return nil
	}
	var o once
	var window, zone *yaml.Node
	r.fields(n, "once", "once", yamlfile.Fields{
		"window":   func(n *yaml.Node) { window = n },
		"timezone": func(n *yaml.Node) { zone = n },
		"items": func(n *yaml.Node) {
			r.List(n, "items", func(n *yaml.Node) {
				o.kinds = append(o.kinds, r.resource(n, read))
			})
		},
	}, "window", "items")
	before := len(r.Problems)
	o.window = r.window(window, zone)
	if window != nil && len(r.Problems) == before && !o.window.IsCalendar() {
		r.Add(window, "window of once: %q is not one of the calendar, such as day",
			o.window.Text())
	}
	return &o
}

func (r *reader) resource(n *yaml.Node, read func(amount, *yaml.Node, string)) (of resource) {
	var take *yaml.Node
	known := r.itemFields(&of.items)
	known["kind"] = func(n *yaml.Node) { of.kind = r.text(n, "kind") }
	known["id"] = func(n *yaml.Node) { of.id = r.path(n, "id") }
	known["take"] = func(n *yaml.Node) { take = n }
	r.fields(n, "item of once", "resource", known, "at", "kind", "id", "take")
	r.amounts(take, "take", formula.Answer, func(a amount, key *yaml.Node) {
		if a.units != nil {
			of.takes = append(of.takes, a)
		}
		read(a, key, of.kind)
	})
	return of
}

// takes reports whether any of the resources is paid for from the bucket.
func (o *once) takes(bucket string) bool {
	if o == nil {
		return false
	}
	for _, kind := range o.kinds {
		for _, a := range kind.takes {
			if a.bucket == bucket {
				return true
			}
		}
	}
	return false
}

// formulas are all that the resources take.
func (o *once) formulas() (all []*formula.Formula) {
	if o == nil {
		return nil
	}
	for _, kind := range o.kinds {
		for _, a := range kind.takes {
			all = append(all, a.units)
		}
	}
	return all
}

// found returns the distinct resources of a response, and what they take together. A resource
// without an id counts only in the sum.
func (o *once) found(doc any, env formula.Env, part func(bucket string) string) (
	all []Resource, sum map[string]int64, err error) {
	sum = map[string]int64{}
	listed := map[string]bool{}
	for _, kind := range o.kinds {
		units := map[string]int64{}
		for _, a := range kind.takes {
			if units[a.bucket], err = a.units.Units(env); err != nil {
				return nil, nil, err
			}
		}
		for _, item := range answer.Items(doc, kind.at) {
			if kind.where != nil && !kind.where.Holds(formula.Env{"item": item}) {
				continue
			}
			text, named := answer.Text(item, kind.id)
			id := kind.kind + " " + text
			if named && listed[id] {
				continue
			}
			one := Resource{ID: id}
			for bucket, n := range units {
				sum[bucket] += n
				one.Costs = append(one.Costs, quota.Cost{Bucket: part(bucket), Units: n})
			}
			if named {
				listed[id] = true
				all = append(all, one)
			}
		}
	}
	return all, sum, nil
}

// addOnce notes what each new resource of a kind takes. A kind may be at several places.
func (t *Term) addOnce(a amount, kind string, in Unit) {
	text := a.units.Text
	if units, err := a.units.Units(nil); err == nil && a.units.Constant() {
		text = in.short(units)
	}
	text += " for each new " + kind
	if !slices.Contains(strings.Split(t.Settle, " + "), text) {
		t.Settle = strings.TrimPrefix(t.Settle+" + "+text, " + ")
	}
}
