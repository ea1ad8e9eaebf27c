package config

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"quotabudget/internal/grammar"
	"quotabudget/internal/regions"
	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
	"quotabudget/internal/words"
)

// ingest sets the sweep and the daemon.
func (r *reader) ingest(f *fileIngest, at grammar.Place) {
	in, d := &r.cfg.Ingest, &r.cfg.Daemon
	*in, *d = f.Ingest, f.Daemon
	in.Scheduled = true
	if f.Regions != nil {
		in.Regions = r.regions(f.Regions, at.Key("regions"))
	}
	in.Timezone, _ = parseZone(f.Timezone) // UTC for ""; the schema reports other errors
	if f.Stagger != "" {
		in.Stagger, _ = parseStagger(f.Stagger)
	}
	names := slices.Collect(maps.Keys(r.credentials))
	if len(names) == 0 {
		names = append(names, DefaultCredential)
	}
	if in.Credential != "" && !slices.Contains(names, in.Credential) {
		at.Key("credential").Add("no credential %q%s", words.Clip(in.Credential),
			words.DidYouMean(in.Credential, names))
	}
	for i, job := range f.Jobs {
		if r.file.Full() {
			return
		}
		r.sweep(job, at.Key("jobs").Item(i))
	}
	d.Weights = r.perRegion(f.Weights, at.Key("weights"))
	d.Priorities = r.perRegion(f.Priorities, at.Key("priorities"))
	d.Floors = r.perRegion(f.Floors, at.Key("floors"))
}

// sweep sets regions with their own schedule. Its defaults are the keys of ingest.
func (r *reader) sweep(f fileSweep, at grammar.Place) {
	in := &r.cfg.Ingest
	j := Job{Name: f.Name, Schedule: cmp.Or(f.Schedule, in.Schedule),
		Pages: cmp.Or(f.Pages, in.Pages)}
	j.Timezone, _ = parseZone(cmp.Or(f.Timezone, in.Timezone.String()))
	r.jobName(f.Name, false, at.Key("name"))
	j.Regions = r.regions(f.Regions, at.Key("regions"))
	for _, region := range j.Regions {
		if job, ok := r.jobOf[region]; ok {
			at.Key("regions").Add("%s is already in job %s: a region can be in only one job",
				region, job)
		}
		r.jobOf[region] = j.Name
		if !slices.Contains(in.Regions, region) {
			in.Regions = append(slices.Clip(in.Regions), region)
		}
	}
	r.cfg.Daemon.Jobs = append(r.cfg.Daemon.Jobs, j)
}

func (r *reader) regions(codes []string, at grammar.Place) []regions.Region {
	var list []regions.Region
	for i, code := range codes {
		region, err := regions.Parse(code)
		switch {
		case err != nil: // reported by the schema
		case slices.Contains(list, region):
			at.Item(i).Add("%s is listed twice", region)
		default:
			list = append(list, region)
		}
	}
	return list
}

// perRegion requires that numbers are for regions that are fetched.
func (r *reader) perRegion(numbers map[string]int64, at grammar.Place) map[regions.Region]int64 {
	if numbers == nil {
		return nil
	}
	byRegion := make(map[regions.Region]int64)
	for _, code := range at.Keys() {
		region, err := regions.Parse(code)
		_, again := byRegion[region]
		switch {
		case err != nil:
			at.Key(code).Add("%v", err)
		case again:
			at.Key(code).Add("%s is listed twice", region)
		case !slices.Contains(r.cfg.Ingest.Regions, region):
			at.Key(code).Add("is not among the regions")
		default:
			byRegion[region] = numbers[code]
		}
	}
	return byRegion
}

// jobName adds a problem if another job has the name, or if it is DefaultJob and the job does not
// run elsewhere.
func (r *reader) jobName(name string, elsewhere bool, at grammar.Place) {
	if !firstNew(r.jobNames, name) {
		at.Add("two jobs are named %s", words.Clip(name))
	}
	if name == DefaultJob && !elsewhere {
		at.Add("%s is the default job, for regions in no other job: choose another name",
			DefaultJob)
	}
}

// Overrides are settings to try in place of those of all jobs. A zero field changes nothing.
type Overrides struct {
	Schedule string
	Timezone string   // IANA name
	Stagger  string   // auto, or a duration
	Regions  []string // a region of a job stays in it; others go to DefaultJob
}

