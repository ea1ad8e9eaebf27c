package main

import (
	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/daemon"
	"quotabudget/internal/schedule"
)

// lanesOf are the lanes of the configured jobs, in the order of the jobs and their regions.
func lanesOf(cfg *config.Config) ([]daemon.Lane, error) {
	var lanes []daemon.Lane
	for _, job := range cfg.AllJobs() {
		s, err := schedule.Parse(job.Schedule, job.Timezone)
		if err != nil {
			return nil, &cli.Coded{Code: cli.ExitConfig, Err: err}
		}
		names := make([]string, len(job.Regions))
		for i, region := range job.Regions {
			names[i] = string(region)
		}
		offsets := schedule.Stagger{Step: cfg.Ingest.Stagger, Auto: cfg.Daemon.StaggerAuto}.Offsets(names, s)
		for i, region := range job.Regions {
			lanes = append(lanes, daemon.Lane{
				Lane: schedule.Lane{Job: job.Name, Region: names[i], Schedule: s, Offset: offsets[i]},
				Zone: job.Timezone, Pages: job.Pages, Weight: cfg.Daemon.Weight(region), Floor: cfg.Daemon.Floors[region],
			})
		}
	}
	return lanes, nil
}
