package config

import (
	"fmt"
	"slices"
	"time"

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
	zone, err := time.LoadLocation(o.Timezone)
	if err != nil || o.Timezone == "Local" {
		return fmt.Errorf("timezone %s: not an IANA time zone such as Europe/Berlin", o.Timezone)
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
	d, err := time.ParseDuration(o.Stagger)
	if err != nil || d < 0 || d > 24*time.Hour {
		return fmt.Errorf("stagger %s: write auto, or a duration from 0s to 24h", o.Stagger)
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
