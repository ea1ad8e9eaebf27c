package config

import (
	"maps"
	"slices"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
)

// OwnJob is a command or a request with its own schedule and cost.
type OwnJob struct {
	Name       string
	Command    []string // with arguments; empty for a request
	Request    Request  `yaml:",inline"`
	Schedule   string
	Timezone   *time.Location `yaml:"-"`
	Jitter     time.Duration
	Timeout    time.Duration
	Cost       JobCost    `yaml:"-"`
	Max        quota.Cost `yaml:"-"` // ceiling of one run; Bucket "" means all, 0 means none
	Settle     string     // one of Settlements
	Weight     int64
	Priority   int64
	Floor      int64 // units per day
	Pace       *Pace `yaml:"-"` // replaces the credential's
	Unpaced    bool  `yaml:"-"` // pace: none
	Credential string
	// Environment is added to the daemon's.
	Environment map[string]string
	Directory   string // "" for the daemon's
	User        string // "" for the daemon's
	Queue       bool   `yaml:"-"` // overlap: queue
	Retry       int    // how often to rerun a run that failed or was lost in a crash
	CatchUp     bool   `yaml:"catch_up"`
	// Elsewhere names the program that runs the job, such as a crontab; "" means the daemon. Such a
	// job is only planned with. It has no keys but the schedule, the cost, settle and credential.
	Elsewhere string
}

// Request is the HTTP request of a job without a command.
type Request struct {
	Method, URL, Body string // URL is "" for no request
	Success           []int  // statuses that count as success; empty for 2xx without a redirect
}

// JobCost is the cost that a run holds.
type JobCost struct {
	Costs  []quota.Cost // if learned, used until there is a history
	Method string       // priced Count times; "" for none
	Count  int64
	// Learned sets the hold from the usage of earlier runs.
	Learned bool
}

// Settlements are the ways to find out what a run used.
func Settlements() []string { return []string{"all", "exit", "report", "proxy"} }

// DefaultTimeout is the maximum duration of a run if none is configured.
const DefaultTimeout = time.Hour

// IsSweep reports whether the job is ingestor once, run by another program.
func (j OwnJob) IsSweep() bool { return j.Name == DefaultJob }

// Learns reports whether the cost of a run is estimated from earlier runs.
func (j OwnJob) Learns() bool { return j.Cost.Learned || j.Settle != Settlements()[0] }

// Lane returns the job's lane; b is the budget of its credential. A learned cost starts as the
// configured one. An error is about the schedule.
func (j OwnJob) Lane(b *quota.Budget) (share.Lane, error) {
	s, err := schedule.Parse(j.Schedule, j.Timezone)
	if err != nil {
		return share.Lane{}, fail("schedule", "%v", err)
	}
	l := share.Lane{
		Lane: schedule.Lane{LaneID: schedule.LaneID{Job: j.Name}, Schedule: s}, Zone: j.Timezone,
		Pages: 1, Price: slices.Clone(j.Cost.Costs),
		Weight: j.Weight, Priority: j.Priority, Floor: j.Floor, Elsewhere: j.Elsewhere != "",
	}
	if j.Unpaced || j.Pace != nil {
		l.Own = new(share.Paces(quota.Enforced(j.Budget(b).Paces)))
	}
	return l, nil
}

// Budget returns the gate of a job's runs: its credential's budget, with the job's own pace.
func (j OwnJob) Budget(b *quota.Budget) *quota.Budget {
	own := *b
	switch {
	case j.Unpaced:
		own.Paces = nil
	case j.Pace != nil:
		own.Paces = j.Pace.lines(b.Limits)
	}
	return &own
}

// Variables returns Environment as NAME=VALUE, sorted by name.
func (j OwnJob) Variables() (pairs []string) {
	for _, name := range slices.Sorted(maps.Keys(j.Environment)) {
		pairs = append(pairs, name+"="+j.Environment[name])
	}
	return pairs
}
