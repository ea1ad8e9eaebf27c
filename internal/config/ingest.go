package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/regions"
	"quotabudget/internal/spell"
	"quotabudget/internal/yamlfile"
)

func (r *reader) ingest(n *yaml.Node) {
	in := &r.cfg.Ingest
	var jobs *yaml.Node
	known := yamlfile.Fields{
		"credential": func(n *yaml.Node) { in.Credential = r.ingestCredential(n) },
		"regions":    func(n *yaml.Node) { in.Regions = r.regions(n) },
		"pages":      func(n *yaml.Node) { in.Pages = int(r.Number(n, "pages", 1, 1000)) },
		"parallel": func(n *yaml.Node) {
			in.Parallel = int(r.Number(n, "parallel", 1, MaxParallel))
		},
		"schedule": func(n *yaml.Node) { in.Schedule = r.schedule(n) },
		"timezone": func(n *yaml.Node) { in.Timezone = r.zone(n) },
		"jobs":     func(n *yaml.Node) { jobs = n },
	}
	r.daemonFields(known)
	r.Fields(n, "ingest", known)
	if jobs != nil { // their defaults are the keys beside them, before or after
		r.regionJobs(jobs)
	}
	r.checkWeights(n)
}

func (r *reader) ingestCredential(n *yaml.Node) string {
	name, ok := r.Text(n, "credential")
	if !ok {
		return ""
	}
	names := slices.Collect(maps.Keys(r.credentials))
	if len(names) == 0 {
		names = append(names, DefaultCredential)
	}
	if !slices.Contains(names, name) {
		r.Add(n, "credential: no credential %q%s", spell.Clip(name), spell.DidYouMean(name, names))
	}
	return name
}

func (r *reader) regions(n *yaml.Node) []regions.Region {
	var list []regions.Region
	r.List(n, "regions", func(n *yaml.Node) {
		if n.Kind == yaml.ScalarNode && strings.TrimSpace(n.Value) == "" {
			r.Add(n, "regions: an item is empty: write a code such as US")
			return
		}
		code, ok := r.Text(n, "regions")
		if !ok {
			return
		}
		region, err := regions.Parse(code)
		switch {
		case err != nil:
			r.Add(n, "regions: %v", err)
		case slices.Contains(list, region):
			r.Add(n, "regions: %s is listed twice", region)
		default:
			list = append(list, region)
		}
	})
	return list
}

func (r *reader) zone(n *yaml.Node) *time.Location {
	name, ok := r.Text(n, "timezone")
	if !ok {
		return nil
	}
	zone, err := parseZone(name)
	if err != nil {
		r.Add(n, "timezone: %v", err)
	}
	return zone
}

func parseZone(name string) (*time.Location, error) {
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		err = fmt.Errorf("%q is not an IANA time zone such as Europe/Berlin", spell.Clip(name))
	}
	return zone, err
}

func (r *reader) duration(n *yaml.Node, what string, least, most time.Duration) time.Duration {
	text, ok := r.Text(n, what)
	if !ok {
		return least
	}
	d, err := parseDuration(text, least, most)
	if err != nil {
		r.Add(n, "%s: %v", what, err)
	}
	return d
}

func parseDuration(text string, least, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > most {
		return least, fmt.Errorf("%q is not a duration from %gs to %gh, such as 2m",
			spell.Clip(text), least.Seconds(), most.Hours())
	}
	return d, nil
}