// Apply changes cfg. An error starts with the name of the setting.
func (o Overrides) Apply(cfg *Config) (err error) {
	in, jobs := &cfg.Ingest, cfg.Daemon.Jobs
	in.Scheduled = in.Scheduled || o.Schedule != "" || o.Timezone != "" || o.Stagger != "" ||
		o.Regions != nil
	if o.Timezone != "" {
		if in.Timezone, err = parseZone(o.Timezone); err != nil {
			return fmt.Errorf("timezone: %w", err)
		}
		for i := range jobs {
			jobs[i].Timezone = in.Timezone
		}
	}
	if o.Schedule != "" {
		if _, err := schedule.Parse(o.Schedule, nil); err != nil {
			return fmt.Errorf("schedule: %w", err)
		}
		in.Schedule = o.Schedule
		for i := range jobs {
			jobs[i].Schedule = o.Schedule
		}
	}
	if o.Stagger != "" {
		if in.Stagger, err = parseStagger(o.Stagger); err != nil {
			return fmt.Errorf("stagger: %w, or auto", err)
		}
	}
	if o.Regions == nil {
		return nil
	}
	if in.Regions, err = regions.ParseList(o.Regions); err != nil {
		return fmt.Errorf("regions: %w", err)
	}
	other := func(r regions.Region) bool { return !slices.Contains(in.Regions, r) }
	cfg.Daemon.Jobs = nil
	for _, j := range jobs {
		j.Regions = slices.DeleteFunc(slices.Clone(j.Regions), other)
		if len(j.Regions) > 0 {
			cfg.Daemon.Jobs = append(cfg.Daemon.Jobs, j)
		}
	}
	return nil
}

// Daemon configures how a daemon runs the sweeps. Its keys are in the section ingest.
type Daemon struct {
	Jobs       []Job `yaml:"-"` // configured sweeps; AllJobs returns all
	Jitter     time.Duration
	CatchUp    bool                     `yaml:"catch_up"` // run missed ticks once at start
	Weights    map[regions.Region]int64 `yaml:"-"`
	Priorities map[regions.Region]int64 `yaml:"-"`
	Floors     map[regions.Region]int64 `yaml:"-"` // units per day
	Lease      time.Duration            // length of a lane's lease
	Grace      time.Duration            // time from the signal to the forced end
	Listen     string                   // address of health checks and metrics; "" for none
}

// Job is a set of regions with its own schedule.
type Job struct {
	Name     string
	Regions  []regions.Region
	Schedule string
	Timezone *time.Location
	Pages    int
}

// Defaults of Daemon.
const (
	DefaultJob    = "trending"
	DefaultListen = "127.0.0.1:9310"
)

// AllJobs returns the sweeps of the schedule. The first is DefaultJob, with the regions that are in
// no other sweep, unless another program runs a job of that name. The configured ones follow.
func (c *Config) AllJobs() []Job {
	if slices.ContainsFunc(c.Jobs, OwnJob.IsSweep) {
		return c.Daemon.Jobs
	}
	usual := Job{Name: DefaultJob, Schedule: c.Ingest.Schedule, Timezone: c.Ingest.Timezone,
		Pages: c.Ingest.Pages}
	for _, region := range c.Ingest.Regions {
		if !slices.ContainsFunc(c.Daemon.Jobs,
			func(j Job) bool { return slices.Contains(j.Regions, region) }) {
			usual.Regions = append(usual.Regions, region)
		}
	}
	if len(usual.Regions) == 0 {
		return c.Daemon.Jobs
	}
	return append([]Job{usual}, c.Daemon.Jobs...)
}

// Weight returns a region's share when units are short; 1 unless it is configured.
func (d Daemon) Weight(region regions.Region) int64 {
	if w, ok := d.Weights[region]; ok {
		return w
	}
	return 1
}

// Lanes returns the lanes of all jobs, in the order of the jobs and their regions. It returns an
// error if a schedule is invalid.
func (c *Config) Lanes() ([]share.Lane, error) {
	var lanes []share.Lane
	for _, job := range c.AllJobs() {
		s, err := schedule.Parse(job.Schedule, job.Timezone)
		if err != nil {
			return nil, fail("schedule", "%v", err)
		}
		names := make([]string, len(job.Regions))
		for i, region := range job.Regions {
			names[i] = string(region)
		}
		offsets := c.Ingest.Stagger.Offsets(names, s)
		for i, region := range job.Regions {
			lanes = append(lanes, share.Lane{
				Lane: schedule.Lane{LaneID: schedule.LaneID{Job: job.Name, Region: names[i]},
					Schedule: s, Offset: offsets[i]},
				Zone:     job.Timezone,
				Pages:    int64(job.Pages),
				Weight:   c.Daemon.Weight(region),
				Priority: c.Daemon.Priorities[region],
				Floor:    c.Daemon.Floors[region],
			})
		}
	}
	return lanes, nil
}
