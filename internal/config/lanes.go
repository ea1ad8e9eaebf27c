package config

import (
	"time"

	"quotabudget/internal/regions"
	"quotabudget/internal/schedule"
)

// Lane is the ticks of one region of one job, as they are configured.
type Lane struct {
	schedule.Lane
	Code  regions.Region
	Zone  *time.Location // of the schedule
	Pages int            // of a chart, at most
}

// Lanes are those of all jobs, in the order of the jobs and their regions. An error is one of a
// schedule.
func (c *Config) Lanes() ([]Lane, error) {
	var lanes []Lane
	for _, job := range c.AllJobs() {
		s, err := schedule.Parse(job.Schedule, job.Timezone)
		if err != nil {
			return nil, &Error{Problems: []Problem{{Where: "schedule", Text: err.Error()}}}
		}
		names := make([]string, len(job.Regions))
		for i, region := range job.Regions {
			names[i] = string(region)
		}
		offsets := schedule.Stagger{Step: c.Ingest.Stagger,
			Auto: c.Daemon.StaggerAuto}.Offsets(names, s)
		for i, region := range job.Regions {
			lanes = append(lanes, Lane{
				Lane: schedule.Lane{Job: job.Name, Region: names[i], Schedule: s,
					Offset: offsets[i]},
				Code: region, Zone: job.Timezone, Pages: job.Pages,
			})
		}
	}
	return lanes, nil
}
