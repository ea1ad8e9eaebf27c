// Package top is what the live view of quotactl top shows, and what its keys do. It does no I/O: it
// is given what was read of the ledger, and says what is wanted of it.
package top

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

// Picture is one reading of the ledger.
type Picture struct {
	At      time.Time // of the reading, by this machine's clock
	Status  report.Status
	Charges []Charge // the latest, newest first
	Seen    []Seen   // who spent lately, the latest first
}

// Charge is one of the latest entries.
type Charge struct {
	Credential string
	quota.Entry
	Counts costs.Unit // what its units are
}

// Seen is the last time that a job, or a region without a job, spent units of a bucket.
type Seen struct {
	Label, Value string
	Bucket       string
	At           time.Time
	Units        int64 // within the last 24 hours
	Counts       costs.Unit
}

// Row is a limit of a bucket, as it can be selected.
type Row struct {
	Credential report.CredentialStatus
	Bucket     report.BucketStatus
	Limit      report.LimitStatus
}

// part returns the part of the limit that is taken.
func (r Row) part() float64 {
	if r.Limit.Units == 0 {
		return 1
	}
	return float64(r.Limit.Used+r.Bucket.Held) / float64(r.Limit.Units)
}

// ends returns when the window ends, or units come free.
func (r Row) ends() time.Time {
	if end := time.Time(r.Limit.ResetAt); !end.IsZero() {
		return end
	}
	return time.Time(r.Limit.NextFreeAt)
}

// Order is how rows are sorted.
type Order string

// The orders, in the order in which a key goes through them.
const (
	Configured Order = "as configured"
	Fullest    Order = "fullest first"
	Soonest    Order = "next reset first"
)

var orders = []Order{Configured, Fullest, Soonest}

// rows returns the limits to show.
func (s State) rows() (rows []Row) {
	for _, c := range s.pic.Status.Credentials {
		for _, b := range c.Buckets {
			if s.bucket != "" && b.Bucket != s.bucket {
				continue
			}
			for _, l := range b.Limits {
				rows = append(rows, Row{c, b, l})
			}
		}
	}
	switch s.order {
	case Fullest:
		slices.SortStableFunc(rows, func(a, b Row) int {
			return cmp.Compare(b.part(), a.part())
		})
	case Soonest:
		never := time.Unix(1<<40, 0)
		at := func(r Row) time.Time {
			if end := r.ends(); !end.IsZero() {
				return end
			}
			return never
		}
		slices.SortStableFunc(rows, func(a, b Row) int { return at(a).Compare(at(b)) })
	}
	return rows
}

// buckets returns the names of the buckets to choose from.
func (s State) buckets() (names []string) {
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
func (s State) shows(c Charge) bool {
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

// Latest returns the latest of all charges, newest first.
func Latest(charges []Charge, most int) []Charge {
	slices.SortStableFunc(charges, func(a, b Charge) int { return b.At.Compare(a.At) })
	return charges[:min(len(charges), most)]
}

// AddUp adds the units spent from a bucket, from a day's sums; At is the start of the latest sum.
func AddUp(seen []Seen, bucket string, of costs.Unit, sums []quota.Sum) []Seen {
	for _, sum := range sums {
		if by, value := spender(sum.Labels); value != "" {
			seen = add(seen, Seen{by, value, bucket, sum.At, sum.Units, of})
		}
	}
	return seen
}

// spender returns the label that names the spender, and its value: the job, else the region.
func spender(labels quota.Labels) (label, value string) {
	if job := labels[quota.LabelJob]; job != "" {
		return quota.LabelJob, job
	}
	return quota.LabelRegion, labels[quota.LabelRegion]
}

func add(seen []Seen, one Seen) []Seen {
	i := slices.IndexFunc(seen, func(s Seen) bool {
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

// Lately puts the times of the latest charges in place of those of their grains, the latest first.
func Lately(seen []Seen, charges []Charge) []Seen {
	seen = slices.Clone(seen)
	for _, c := range charges {
		if by, value := spender(c.Labels); value != "" {
			seen = add(seen, Seen{by, value, c.Bucket, c.At, 0, c.Counts})
		}
	}
	slices.SortStableFunc(seen, func(a, b Seen) int { return b.At.Compare(a.At) })
	return seen
}
