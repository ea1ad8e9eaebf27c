package config

import (
	"errors"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
	"quotabudget/internal/spell"
	"quotabudget/internal/yamlfile"
)

// OwnJob is a command or a request on a schedule of its own, and what it may take.
type OwnJob struct {
	Name       string
	Command    []string // with its arguments; empty for a request
	Request    Request
	Schedule   string
	Timezone   *time.Location
	Jitter     time.Duration
	Timeout    time.Duration
	Cost       JobCost
	Max        quota.Cost // ceiling of one run; Bucket "" adds all buckets up, 0 is no ceiling
	Settle     string     // one of Settlements
	Weight     int64
	Priority   int64
	Floor      int64 // units a day
	Pace       *Pace // instead of the credential's
	Unpaced    bool  // pace: none
	Credential string
	// Environment is added to that of the daemon.
	Environment map[string]string
	Directory   string // "" for the daemon's
	User        string // "" for the daemon's
	Queue       bool   // overlap: queue
	Retry       int    // how often a run that failed, or was lost in a crash, is run again
	CatchUp     bool
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

// The defaults of OwnJob.
const (
	DefaultTimeout = time.Hour
	maxTimeout     = 7 * 24 * time.Hour
	maxRetries     = 10
)

// ownJobs reads the jobs, when the credentials and their limits are known.
func (r *reader) ownJobs(n *yaml.Node) {
	r.List(n, "jobs", func(n *yaml.Node) {
		r.cfg.Jobs = append(r.cfg.Jobs, r.ownJob(n))
	})
}

// runsAny reports whether the daemon runs one of the jobs of a list.
func runsAny(list *yaml.Node) bool {
	return len(list.Content) == 0 || slices.ContainsFunc(list.Content, func(n *yaml.Node) bool {
		return !slices.ContainsFunc(n.Content, func(n *yaml.Node) bool {
			return n.Value == "elsewhere"
		})
	})
}

// jobReader reads one job. What depends on another key is read when all are known.
type jobReader struct {
	*reader
	job                              OwnJob
	url, method, body, command, cost *yaml.Node
	success                          *yaml.Node
	credential, pace, max            *yaml.Node
}

func (r *reader) ownJob(n *yaml.Node) OwnJob {
	j := &jobReader{reader: r, job: OwnJob{Timezone: time.UTC, Timeout: DefaultTimeout,
		Settle: Settlements()[0], Weight: 1}}
	r.Fields(n, "job", j.fields(), "name", "schedule", "cost")
	j.what(n)
	if j.job.Elsewhere == "" {
		r.refuseDefaultJob(n, j.job.Name)
	}
	cred, ok := j.of(n)
	if j.cost != nil && ok {
		j.job.Cost = j.costs(j.cost, cred)
	}
	if j.max != nil && ok {
		j.job.Max = j.ceiling(j.max, r.cfg.Table(cred))
	}
	if j.pace != nil && !j.job.Unpaced && ok {
		cred.Pace = j.job.Pace
		r.checkPace(j.pace, cred)
	}
	return j.job
}

func (r *jobReader) fields() yamlfile.Fields {
	j := &r.job
	node := func(to **yaml.Node) func(*yaml.Node) { return func(n *yaml.Node) { *to = n } }
	number := func(what string, most int64, to *int64) func(*yaml.Node) {
		return func(n *yaml.Node) { *to = r.Number(n, what, 0, most) }
	}
	return yamlfile.Fields{
		"name":     func(n *yaml.Node) { j.Name = r.jobName(n) },
		"command":  func(n *yaml.Node) { r.command, j.Command = n, r.commandLine(n) },
		"url":      node(&r.url),
		"method":   node(&r.method),
		"body":     node(&r.body),
		"success":  node(&r.success),
		"schedule": func(n *yaml.Node) { j.Schedule = r.schedule(n) },
		"timezone": func(n *yaml.Node) { j.Timezone = r.zone(n) },
		"jitter":   func(n *yaml.Node) { j.Jitter = r.duration(n, "jitter", 0, maxOffset) },
		"timeout": func(n *yaml.Node) {
			j.Timeout = r.duration(n, "timeout", time.Second, maxTimeout)
		},
		"cost":        node(&r.cost),
		"max":         node(&r.max),
		"settle":      func(n *yaml.Node) { j.Settle = r.oneOf(n, "settle", Settlements()) },
		"weight":      number("weight", MaxWeight, &j.Weight),
		"priority":    number("priority", MaxPriority, &j.Priority),
		"floor":       number("floor", quota.MaxUnits, &j.Floor),
		"pace":        func(n *yaml.Node) { r.pace = n; j.Pace, j.Unpaced = r.jobPace(n) },
		"credential":  node(&r.credential),
		"environment": func(n *yaml.Node) { j.Environment = r.environmentOf(n) },
		"directory":   func(n *yaml.Node) { j.Directory = r.directory(n) },
		"user":        func(n *yaml.Node) { j.User, _ = r.Text(n, "user") },
		"overlap": func(n *yaml.Node) {
			j.Queue = r.oneOf(n, "overlap", []string{"skip", "queue"}) == "queue"
		},
		"retry":    func(n *yaml.Node) { j.Retry = int(r.Number(n, "retry", 0, maxRetries)) },
		"catch_up": func(n *yaml.Node) { j.CatchUp = r.Bool(n, "catch_up") },
		"elsewhere": func(n *yaml.Node) {
			if j.Elsewhere, _ = r.Text(n, "elsewhere"); j.Elsewhere == "" {
				r.Add(n, "elsewhere: it is empty: name what runs the job, such as /etc/crontab")
			}
		},
	}
}

func (r *reader) oneOf(n *yaml.Node, what string, words []string) string {
	word, ok := r.Text(n, what)
	if ok && !slices.Contains(words, word) {
		last := len(words) - 1
		r.Add(n, "%s: %q: write %s or %s%s", what, spell.Clip(word),
			strings.Join(words[:last], ", "), words[last], spell.DidYouMean(word, words))
	}
	return word
}

// ceiling reads a number of units in all buckets, or {bucket, units}.
func (r *jobReader) ceiling(n *yaml.Node, table *costs.Table) (c quota.Cost) {
	if n.Kind == yaml.ScalarNode {
		c.Units = r.Number(n, "max", 1, quota.MaxUnits)
		return c
	}
	r.Fields(n, "max", yamlfile.Fields{
		"bucket": func(n *yaml.Node) { c.Bucket = r.jobBucket(n, table) },
		"units":  func(n *yaml.Node) { c.Units = r.Number(n, "units", 1, quota.MaxUnits) },
	}, "bucket", "units")
	return c
}

// commandLine reads a list of words. A shell has to be named.
func (r *reader) commandLine(n *yaml.Node) (words []string) {
	if n.Kind == yaml.ScalarNode {
		r.Add(n, "command: write a list, such as [/usr/local/bin/backfill, --since, 1d]; "+
			"for a shell, [sh, -c, \"…\"]")
		return nil
	}
	r.List(n, "command", func(n *yaml.Node) {
		if n.Kind != yaml.ScalarNode || n.Tag == "!!null" {
			r.Add(n, "command: an item is a text")
			return
		}
		if quota.LooksSecret(n.Value) {
			r.Add(n, "command: an argument looks like a key (it is not repeated here): others can "+
				"read arguments; let the command read it from a file")
		}
		words = append(words, n.Value)
	})
	if n.Kind == yaml.SequenceNode && (len(words) == 0 || words[0] == "") {
		r.Add(n, "command: the list is empty: name a program")
	}
	return words
}

// what reads what the job runs: a command, or a request.
func (r *jobReader) what(n *yaml.Node) {
	switch {
	case r.job.Elsewhere != "":
		r.elsewhere(n)
		return
	case r.command == nil && r.url == nil:
		r.Add(n, "job: command is missing (or url, for a request)")
		return
	case r.command != nil && r.url != nil:
		r.Add(r.url, "url: the job has a command already: write one of them")
		return
	case r.url == nil:
		for _, of := range []struct {
			what string
			at   *yaml.Node
		}{{"method", r.method}, {"body", r.body}, {"success", r.success}} {
			if of.at != nil {
				r.Add(of.at, "%s: it is for a job with a url", of.what)
			}
		}
		return
	}
	r.job.Request = Request{Method: "GET", URL: r.reader.url(r.url, "url", checkRequest)}
	if r.method != nil {
		r.job.Request.Method = r.oneOf(r.method, "method",
			[]string{"GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"})
	}
	if r.body != nil {
		r.job.Request.Body, _ = r.Text(r.body, "body")
	}
	if r.success != nil {
		r.List(r.success, "success", func(n *yaml.Node) {
			r.job.Request.Success = append(r.job.Request.Success,
				int(r.Number(n, "success", 200, 599)))
		})
		if len(r.success.Content) == 0 {
			r.Add(r.success, "success: must list at least one status, such as [200, 302]")
		}
	}
	if s := r.job.Settle; s != "all" && s != "exit" {
		r.Add(r.url, "url: a request cannot report what it used: set settle to all or exit")
	}
}

// elsewhere refuses the keys of a job that only the daemon could heed.
func (r *jobReader) elsewhere(n *yaml.Node) {
	heeded := []string{"name", "elsewhere", "schedule", "timezone", "cost", "settle", "credential"}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if key := n.Content[i]; !slices.Contains(heeded, key.Value) {
			r.Add(key, "%s: the daemon does not run the job (elsewhere: %s): leave it out",
				key.Value, spell.Clip(r.job.Elsewhere))
		}
	}
}

