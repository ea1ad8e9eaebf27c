package config

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/grammar"
	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
	"quotabudget/internal/words"
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
	// Elsewhere names the other program that runs the job, such as a crontab; "" means the daemon.
	// Plans include such a job. Its only keys are the schedule, the cost, settle and credential.
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

// IsSweep reports whether the job is ingestor once, run by another program.
func (j OwnJob) IsSweep() bool { return j.Name == DefaultJob }

// Learns reports whether the cost of a run is estimated from earlier runs.
func (j OwnJob) Learns() bool { return j.Cost.Learned || j.Settle != Settlements()[0] }

// Lane returns the job's lane; b is the budget of its credential. A learned cost starts as the
// configured one. An error reports an invalid schedule.
func (j OwnJob) Lane(b *quota.Budget) (share.Lane, error) {
	s, err := schedule.Parse(j.Schedule, j.Timezone)
	if err != nil {
		return share.Lane{}, fail("schedule", "%v", err)
	}
	l := share.Lane{
		Lane: schedule.Lane{LaneID: schedule.LaneID{Job: j.Name}, Schedule: s}, Zone: j.Timezone,
		Pages: 1, Price: slices.Clone(j.Cost.Costs),
		Weight: j.Weight, Priority: j.Priority, Floor: j.Floor, External: j.Elsewhere != "",
	}
	if j.Unpaced || j.Pace != nil {
		l.OwnPaces = new(share.Paces(quota.Enforced(j.Budget(b).Paces)))
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

// ownJob checks a job. The reader must have read the credentials and their limits.
func (r *reader) ownJob(f fileJob, at grammar.Place) OwnJob {
	j := f.OwnJob
	j.Timezone, _ = parseZone(f.Timezone) // UTC for ""; the schema reports other errors
	j.Max = quota.Cost{Bucket: f.Max.Bucket, Units: f.Max.Units}
	j.Queue, j.Directory = f.Overlap == "queue", r.path(j.Directory)
	if j.Pace, j.Unpaced = f.Pace, f.Pace != nil && f.Pace.none; j.Unpaced {
		j.Pace = nil
	}
	r.jobName(j.Name, j.Elsewhere != "", at.Key("name"))
	if j.Request.URL == "" {
		j.Request = Request{}
	}
	cred, err := r.cfg.Credential(j.Credential)
	if err != nil {
		at.Key("credential").Add("%v", err)
		return j
	}
	j.Credential = cred.Name
	if r.cfg.Prices == nil {
		return j
	}
	table := r.cfg.Table(cred)
	j.Cost = r.jobCosts(f.Cost, cred, at.Key("cost"))
	if j.Max.Bucket != "" {
		checkBucket(j.Max.Bucket, table, at.Key("max").Key("bucket"))
	}
	if j.Pace != nil {
		cred.Pace = j.Pace
		r.checkPace(cred, at.Key("pace"))
	}
	return j
}

// jobCosts checks the cost of a run: a list of buckets and units, or a single cost of another kind.
func (r *reader) jobCosts(list []fileCost, cred Credential, at grammar.Place) (all JobCost) {
	table := r.cfg.Table(cred)
	all.Count = 1
	for i, f := range list {
		at := at.Item(i)
		all.Method, all.Count, all.Learned = f.Method, cmp.Or(f.Count, 1), f.Learned
		// 1 unit of a learned cost, until there is a history
		costs := []quota.Cost{{Bucket: f.Bucket, Units: cmp.Or(f.Units, 1)}}
		ok := f.Method != "" || checkBucket(f.Bucket, table, at.Key("bucket"))
		if f.Method != "" {
			costs, all.Method, ok = methodCost(f, table, at)
		}
		if !ok {
			continue
		}
		for _, c := range costs {
			same := func(other quota.Cost) bool { return other.Bucket == c.Bucket }
			if slices.ContainsFunc(all.Costs, same) {
				at.Add("bucket %s is listed twice", c.Bucket)
				continue
			}
			all.Costs = append(all.Costs, c)
		}
		checkLimited(costs, cred, table, at)
	}
	return all
}

// methodCost looks up a method whose price does not depend on the response. The upstream's name is
// optional.
func methodCost(f fileCost, table *costs.Table, at grammar.Place) (
	units []quota.Cost, id string, ok bool) {
	id = f.Method
	m, err := table.Lookup(id)
	if whole := table.Upstream + "." + id; err != nil {
		if named, failed := table.Lookup(whole); failed == nil {
			m, id, err = named, whole, nil
		}
	}
	switch {
	case err != nil:
		at.Key("method").Add("%v", err)
		return nil, id, false
	case !m.Known():
		at.Key("method").Add("what %s takes is known only afterwards: write a bucket and units, or "+
			"learned", id)
		return nil, id, false
	}
	count := cmp.Or(f.Count, 1)
	for _, p := range m.Costs {
		if p.Units > quota.MaxUnits/count {
			at.Key("count").Add("a run must take at most %d units", int64(quota.MaxUnits))
			return nil, id, false
		}
		units = append(units, quota.Cost{Bucket: p.Bucket, Units: p.Units * count})
	}
	return units, id, true
}

// checkBucket reports whether the table has the bucket. If it has not, checkBucket adds the error.
func checkBucket(name string, table *costs.Table, at grammar.Place) bool {
	_, ok := table.Bucket(name)
	if !ok && name != "" {
		at.Add("no method draws on %q%s", words.Clip(name),
			words.DidYouMean(name, table.BucketNames()))
	}
	return ok
}

// checkLimited reports a bucket without a limit, and a cost that never fits.
func checkLimited(costs []quota.Cost, cred Credential, table *costs.Table, at grammar.Place) {
	for _, c := range costs {
		limited := false
		for _, l := range cred.Limits {
			if l.Bucket != c.Bucket && l.Bucket != quota.WholeOf(c.Bucket) {
				continue
			}
			limited = true
			if leaves := l.Cap(false); c.Units > leaves {
				at.Add("%d units of %s never fit: %s leaves scheduled charges %d", c.Units,
					c.Bucket, l.Window, leaves)
				break
			}
		}
		if !limited && !table.Unlimited() {
			at.Add("credential %s has no limit on bucket %s: add one to its limits", cred.Name,
				c.Bucket)
		}
	}
}
