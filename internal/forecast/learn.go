package forecast

import (
	"slices"
	"time"

	"quotabudget/internal/quota"
)

const (
	// runsLearned is how many past runs of a lane are looked at.
	runsLearned = 5
	// underWay is for how long after its last page a run may still be going on.
	underWay = 10 * time.Minute
)

// laneRun is one run of a lane, by its labels.
type laneRun struct{ job, region, run string }

// learn gives each lane the pages that its last runs took: the most of them, because a run that was cut off took fewer, and never
// more than are configured, because an attempt that failed takes units too. A lane without a past keeps its pages.
func learn(lanes []Lane, b Bucket) []Lane {
	units := make(map[laneRun]int64)
	last := make(map[laneRun]time.Time)
	var order []laneRun // by their first entries
	for _, e := range b.Entries {
		r := laneRun{e.Labels[quota.LabelJob], e.Labels[quota.LabelRegion], e.Labels[quota.LabelRun]}
		if r.run == "" {
			continue
		}
		if units[r] == 0 {
			order = append(order, r)
		}
		units[r], last[r] = units[r]+e.Units, e.At
	}
	learned := slices.Clone(lanes)
	for i := range learned {
		l := &learned[i]
		price, most, seen := l.units(b.Name), int64(0), 0
		for j := len(order) - 1; j >= 0 && seen < runsLearned && price > 0; j-- {
			r := order[j]
			if r.job == l.Job && r.region == l.Region && b.At.Sub(last[r]) >= underWay {
				most, seen = max(most, units[r]/price), seen+1
			}
		}
		if most > 0 {
			l.Pages = min(l.Pages, int(most))
		}
	}
	return learned
}
