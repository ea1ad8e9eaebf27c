package config

import (
	"maps"
	"net"
	"slices"
	"time"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/quota"
	"quotabudget/internal/regions"
	"quotabudget/internal/schedule"
	"quotabudget/internal/spell"
	"quotabudget/internal/yamlfile"
)

// Daemon is how a daemon runs the sweeps. Its keys are under ingest, too.
type Daemon struct {
	Jobs        []Job // the configured ones; JobsOf lists all
	StaggerAuto bool  // offsets derived from the regions' names; Ingest.Stagger is 0 then
	Jitter      time.Duration
	CatchUp     bool // run at start what was missed, once for each region
	Weights     map[regions.Region]int64
	Priorities  map[regions.Region]int64
	Floors      map[regions.Region]int64 // units a day
	Lease       time.Duration            // of the claim on a tick
	Grace       time.Duration            // from the signal to the end
	Listen      string                   // for health and metrics; "" for nothing
}

// Job is regions with a schedule of their own.
type Job struct {
	Name     string
	Regions  []regions.Region
	Schedule string
	Timezone *time.Location
	Pages    int
}

// The defaults of Daemon.
const (
	DefaultJob    = "trending"
	DefaultLease  = 2 * time.Minute
	DefaultGrace  = 20 * time.Second
	DefaultListen = "127.0.0.1:9310"
)

const maxOffset = 24 * time.Hour

// MaxWeight is the largest weight of a region.
const MaxWeight = 1_000_000

// MaxPriority is the highest priority of a region; 0 is the lowest, and the default.
const MaxPriority = 1000

func defaultDaemon() Daemon {
	return Daemon{CatchUp: true, Lease: DefaultLease, Grace: DefaultGrace, Listen: DefaultListen}
}

// AllJobs returns the sweeps of the schedule: the configured ones, and before them DefaultJob with
// the regions that are in none, unless a job of that name is run elsewhere.
func (c *Config) AllJobs() []Job {
	if slices.ContainsFunc(c.Jobs, OwnJob.IsSweep) {
		return c.Daemon.Jobs
	}
	rest := Job{Name: DefaultJob, Schedule: c.Ingest.Schedule, Timezone: c.Ingest.Timezone,
		Pages: c.Ingest.Pages}
	for _, region := range c.Ingest.Regions {
		if !slices.ContainsFunc(c.Daemon.Jobs,
			func(j Job) bool { return slices.Contains(j.Regions, region) }) {
			rest.Regions = append(rest.Regions, region)
		}
	}
	if len(rest.Regions) == 0 {
		return c.Daemon.Jobs
	}
	return append([]Job{rest}, c.Daemon.Jobs...)
}

// Weight is the part of a region when units are short; 1 unless it is configured.
func (d Daemon) Weight(region regions.Region) int64 {
	if w, ok := d.Weights[region]; ok {
		return w
	}
	return 1
}

func (r *reader) daemonFields(known yamlfile.Fields) {
	d := &r.cfg.Daemon
	known["stagger"] = r.stagger
	known["jitter"] = func(n *yaml.Node) { d.Jitter = r.duration(n, "jitter", 0, maxOffset) }
	known["catch_up"] = func(n *yaml.Node) { d.CatchUp = r.Bool(n, "catch_up") }
	known["weights"] = func(n *yaml.Node) { d.Weights = r.perRegion(n, "weights", MaxWeight) }
	known["priorities"] = func(n *yaml.Node) {
		d.Priorities = r.perRegion(n, "priorities", MaxPriority)
	}
	known["floors"] = func(n *yaml.Node) { d.Floors = r.perRegion(n, "floors", quota.MaxUnits) }
	known["lease"] = func(n *yaml.Node) { d.Lease = r.duration(n, "lease", time.Second, time.Hour) }
	known["grace"] = func(n *yaml.Node) { d.Grace = r.duration(n, "grace", time.Second, time.Hour) }
	known["listen"] = func(n *yaml.Node) { d.Listen = r.listen(n) }
}

func (r *reader) stagger(n *yaml.Node) {
	if n.Kind == yaml.ScalarNode && n.Value == "auto" {
		r.cfg.Daemon.StaggerAuto, r.cfg.Ingest.Stagger = true, 0
		return
	}
	r.cfg.Ingest.Stagger = r.duration(n, "stagger", 0, maxOffset)
}