var errNoRequest = errors.New("write http:// or https:// and a host, without a password")

func checkRequest(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.User != nil {
		return errNoRequest
	}
	return nil
}

// of is the credential that the job spends from.
func (r *jobReader) of(n *yaml.Node) (Credential, bool) {
	name, at := "", n
	if r.credential != nil {
		at = r.credential
		if name, _ = r.Text(at, "credential"); name == "" {
			return Credential{}, false
		}
	}
	cred, err := r.cfg.Credential(name)
	if err != nil {
		r.Add(at, "credential: %v", err)
		return cred, false
	}
	r.job.Credential = cred.Name
	return cred, r.cfg.Prices != nil
}

// jobPace reads none, or a pace.
func (r *reader) jobPace(n *yaml.Node) (pace *Pace, none bool) {
	if n.Kind == yaml.ScalarNode && n.Value == "none" {
		return nil, true
	}
	return r.pace(n), false
}

func (r *reader) environmentOf(n *yaml.Node) map[string]string {
	variables := make(map[string]string)
	r.Each(n, "environment", func(name string, key, value *yaml.Node) {
		switch {
		case !variableForm.MatchString(name):
			r.Add(key, "environment: %q is not the name of a variable", spell.Clip(name))
		case value.Kind != yaml.ScalarNode:
			r.Add(value, "environment: %s is not a text", name)
		case quota.LooksSecret(value.Value):
			r.Add(value, "environment: this file contains a key (not repeated here): %s",
				"let the job read it from a file of its own")
		default:
			variables[name] = value.Value
		}
	})
	return variables
}

