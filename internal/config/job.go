package config

import (
	"maps"
	"slices"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
)

// OwnJob is a command or a request on a schedule of its own, and what it may take.
type OwnJob struct {
	Name       string
	Command    []string // with its arguments; empty for a request
	Request    Request  `yaml:",inline"`
	Schedule   string
	Timezone   *time.Location `yaml:"-"`
	Jitter     time.Duration
	Timeout    time.Duration
	Cost       JobCost    `yaml:"-"`
	Max        quota.Cost `yaml:"-"` // ceiling of one run; Bucket "" is all, 0 is no ceiling
	Settle     string     // one of Settlements
	Weight     int64
	Priority   int64
	Floor      int64 // units a day
	Pace       *Pace `yaml:"-"` // instead of the credential's
	Unpaced    bool  `yaml:"-"` // pace: none
	Credential string
	// Environment is added to that of the daemon.
	Environment map[string]string
	Directory   string // "" for the daemon's
	User        string // "" for the daemon's
	Queue       bool   `yaml:"-"` // overlap: queue
	Retry       int    // how often a run that failed, or was lost in a crash, is run again
	CatchUp     bool   `yaml:"catch_up"`
	// Elsewhere says what runs the job, such as a crontab, and is "" for the daemon. What it takes
	// is planned with, and it has no other keys but the schedule, the cost, settle and credential.
	Elsewhere string
}

// Request is what a job sends in place of running a command.
type Request struct {
	Method, URL, Body string // URL is "" for none
	Success           []int  // statuses that are a success; empty for 2xx without a redirect
}

// JobCost is what a run holds.
type JobCost struct {
	Costs  []quota.Cost // where it is learned, until something is known
	Method string       // whose price that is, Count times; "" for none
	Count  int64
	// Learned is whether the hold follows from what earlier runs took.
	Learned bool
}

// Settlements are how it is found out what a run took.
func Settlements() []string { return []string{"all", "exit", "report", "proxy"} }

// DefaultTimeout is how long a run may take where nothing else is configured.
const DefaultTimeout = time.Hour

// IsSweep reports whether the job stands for sweeps of ingestor once, run by something else.
func (j OwnJob) IsSweep() bool { return j.Name == DefaultJob }

// Learns reports whether what a run takes is known only by those before it.
func (j OwnJob) Learns() bool { return j.Cost.Learned || j.Settle != Settlements()[0] }

// Lane is the job's, where b is the budget of its credential. What is learned has the cost that is
// configured. An error is one of the schedule.
func (j OwnJob) Lane(b *quota.Budget) (share.Lane, error) {
	s, err := schedule.Parse(j.Schedule, j.Timezone)
	if err != nil {
		return share.Lane{}, &Error{Problems: []Problem{{Where: "schedule", Text: err.Error()}}}
	}
	l := share.Lane{
		Lane: schedule.Lane{Job: j.Name, Schedule: s}, Zone: j.Timezone,
		Pages: 1, Price: slices.Clone(j.Cost.Costs),
		Weight: j.Weight, Priority: j.Priority, Floor: j.Floor, Elsewhere: j.Elsewhere != "",
	}
	if j.Unpaced || j.Pace != nil {
		l.Own = new(share.Paces(quota.Enforced(j.Budget(b).Paces)))
	}
	return l, nil
}

// Budget is the gate of a job's runs: that of its credential, with the job's own pace.
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

// Variables are Environment as NAME=VALUE, in the order of the names.
func (j OwnJob) Variables() (pairs []string) {
	for _, name := range slices.Sorted(maps.Keys(j.Environment)) {
		pairs = append(pairs, name+"="+j.Environment[name])
	}
	return pairs
}
