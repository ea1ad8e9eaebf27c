package config

import (
	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
)

// Lanes returns the lanes of all jobs, in the order of the jobs and their regions. An error is
// about a schedule.
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
		offsets := schedule.Stagger{Step: c.Ingest.Stagger,
			Auto: c.Daemon.StaggerAuto}.Offsets(names, s)
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