func (r *reader) directory(n *yaml.Node) string {
	path, ok := r.Text(n, "directory")
	if !ok {
		return ""
	}
	return r.path(path)
}

// costs reads {bucket, units}, a list of them, {method, count} or {learned, bucket}.
func (r *jobReader) costs(n *yaml.Node, cred Credential) JobCost {
	table := r.cfg.Table(cred)
	if n.Kind != yaml.SequenceNode {
		return r.jobCost(n, table, cred)
	}
	var all JobCost
	r.List(n, "cost", func(n *yaml.Node) {
		one := r.jobCost(n, table, cred)
		if one.Learned || one.Method != "" {
			r.Add(n, "cost: a list has {bucket: default, units: 40} only")
			return
		}
		for _, c := range one.Costs {
			same := func(other quota.Cost) bool { return other.Bucket == c.Bucket }
			if slices.ContainsFunc(all.Costs, same) {
				r.Add(n, "cost: bucket %s is listed twice", c.Bucket)
				continue
			}
			all.Costs = append(all.Costs, c)
		}
	})
	if len(n.Content) == 0 {
		r.Add(n, "cost: the list is empty")
	}
	return all
}

func (r *jobReader) jobCost(n *yaml.Node, table *costs.Table, cred Credential) JobCost {
	var c JobCost
	var bucket, units, method, count *yaml.Node
	c.Count = 1
	r.Fields(n, "cost", yamlfile.Fields{
		"bucket": func(n *yaml.Node) { bucket = n },
		"units":  func(n *yaml.Node) { units = n },
		"method": func(n *yaml.Node) { method = n },
		"count": func(n *yaml.Node) {
			count, c.Count = n, r.Number(n, "count", 1, quota.MaxUnits)
		},
		"learned": func(n *yaml.Node) { c.Learned = r.Bool(n, "learned") },
	})
	before := len(r.Problems)
	switch {
	case method != nil && (bucket != nil || units != nil || c.Learned):
		r.Add(method, "cost: write a method and its count, or a bucket and units")
	case method != nil:
		c.Method = r.pricedMethod(method, table)
		price, err := table.Price(c.Method)
		if err == nil && r.fits(method, price, c.Count) {
			for _, p := range price {
				c.Costs = append(c.Costs, quota.Cost{Bucket: p.Bucket, Units: p.Units * c.Count})
			}
		}
	case n.Kind != yaml.MappingNode: // which was said
	case bucket == nil:
		r.Add(n, "cost: write {bucket: default, units: 40}, {method: …, count: 3} or "+
			"{learned: true, bucket: default}")
	case units == nil && !c.Learned:
		r.Add(n, "cost: units is missing")
	case count != nil:
		r.Add(count, "cost: count is for a method")
	default:
		cost := quota.Cost{Units: 1} // of a job that is learned, until something is known
		if units != nil {
			cost.Units = r.Number(units, "units", 1, quota.MaxUnits)
		}
		cost.Bucket = r.jobBucket(bucket, table)
		c.Costs = []quota.Cost{cost}
	}
	if len(r.Problems) == before {
		r.checkLimited(n, c.Costs, cred, table)
	}
	return c
}

