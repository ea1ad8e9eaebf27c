package config

import (
	"slices"
	"time"

	"quotabudget/internal/regions"
	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
)

// Daemon configures how a daemon runs the sweeps. Its keys are under ingest, too.
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

// AllJobs returns the sweeps of the schedule: first DefaultJob with the regions that are in no
// other sweep, unless another program runs a job of that name, then the configured ones.
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

// Lanes returns the lanes of all jobs, in the order of the jobs and their regions. An error
// reports an invalid schedule.
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
