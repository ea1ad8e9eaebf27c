package config

import (
	"cmp"
	"slices"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/grammar"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// runsAny reports whether the daemon runs any of the jobs.
func runsAny(jobs []fileJob) bool {
	return len(jobs) == 0 || slices.ContainsFunc(jobs, func(j fileJob) bool {
		return j.Elsewhere == ""
	})
}

// ownJob checks a job. The credentials and their limits are read by then.
func (r *reader) ownJob(f fileJob, at grammar.Place) OwnJob {
	j := f.OwnJob
	if j.Timezone = time.UTC; f.Timezone != "" {
		j.Timezone, _ = parseZone(f.Timezone)
	}
	j.Max, j.Queue, j.Directory = f.Max.cost(), f.Overlap == "queue", r.path(j.Directory)
	if j.Pace, j.Unpaced = f.Pace, f.Pace != nil && f.Pace.none; j.Unpaced {
		j.Pace = nil
	}
	r.jobName(j.Name, at.Key("name"))
	if j.Elsewhere == "" {
		r.refuseDefaultJob(j.Name, at.Key("name"))
	}
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
		jobBucket(j.Max.Bucket, table, at.Key("max").Key("bucket"))
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
		ok := f.Method != "" || jobBucket(f.Bucket, table, at.Key("bucket"))
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
			at.Key("count").Add("at most %d units in one run", int64(quota.MaxUnits))
			return nil, id, false
		}
		units = append(units, quota.Cost{Bucket: p.Bucket, Units: p.Units * count})
	}
	return units, id, true
}

func jobBucket(name string, table *costs.Table, at grammar.Place) bool {
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