// jobs reads the jobs. Their defaults are the keys of ingest, in whatever order they come.
func (r *reader) regionJobs(n *yaml.Node) {
	r.List(n, "jobs", func(n *yaml.Node) {
		in := r.cfg.Ingest
		j := Job{Schedule: in.Schedule, Timezone: in.Timezone, Pages: in.Pages}
		r.Fields(n, "job", yamlfile.Fields{
			"name": func(n *yaml.Node) {
				j.Name = r.jobName(n)
				r.refuseDefaultJob(n, j.Name)
			},
			"regions":  func(n *yaml.Node) { j.Regions = r.jobRegions(n) },
			"schedule": func(n *yaml.Node) { j.Schedule = r.schedule(n) },
			"timezone": func(n *yaml.Node) { j.Timezone = r.zone(n) },
			"pages":    func(n *yaml.Node) { j.Pages = int(r.Number(n, "pages", 1, 1000)) },
		}, "name", "regions")
		r.cfg.Daemon.Jobs = append(r.cfg.Daemon.Jobs, j)
		for _, region := range j.Regions {
			r.jobOf[region] = j.Name
			if !slices.Contains(r.cfg.Ingest.Regions, region) {
				r.cfg.Ingest.Regions = append(slices.Clip(r.cfg.Ingest.Regions), region)
			}
		}
	})
}

func (r *reader) jobName(n *yaml.Node) string {
	name, ok := r.Text(n, "name")
	if !ok {
		return ""
	}
	if err := quota.CheckName(name); err != nil {
		r.Add(n, "name: %v", err)
	}
	if r.jobNames[name] {
		r.Add(n, "name: two jobs are named %s", spell.Clip(name))
	}
	r.jobNames[name] = true
	return name
}

// refuseDefaultJob reports a job with the name of the sweep.
func (r *reader) refuseDefaultJob(n *yaml.Node, name string) {
	if name == DefaultJob {
		r.Add(n, "name: %s is the job of the regions that are in no other: choose another name",
			DefaultJob)
	}
}

func (r *reader) jobRegions(n *yaml.Node) []regions.Region {
	list := r.regions(n)
	if n.Kind == yaml.SequenceNode && len(n.Content) == 0 {
		r.Add(n, "regions: the list is empty: leave the job out")
	}
	for _, region := range list {
		if job, ok := r.jobOf[region]; ok {
			r.Add(n, "regions: %s is already in job %s: a region can be in only one job", region,
				job)
		}
	}
	return list
}

func (r *reader) schedule(n *yaml.Node) string {
	spec, ok := r.Text(n, "schedule")
	if !ok {
		return spec
	}
	if _, err := schedule.Parse(spec, nil); err != nil {
		r.Add(n, "schedule: %v", err)
	}
	return spec
}

func (r *reader) perRegion(n *yaml.Node, what string, most int64) map[regions.Region]int64 {
	if n.Kind != yaml.MappingNode {
		r.Add(n, "%s: write {US: 3}", what)
		return nil
	}
	numbers := make(map[regions.Region]int64)
	r.Each(n, what, func(name string, key, value *yaml.Node) {
		region, err := regions.Parse(name)
		if err != nil {
			r.Add(key, "%s: %v", what, err)
			return
		}
		if _, again := numbers[region]; again {
			r.Add(key, "%s: %s is listed twice", what, region)
		}
		numbers[region] = r.Number(value, what, 0, most)
	})
	return numbers
}

// listen reads an address; "" is none.
func (r *reader) listen(n *yaml.Node) string {
	if n.Kind == yaml.ScalarNode && n.Value == "" {
		return ""
	}
	_, port, err := net.SplitHostPort(n.Value)
	if err == nil {
		_, err = net.LookupPort("tcp", port)
	}
	if err != nil || port == "" {
		r.Add(n, "listen: %q: write host:port, such as %s, or \"\" for none",
			spell.Clip(n.Value), DefaultListen)
	}
	return n.Value
}

// checkWeights reports weights, priorities and floors of regions that nobody fetches.
func (r *reader) checkWeights(at *yaml.Node) {
	d := r.cfg.Daemon
	check := func(what string, numbers map[regions.Region]int64) {
		for _, region := range slices.Sorted(maps.Keys(numbers)) {
			if !slices.Contains(r.cfg.Ingest.Regions, region) {
				r.Add(at, "%s: %s is not among the regions", what, region)
			}
		}
	}
	check("weights", d.Weights)
	check("priorities", d.Priorities)
	check("floors", d.Floors)
}
