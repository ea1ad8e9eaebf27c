package config

import (
	"fmt"
	"slices"

	"quotabudget/internal/regions"
	"quotabudget/internal/schedule"
)

// Overrides are settings to try in place of those of all jobs. A zero field changes nothing.
type Overrides struct {
	Schedule string
	Timezone string   // IANA name
	Stagger  string   // auto, or a duration
	Regions  []string // a region that is in a job stays there; the others are in DefaultJob
}

// Apply changes cfg. An error begins with the name of the setting.
func (o Overrides) Apply(cfg *Config) error {
	for _, apply := range []func(*Config) error{o.timezone, o.schedule, o.stagger, o.regions} {
		if err := apply(cfg); err != nil {
			return err
		}
	}
	return nil
}

func (o Overrides) timezone(cfg *Config) error {
	if o.Timezone == "" {
		return nil
	}
	zone, err := parseZone(o.Timezone)
	if err != nil {
		return fmt.Errorf("timezone: %w", err)
	}
	cfg.Ingest.Timezone = zone
	for i := range cfg.Daemon.Jobs {
		cfg.Daemon.Jobs[i].Timezone = zone
	}
	return nil
}

func (o Overrides) schedule(cfg *Config) error {
	if o.Schedule == "" {
		return nil
	}
	if _, err := schedule.Parse(o.Schedule, nil); err != nil {
		return fmt.Errorf("schedule: %w", err)
	}
	cfg.Ingest.Schedule = o.Schedule
	for i := range cfg.Daemon.Jobs {
		cfg.Daemon.Jobs[i].Schedule = o.Schedule
	}
	return nil
}

func (o Overrides) stagger(cfg *Config) error {
	switch o.Stagger {
	case "":
		return nil
	case "auto":
		cfg.Daemon.StaggerAuto = true
		return nil
	}
	d, err := parseDuration(o.Stagger, 0, maxOffset)
	if err != nil {
		return fmt.Errorf("stagger: %w, or auto", err)
	}
	cfg.Daemon.StaggerAuto, cfg.Ingest.Stagger = false, d
	return nil
}

func (o Overrides) regions(cfg *Config) error {
	if o.Regions == nil {
		return nil
	}
	list, err := regions.ParseList(o.Regions)
	if err != nil {
		return fmt.Errorf("regions: %w", err)
	}
	var jobs []Job
	for _, j := range cfg.Daemon.Jobs {
		j.Regions = slices.DeleteFunc(slices.Clone(j.Regions), func(r regions.Region) bool {
			return !slices.Contains(list, r)
		})
		if len(j.Regions) > 0 {
			jobs = append(jobs, j)
		}
	}
	cfg.Ingest.Regions, cfg.Daemon.Jobs = list, jobs
	return nil
}
