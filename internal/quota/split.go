package quota

import (
	"cmp"
	"context"
	"slices"
	"strings"
)

// spread adds the sums of split buckets with a limit across their parts, and the costs of label
// values or of the reservation drawn on. It returns all costs, and all limits that apply.
func (b *Budget) spread(costs []Cost, labels Labels, reservation string) ([]Cost, []Limit) {
	costs = b.labelled(b.across(costs), labels, reservation)
	return costs, b.limitsOf(bucketsOf(costs))
}

// across adds the sum of the parts' costs in each bucket that has a limit across its parts.
func (b *Budget) across(costs []Cost) []Cost {
	all := slices.Clone(costs)
	for _, c := range costs {
		whole := WholeOf(c.Bucket)
		matches := func(l Limit) bool { return l.Bucket == whole && l.Across }
		if whole == c.Bucket || !slices.ContainsFunc(b.Limits, matches) {
			continue
		}
		c.Bucket = whole
		all = addCost(all, c)
	}
	return all
}

// plus returns the sum of two costs. AllUnits plus any units is AllUnits.
func (c Cost) plus(more Cost) Cost {
	if c.Units == AllUnits || more.Units == AllUnits {
		c.Units = AllUnits
		return c
	}
	if c.Most > 0 || more.Most > 0 {
		c.Most = max(c.Units, c.Most) + max(more.Units, more.Most)
	}
	c.Units, c.Bounded = c.Units+more.Units, c.Bounded || more.Bounded
	return c
}

// Limited reports whether units can be taken from a bucket, because it has a limit or is a part of
// a split bucket. The limits of a split bucket apply to its parts, unless they are across them.
func (b *Budget) Limited(bucket string) bool {
	across := func(l Limit) bool { return l.Across && l.Bucket == bucket }
	if slices.Contains(b.Split, bucket) {
		return slices.ContainsFunc(b.Limits, across)
	}
	return slices.Contains(b.Buckets(), bucket) || slices.Contains(b.Split, WholeOf(bucket))
}

// limitsOf returns the limits that apply to charges of the buckets, each for one of them.
func (b *Budget) limitsOf(buckets []string) []Limit {
	limits := b.limitsAmong(b.Limits, buckets)
	for _, bucket := range buckets {
		whole, label, value, derived := ParseLabelBucket(bucket)
		for _, l := range b.PerLabel {
			if !derived || l.Label != label || !b.labelHolds(l, whole) {
				continue
			}
			limit := l.on(bucket)
			if units, ok := l.Parts[value]; ok {
				limit.Units, limit.Headroom = units, min(l.Headroom, units)
			}
			limits = append(limits, limit)
		}
	}
	return limits
}

// limitsAmong returns the limits in all that apply to charges of the buckets.
func (b *Budget) limitsAmong(all []Limit, buckets []string) (limits []Limit) {
	for _, l := range all {
		for _, bucket := range buckets {
			if b.holdsFor(l, bucket, b.Limits) {
				limits = append(limits, l.on(bucket))
			}
		}
	}
	return limits
}

// holdsFor reports whether the limit applies to the bucket. A limit across parts applies to their
// sum. Another limit on a split bucket applies to each part without its own limit in such a window,
// and not to the sum.
func (b *Budget) holdsFor(l Limit, bucket string, all []Limit) bool {
	switch {
	case IsLabelBucket(bucket):
		return false
	case bucket == l.Bucket:
		return l.Across || !slices.Contains(b.Split, bucket)
	}
	own := func(other Limit) bool {
		return other.Bucket == bucket && other.Window.String() == l.Window.String() &&
			other.Observe == l.Observe // an observed limit replaces no enforced one
	}
	return !l.Across && l.Bucket == WholeOf(bucket) && !slices.ContainsFunc(all, own)
}

// on returns the limit on another bucket.
func (l Limit) on(bucket string) Limit {
	l.Bucket = bucket
	return l
}

// MaxParts is the maximum number of parts of a split bucket to list. Callers can create any number:
// each model name that they send becomes a part, even if the upstream has no such model.
const MaxParts = 20

// Standing returns the limits of all buckets: limits of split buckets for each part in the ledger,
// and limits per label for each value in the ledger or the configuration. Errors are the ledger's.
func (b *Budget) Standing(ctx context.Context) ([]Limit, error) {
	parts, err := b.parts(ctx)
	return b.standing(BucketNames(parts)), err
}

// Listed is like Standing, but leaves out the parts and values that took the fewest units. It also
// returns how many parts of each bucket, or values of its label, it left out; unused ones do not
// count.
func (b *Budget) Listed(ctx context.Context) ([]Limit, map[string]int, error) {
	parts, err := b.parts(ctx)
	if err != nil {
		return nil, nil, err
	}
	slices.SortStableFunc(parts, func(x, y BucketTotal) int { return cmp.Compare(y.Units, x.Units) })
	var listed []string
	counts, leftOut := make(map[string]int), make(map[string]int)
	for _, part := range parts {
		whole, _, label := strings.Cut(part.Bucket, "=") // money@team
		if !label {
			whole = WholeOf(whole)
		}
		switch {
		case part.Units == 0 && !part.Noted:
		case counts[whole] == MaxParts:
			leftOut[whole]++
		default:
			counts[whole]++
			listed = append(listed, part.Bucket)
		}
	}
	slices.Sort(listed)
	return b.standing(listed), leftOut, nil
}

// parts returns the parts of split buckets, and the values of labels, that the ledger has.
func (b *Budget) parts(ctx context.Context) ([]BucketTotal, error) {
	if len(b.Split)+len(b.PerLabel) == 0 {
		return nil, nil
	}
	all, err := b.Ledger.BucketsOf(ctx, b.Credential)
	return slices.DeleteFunc(all, func(total BucketTotal) bool {
		if IsLabelBucket(total.Bucket) {
			return len(b.LimitsOn(total.Bucket)) == 0
		}
		whole := WholeOf(total.Bucket)
		return whole == total.Bucket || !slices.Contains(b.Split, whole)
	}), err
}

// standing returns the limits of all buckets: limits of split buckets for each of the parts, and
// limits per label for each value that is among parts or has a row in the configuration.
func (b *Budget) standing(parts []string) (limits []Limit) {
	for _, l := range b.Limits {
		if l.Across || !slices.Contains(b.Split, l.Bucket) {
			limits = append(limits, l)
		} else {
			limits = append(limits, b.limitsAmong([]Limit{l}, parts)...)
		}
	}
	values := slices.DeleteFunc(slices.Clone(parts), func(part string) bool {
		return !IsLabelBucket(part)
	})
	for _, l := range b.PerLabel {
		for value := range l.Parts {
			if l.Across || !slices.Contains(b.Split, l.Bucket) {
				values = append(values, LabelBucket(l.Bucket, l.Label, value))
			}
		}
	}
	slices.Sort(values)
	return append(limits, b.limitsOf(slices.Compact(values))...)
}

func bucketsOf(costs []Cost) []string {
	names := make([]string, len(costs))
	for i, c := range costs {
		names[i] = c.Bucket
	}
	return names
}
