package config

import (
	"fmt"
	"slices"

	"quotabudget/internal/grammar"
	"quotabudget/internal/regions"
	"quotabudget/internal/schedule"
)

// Overrides are settings to try instead of those of all jobs. A zero field changes nothing.
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
		cfg.Daemon.StaggerAuto = o.Stagger == "auto"
	}
	if o.Stagger != "" && o.Stagger != "auto" {
		if in.Stagger, err = grammar.ParseDuration(o.Stagger, 0, maxOffset); err != nil {
			return fmt.Errorf("stagger: %w, or auto", err)
		}
	}
	return o.regions(cfg)
}

func (o Overrides) regions(cfg *Config) error {
	if o.Regions == nil {
		return nil
	}
	list, err := regions.ParseList(o.Regions)
	if err != nil {
		return fmt.Errorf("regions: %w", err)
	}
	other := func(r regions.Region) bool { return !slices.Contains(list, r) }
	var jobs []Job
	for _, j := range cfg.Daemon.Jobs {
		j.Regions = slices.DeleteFunc(slices.Clone(j.Regions), other)
		if len(j.Regions) > 0 {
			jobs = append(jobs, j)
		}
	}
	cfg.Ingest.Regions, cfg.Daemon.Jobs = list, jobs
	return nil
}
