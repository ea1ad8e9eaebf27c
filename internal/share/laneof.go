package share

import "quotabudget/internal/quota"

// LaneOf returns the lane that an entry with these labels belongs to: the lane of its job and
// region, of a job without regions, or the first lane of the region for another job. It returns
// Others if there is none.
func (r *Rule) LaneOf(labels quota.Labels) int {
	job, region := labels[quota.LabelJob], labels[quota.LabelRegion]
	ours, first := false, Others
	for i := range r.Lanes {
		l := &r.Lanes[i]
		if l.Job == job && (l.Region == region || l.Region == "") {
			return i
		}
		if l.Region == region && region != "" && first == Others {
			first = i
		}
		ours = ours || l.Job == job
	}
	if !ours {
		return Others
	}
	return first
}