func (r *reader) fits(at *yaml.Node, price []quota.Cost, count int64) bool {
	for _, p := range price {
		if p.Units > quota.MaxUnits/count {
			r.Add(at, "cost: at most %d units in one run", int64(quota.MaxUnits))
			return false
		}
	}
	return true
}

// pricedMethod reads the ID of a method whose price is known beforehand; its upstream's name may be
// left out.
func (r *jobReader) pricedMethod(n *yaml.Node, table *costs.Table) string {
	id, ok := r.Text(n, "method")
	if !ok {
		return ""
	}
	m, err := table.Lookup(id)
	if whole := table.Upstream + "." + id; err != nil {
		if named, found := table.Lookup(whole); found == nil {
			m, id, err = named, whole, nil
		}
	}
	switch {
	case err != nil:
		r.Add(n, "cost: %v", err)
	case !m.Known():
		r.Add(n, "cost: what %s takes is known only afterwards: write a bucket and units, or "+
			"learned", id)
	}
	return id
}

func (r *jobReader) jobBucket(n *yaml.Node, table *costs.Table) string {
	name, ok := r.Text(n, "bucket")
	if !ok {
		return ""
	}
	known := r.bucketsOf(table)
	if _, ok := known[quota.WholeOf(name)]; !ok {
		r.Add(n, "bucket: no method draws on %q%s", spell.Clip(name),
			spell.DidYouMean(name, names(known)))
	}
	return name
}

// checkLimited reports a bucket of which nothing could be held, and a cost that never fits.
func (r *reader) checkLimited(at *yaml.Node, costs []quota.Cost, cred Credential,
	table *costs.Table) {
	for _, c := range costs {
		limited := false
		for _, l := range cred.Limits {
			if l.Bucket != c.Bucket && l.Bucket != quota.WholeOf(c.Bucket) {
				continue
			}
			limited = true
			if most := l.Cap(false); c.Units > most {
				r.Add(at, "cost: %d units of %s never fit: %s leaves scheduled charges %d", c.Units,
					c.Bucket, l.Window, most)
				break
			}
		}
		if !limited && !table.Unlimited() {
			r.Add(at, "cost: credential %s has no limit on bucket %s: add one to its limits",
				cred.Name, c.Bucket)
		}
	}
}

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
