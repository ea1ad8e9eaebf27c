package config

import (
	"strings"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/spell"
	"quotabudget/internal/yamlfile"
)

// limits reads the limits of a credential. A missing list has defaults; an empty one is a mistake.
func (r *reader) limits(n *yaml.Node) []quota.Limit {
	limits := []quota.Limit{}
	seen := make(map[string]bool)
	r.List(n, "limits", func(n *yaml.Node) {
		l, ok := r.limit(n)
		if !ok {
			return
		}
		name := l.Name()
		if l.Across {
			name += " across all"
		}
		if seen[name] {
			r.Add(n, "limits: %s is limited twice", name)
		}
		seen[name] = true
		limits = append(limits, l)
	})
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		r.Add(n, "limits: the list is empty: leave limits out for the upstream's own")
	}
	return limits
}

// limit reads one limit; it is false when its window could not be read.
func (r *reader) limit(n *yaml.Node) (quota.Limit, bool) {
	var l quota.Limit
	var bucket costs.Bucket
	var headroom, window, zone, across *yaml.Node
	before := len(r.Problems)
	r.Fields(n, "limit", yamlfile.Fields{
		"bucket": func(n *yaml.Node) { bucket = r.bucket(n) },
		"units":  func(n *yaml.Node) { l.Units = r.Number(n, "units", 0, quota.MaxUnits) },
		"headroom": func(n *yaml.Node) {
			headroom = n
			l.Headroom = r.Number(n, "headroom", 0, quota.MaxUnits)
		},
		"window":   func(n *yaml.Node) { window = n },
		"timezone": func(n *yaml.Node) { zone = n },
		"across":   func(n *yaml.Node) { across = n },
		"mode":     func(n *yaml.Node) { l.Observe = r.observes(n) },
	}, "bucket", "units", "window")
	l.Bucket = bucket.Name
	if across != nil {
		l.Across = r.across(across, bucket)
	}
	if len(r.Problems) == before && l.Headroom > l.Units {
		r.Add(headroom, "headroom: %d is more than the %d units of the limit", l.Headroom, l.Units)
	}
	var ok bool
	l.Window, ok = r.window(window, zone, bucket)
	if err := l.Check(); ok && err != nil {
		r.Add(window, "window: %s",
			strings.TrimPrefix(err.Error(), quota.ErrMalformed.Error()+": "))
	}
	return l, ok
}

func (r *reader) bucket(n *yaml.Node) costs.Bucket {
	name, ok := r.Text(n, "bucket")
	known := r.bucketsOf(r.table)
	if !ok || known == nil {
		return costs.Bucket{Name: name}
	}
	if b, ok := known[name]; ok {
		return b
	}
	if b, ok := known[quota.WholeOf(name)]; ok {
		return r.part(n, name, b)
	}
	r.Add(n, "bucket: no method draws on %q%s", spell.Clip(name),
		spell.DidYouMean(name, names(known)))
	return costs.Bucket{Name: name}
}

// part is one part of a bucket that is split, as if it were a bucket of its own.
func (r *reader) part(n *yaml.Node, name string, of costs.Bucket) costs.Bucket {
	if err := quota.CheckBucket(name); err != nil {
		r.Add(n, "bucket: %v", err)
	} else if len(of.Split) == 0 {
		r.Add(n, "bucket: %s has no parts: write %[1]s", of.Name)
	}
	of.Name, of.Split = name, nil
	return of
}

// across reads the one word that it may have: the limit holds for all parts of its bucket together.
func (r *reader) across(n *yaml.Node, bucket costs.Bucket) bool {
	word, ok := r.Text(n, "across")
	switch {
	case ok && word != "all":
		r.Add(n, "across: %q: write all, for the sum of a bucket's parts", spell.Clip(word))
	case ok && r.table != nil && len(bucket.Split) == 0:
		r.Add(n, "across: bucket %s has no parts: leave it out", spell.Clip(bucket.Name))
	}
	return ok
}

// window reads window and timezone. A calendar window without a timezone is in that of the bucket's
// own reset.
func (r *reader) window(window, zone *yaml.Node, bucket costs.Bucket) (quota.Window, bool) {
	if window == nil {
		return quota.Window{}, false
	}
	text, ok := r.Text(window, "window")
	if !ok {
		return quota.Window{}, false
	}
	name, at, what := "", window, "window"
	switch {
	case zone != nil:
		if name, ok = r.Text(zone, "timezone"); !ok {
			return quota.Window{}, false
		}
		if quota.IsCalendarWord(text) {
			at, what = zone, "timezone"
		}
	case bucket.Reset.IsCalendar() && quota.IsCalendarWord(text):
		name = bucket.Reset.ZoneName()
	}
	w, err := quota.ParseWindow(text, name)
	if err != nil {
		r.Add(at, "%s: %v", what, err)
	}
	return w, err == nil
}
