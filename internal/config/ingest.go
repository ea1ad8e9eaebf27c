package config

import (
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/regions"
	"quotabudget/internal/spell"
)

func (r *reader) ingest(n *yaml.Node) {
	in := &r.cfg.Ingest
	var jobs *yaml.Node
	known := fields{
		"credential": func(n *yaml.Node) { in.Credential = r.ingestCredential(n) },
		"regions":    func(n *yaml.Node) { in.Regions = r.regions(n) },
		"pages":      func(n *yaml.Node) { in.Pages = int(r.number(n, "pages", 1, 1000)) },
		"parallel":   func(n *yaml.Node) { in.Parallel = int(r.number(n, "parallel", 1, MaxParallel)) },
		"schedule":   func(n *yaml.Node) { in.Schedule = r.schedule(n) },
		"timezone":   func(n *yaml.Node) { in.Timezone = r.zone(n) },
		"jobs":       func(n *yaml.Node) { jobs = n },
	}
	r.daemonFields(known)
	r.fields(n, "ingest", known)
	if jobs != nil { // they fall back on what stands beside them, before or after
		r.jobs(jobs)
	}
	r.checkWeights(n)
}

func (r *reader) ingestCredential(n *yaml.Node) string {
	name, ok := r.text(n, "credential")
	if !ok {
		return ""
	}
	names := []string{}
	for _, c := range r.cfg.Credentials {
		names = append(names, c.Name)
	}
	if len(names) == 0 {
		names = append(names, DefaultCredential)
	}
	if !slices.Contains(names, name) {
		r.add(n, "credential: no credential %q%s", clip(name), spell.DidYouMean(name, names))
	}
	return name
}

func (r *reader) regions(n *yaml.Node) []regions.Region {
	var list []regions.Region
	r.list(n, "regions", func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode && strings.TrimSpace(n.Value) == "" {
			r.add(n, "regions: an item is empty: write a code such as US")
			return
		}
		code, ok := r.text(n, "regions")
		if !ok {
			return
		}
		region, err := regions.Parse(code)
		switch {
		case err != nil:
			r.add(n, "regions: %v", err)
		case slices.Contains(list, region):
			r.add(n, "regions: %s is listed twice", region)
		default:
			list = append(list, region)
		}
	})
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		r.add(n, "regions: the list is empty")
	}
	return list
}

func (r *reader) zone(n *yaml.Node) *time.Location {
	name, ok := r.text(n, "timezone")
	if !ok {
		return nil
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		r.add(n, "timezone: %q is not an IANA time zone such as Europe/Berlin", clip(name))
	}
	return zone
}

func (r *reader) duration(n *yaml.Node, what string) time.Duration {
	text, ok := r.text(n, what)
	if !ok {
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 || d > 24*time.Hour {
		r.add(n, "%s: %q is not a duration from 0s to 24h, such as 5m", what, clip(text))
	}
	return d
}
