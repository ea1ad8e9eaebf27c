package main

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

// picture is one reading of the ledger.
type picture struct {
	At      time.Time // of the reading, by this machine's clock
	Status  report.Status
	Charges []latest        // the latest, newest first
	Seen    []recentSpender // jobs and regions that spent lately, the latest first
}

// latest is one of the latest entries.
type latest struct {
	Credential string
	quota.Entry
	Counts costs.Unit // what its units are
}

// recentSpender is the last time that a job, or a region without a job, spent units of a bucket.
type recentSpender struct {
	Label, Value string
	Bucket       string
	At           time.Time
	Units        int64 // within the last 24 hours
	Counts       costs.Unit
}

// topRow is a limit of a bucket, as it can be selected.
type topRow struct {
	Credential report.CredentialStatus
	Bucket     report.BucketStatus
	Limit      report.LimitStatus
}

// part returns the part of the limit that is taken.
func (r topRow) part() float64 {
	if r.Limit.Units == 0 {
		return 1
	}
	return float64(r.Limit.Used+r.Bucket.Held) / float64(r.Limit.Units)
}

// ends returns when the window ends, or units come free.
func (r topRow) ends() time.Time {
	if end := time.Time(r.Limit.ResetAt); !end.IsZero() {
		return end
	}
	return time.Time(r.Limit.NextFreeAt)
}

// topOrder is how rows are sorted.
type topOrder string

// The orders, in the order in which a key goes through them.
const (
	asConfigured   topOrder = "as configured"
	fullestFirst   topOrder = "fullest first"
	nextResetFirst topOrder = "next reset first"
)

var orders = []topOrder{asConfigured, fullestFirst, nextResetFirst}

// rows returns the limits to show.
func (s topState) rows() (rows []topRow) {
	for _, c := range s.pic.Status.Credentials {
		for _, b := range c.Buckets {
			if s.bucket != "" && b.Bucket != s.bucket {
				continue
			}
			for _, l := range b.Limits {
				rows = append(rows, topRow{c, b, l})
			}
		}
	}
	switch s.order {
	case fullestFirst:
		slices.SortStableFunc(rows, func(a, b topRow) int {
			return cmp.Compare(b.part(), a.part())
		})
	case nextResetFirst:
		never := time.Unix(1<<40, 0)
		at := func(r topRow) time.Time {
			if end := r.ends(); !end.IsZero() {
				return end
			}
			return never
		}
		slices.SortStableFunc(rows, func(a, b topRow) int { return at(a).Compare(at(b)) })
	}
	return rows
}

// buckets returns the names of the buckets to choose from.
func (s topState) buckets() (names []string) {
	for _, c := range s.pic.Status.Credentials {
		for _, b := range c.Buckets {
			if !slices.Contains(names, b.Bucket) {
				names = append(names, b.Bucket)
			}
		}
	}
	return names
}

// shows reports whether a charge passes the filters: a bucket, and a label NAME=VALUE, or a text
// that is part of any of its values.
func (s topState) shows(c latest) bool {
	if s.bucket != "" && c.Bucket != s.bucket {
		return false
	}
	name, value, exact := strings.Cut(s.label, "=")
	if exact {
		return c.Labels[name] == value
	}
	for _, v := range c.Labels {
		if strings.Contains(v, s.label) {
			return true
		}
	}
	return s.label == ""
}

// latestOf returns the latest of all charges, newest first.
func latestOf(charges []latest, most int) []latest {
	slices.SortStableFunc(charges, func(a, b latest) int { return b.At.Compare(a.At) })
	return charges[:min(len(charges), most)]
}

// addUp adds the units spent from a bucket, from a day's sums; At is the start of the latest sum.
func addUp(seen []recentSpender, bucket string, of costs.Unit, sums []quota.Sum) []recentSpender {
	for _, sum := range sums {
		if by, value := spenderLabel(sum.Labels); value != "" {
			seen = add(seen, recentSpender{by, value, bucket, sum.At, sum.Units, of})
		}
	}
	return seen
}

// spenderLabel returns the label that names the spender, and its value: the job, else the region.
func spenderLabel(labels quota.Labels) (label, value string) {
	if job := labels[quota.LabelJob]; job != "" {
		return quota.LabelJob, job
	}
	return quota.LabelRegion, labels[quota.LabelRegion]
}

func add(seen []recentSpender, one recentSpender) []recentSpender {
	i := slices.IndexFunc(seen, func(s recentSpender) bool {
		return s.Label == one.Label && s.Value == one.Value && s.Bucket == one.Bucket
	})
	if i < 0 {
		return append(seen, one)
	}
	s := &seen[i]
	s.Units += one.Units
	if one.At.After(s.At) {
		s.At = one.At
	}
	return seen
}

// lately puts the times of the latest charges in place of those of their grains, the latest first.
func lately(seen []recentSpender, charges []latest) []recentSpender {
	seen = slices.Clone(seen)
	for _, c := range charges {
		if by, value := spenderLabel(c.Labels); value != "" {
			seen = add(seen, recentSpender{by, value, c.Bucket, c.At, 0, c.Counts})
		}
	}
	slices.SortStableFunc(seen, func(a, b recentSpender) int { return b.At.Compare(a.At) })
	return seen
}
