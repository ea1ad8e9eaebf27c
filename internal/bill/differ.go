package bill

import (
	"strings"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
)

// ServiceOf returns the API whose name the upstream's metrics begin with, or "" if no bucket has
// a metric of Google's.
func ServiceOf(t *costs.Table) string {
	for _, b := range t.Buckets() {
		service, _, _ := strings.Cut(b.Metric, "/")
		if strings.HasSuffix(service, ".googleapis.com") {
			return service
		}
	}
	return ""
}

// Difference is a limit that differs from Google's.
type Difference struct {
	Ours   quota.Limit
	Theirs int64 // -1 for unlimited
}

// Differ returns our limits that differ from Google's.
func Differ(ours []quota.Limit, google []Limit, t *costs.Table) (all []Difference) {
	for _, theirs := range google {
		bucket, ok := t.BucketOfMetric(theirs.Metric)
		if !ok {
			continue
		}
		for _, l := range quota.LimitsOf(bucket.Name, ours) {
			if theirs.about(l.Window) && l.Units != theirs.Units {
				all = append(all, Difference{l, theirs.Units})
			}
		}
	}
	return all
}

// about reports whether the limit is comparable to one of ours with that window: a day or a
// minute of the whole project.
func (l Limit) about(w quota.Window) bool {
	switch l.Unit {
	case "1/d/{project}":
		return w.Calendar == "day" || w.Text() == "24h"
	case "1/min/{project}":
		return w.Calendar == "minute" || w.Text() == "1m"
	}
	return false
}
