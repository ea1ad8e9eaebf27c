package quota

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"
	"time"
)

// LabelLimit limits what each value of a label uses of a bucket. Each value has its own bucket
// (LabelBucket), which is charged, held and settled together with the bucket itself. Corrections
// and upstream reports concern only the bucket itself.
type LabelLimit struct {
	Limit                  // for each value without a row in Parts
	Label string           // a call without it counts as the value ""
	Parts map[string]int64 // units by value
}

// Name identifies the limit in messages about the configuration: "money per label:team month UTC".
func (l LabelLimit) Name() string {
	return l.Bucket + " per label:" + l.Label + " " + l.Window.String()
}

// MaxValueBytes is how many bytes of a label's value are part of its bucket's name.
const MaxValueBytes = 64

// LabelBucket returns the bucket for the usage of one value of a label: money@team=ci. No bucket of
// a price list has such a name. Bytes of the value other than ASCII letters, digits, and _-.@ are
// written as ~ and two hexadecimal digits. Values with the same first 64 bytes share a bucket.
func LabelBucket(bucket, label, value string) string {
	name := []byte(bucket + "@" + label + "=")
	for _, c := range []byte(value[:min(len(value), MaxValueBytes)]) {
		if 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' ||
			strings.IndexByte("_-.@", c) >= 0 {
			name = append(name, c)
		} else {
			name = fmt.Appendf(name, "~%02x", c)
		}
	}
	return string(name)
}

// ParseLabelBucket splits a name of LabelBucket; ok is false for any other bucket.
func ParseLabelBucket(name string) (bucket, label, value string, ok bool) {
	bucket, rest, is := strings.Cut(name, "@")
	label, text, has := strings.Cut(rest, "=")
	if !is || !has {
		return name, "", "", false
	}
	value, err := url.PathUnescape(strings.ReplaceAll(text, "~", "%"))
	if err != nil {
		return name, "", "", false
	}
	ok = CheckBucket(bucket) == nil && labelForm.MatchString(label) &&
		LabelBucket(bucket, label, value) == name
	return bucket, label, value, ok
}

// IsLabelBucket reports whether the bucket belongs to a label's value.
func IsLabelBucket(bucket string) bool { return strings.Contains(bucket, "@") }

// ShownBucket returns a bucket's name for people: money@team=(none) for calls without a label.
func ShownBucket(bucket string) string {
	if IsLabelBucket(bucket) && strings.HasSuffix(bucket, "=") {
		return bucket + "(none)"
	}
	return bucket
}

// checkLogName reports what is wrong with the name of a bucket in a ledger.
func checkLogName(bucket string) error {
	if _, _, _, ok := ParseLabelBucket(bucket); ok {
		return nil
	}
	return CheckBucket(bucket)
}

// withoutLabels returns the buckets that do not belong to a label's value.
func withoutLabels(buckets []string) []string {
	return slices.DeleteFunc(slices.Clone(buckets), IsLabelBucket)
}

// HeldBuckets returns the price-list buckets of a reservation. Errors: ErrMalformed.
func HeldBuckets(reservation string) ([]string, error) {
	_, buckets, err := ParseReservation(reservation)
	return withoutLabels(buckets), err
}

// HeldLabels returns the labels whose values have buckets in the reservation. They override the
// labels of draws and settlements.
func HeldLabels(reservation string) Labels {
	held := Labels{}
	_, buckets, _ := ParseReservation(reservation)
	for _, bucket := range buckets {
		if _, label, value, ok := ParseLabelBucket(bucket); ok {
			held[label] = value
		}
	}
	return held
}

// UnlabelledUnits returns units without the buckets of labels' values, which the other buckets
// already include.
func UnlabelledUnits(units map[string]int64) map[string]int64 {
	real := maps.Clone(units)
	maps.DeleteFunc(real, func(bucket string, _ int64) bool { return IsLabelBucket(bucket) })
	return real
}

// unlabelled returns the decision for the caller, with price-list buckets only. Remaining is the
// minimum over all limits of the bucket.
func (d Decision) unlabelled() Decision {
	remaining := UnlabelledUnits(d.Remaining)
	for name, left := range d.Remaining {
		whole, _, _ := strings.Cut(name, "@")
		for bucket := range d.Units {
			if whole == name || IsLabelBucket(bucket) || bucket != whole && WholeOf(bucket) != whole {
				continue
			}
			if least, ok := remaining[bucket]; !ok || left < least {
				remaining[bucket] = left
			}
		}
	}
	d.Units, d.Remaining = UnlabelledUnits(d.Units), remaining
	return d
}

// labelled adds the costs in the buckets of the labels' values. A cost in a bucket of the
// reservation is added to the values that the reservation names, whatever the current limits are.
func (b *Budget) labelled(costs []Cost, labels Labels, reservation string) []Cost {
	_, held, _ := ParseReservation(reservation)
	var own []Cost
	all := slices.Clone(costs)
	for _, c := range costs {
		if slices.Contains(held, c.Bucket) {
			own = append(own, c)
			continue
		}
		var counted []string // a cost counts once in a bucket, however many limits the bucket has
		for _, l := range b.PerLabel {
			cost, whole := c, WholeOf(c.Bucket)
			switch {
			case IsLabelBucket(c.Bucket):
				continue
			case l.Across && whole == l.Bucket && whole != c.Bucket:
				cost.Bucket = whole
			case l.Across && slices.Contains(b.Split, l.Bucket), !b.labelHolds(l, c.Bucket):
				continue
			}
			cost.Bucket = LabelBucket(cost.Bucket, l.Label, labels[l.Label])
			if !slices.Contains(counted, cost.Bucket) {
				all, counted = addCost(all, cost), append(counted, cost.Bucket)
			}
		}
	}
	for _, c := range valueCosts(held, own) {
		all = addCost(all, c)
	}
	return all
}

// DrawOn returns the charge as a draw on the reservation: in its bucket, the units count for the
// reservation's values of labels. The entries keep the labels of the charge.
func (b *Budget) DrawOn(reservation string, c Charge) Charge {
	real := slices.DeleteFunc(slices.Clone(c.Costs), func(c Cost) bool {
		return IsLabelBucket(c.Bucket)
	})
	c.Reservation, c.Costs = reservation, b.labelled(real, c.Labels, reservation)
	c.Limits = slices.Concat(slices.DeleteFunc(slices.Clone(c.Limits), func(l Limit) bool {
		return IsLabelBucket(l.Bucket)
	}), b.limitsOf(bucketsOf(c.Costs[len(real):])))
	return c
}

// labelHolds reports whether the limit applies to label values of the bucket.
func (b *Budget) labelHolds(l LabelLimit, bucket string) bool {
	var same []Limit
	for _, other := range b.PerLabel {
		if other.Label == l.Label {
			same = append(same, other.Limit)
		}
	}
	return b.holdsFor(l.Limit, bucket, same)
}

// valueCosts returns the costs in the label values' buckets of the reservation. A reservation keeps
// its labels, whatever the labels of a draw or a settlement are.
func valueCosts(buckets []string, costs []Cost) (values []Cost) {
	for _, name := range buckets {
		split, _, derived := strings.Cut(name, "@")
		if !derived {
			continue
		}
		whole := indexOf(costs, split) >= 0
		for _, c := range costs {
			if c.Bucket == split || !whole && WholeOf(c.Bucket) == split {
				c.Bucket = name
				values = addCost(values, c)
			}
		}
	}
	return values
}

// addCost adds c to the cost of its bucket.
func addCost(costs []Cost, c Cost) []Cost {
	i := indexOf(costs, c.Bucket)
	if i < 0 {
		return append(costs, c)
	}
	costs[i] = costs[i].plus(c)
	return costs
}

// ErrNewValue reports that a request without NewValues would begin the log of a label's value.
var ErrNewValue = errors.New("the value of a label has no log")

// checkNew refuses to begin the log of a label's value.
func (a *Account) checkNew() error {
	for _, b := range a.Buckets {
		if b.newest.Units == 0 && len(b.Holds) == 0 && IsLabelBucket(b.Name) {
			return fmt.Errorf("%s: %w", b.Name, ErrNewValue)
		}
	}
	return nil
}

// checkUnlabelled refuses the buckets of labels' values: only calls with such labels charge them.
func checkUnlabelled(costs ...Cost) error {
	for _, c := range costs {
		if whole, label, value, ok := ParseLabelBucket(c.Bucket); ok {
			return malformed("bucket %s counts calls with the label %s=%s: charge %s", c.Bucket,
				label, value, whole)
		}
	}
	return nil
}

// MaxValues is the maximum number of active values of a label under one limit. A value is active if
// it was charged or held in the limit's window, or in the last hour if that is longer. Calls that
// begin values at the same moment can each exceed the maximum by one.
const MaxValues = 1000

// withNewValues asks for the charge. If the charge would begin the log of a label's value,
// withNewValues denies it when the limit has MaxValues active values. An observed or booked charge
// then passes, but is not counted for the value.
func (b *Budget) withNewValues(ctx context.Context, c *Charge,
	ask func(context.Context, Charge) (Decision, error)) (Decision, error) {
	d, err := ask(ctx, *c)
	if !errors.Is(err, ErrNewValue) {
		return d, err
	}
	now, err := b.Ledger.Time(ctx)
	if err != nil {
		return Decision{}, err
	}
	buckets, err := b.Ledger.BucketsOf(ctx, b.Credential)
	if err != nil {
		return Decision{}, err
	}
	c.NewValues = true
	full := Decision{At: now, Units: UnitsOf(c.Costs), Remaining: map[string]int64{}}
	c.Costs = slices.DeleteFunc(slices.Clone(c.Costs), func(cost Cost) bool {
		limit, retryAt := b.crowded(cost.Bucket, buckets, now)
		observed := c.Observe || limit.Observe
		if retryAt.After(full.RetryAt) && !observed {
			full.RetryAt, full.Limit = retryAt, fmt.Sprintf("%d values per label:%s of %s",
				MaxValues, limit.Label, limit.Bucket)
		}
		return limit.Label != "" && observed
	})
	if full.Limit != "" {
		return full, nil
	}
	return ask(ctx, *c)
}

// crowded returns a limit for which the bucket would be one active value too many, and when another
// value becomes idle. It returns the zero Limit if there is none.
func (b *Budget) crowded(bucket string, buckets []BucketTotal, now time.Time) (
	crowded LabelLimit, retryAt time.Time) {
	whole, label, _, derived := ParseLabelBucket(bucket)
	prefix := whole + "@" + label + "="
	for _, l := range b.PerLabel {
		if !derived || l.Label != label || !b.labelHolds(l, whole) {
			continue
		}
		since := l.Since(now, time.Time{})
		if hour := now.Add(-time.Hour); hour.Before(since) {
			since = hour
		}
		var active []time.Time
		for _, k := range buckets {
			if strings.HasPrefix(k.Bucket, prefix) && k.Bucket != bucket && k.LastAt.After(since) {
				active = append(active, k.LastAt)
			}
		}
		if len(active) < MaxValues {
			continue
		}
		idleAt := slices.MinFunc(active, time.Time.Compare).Add(now.Sub(since))
		if l.Window.IsCalendar() {
			if _, end := l.Window.Bounds(now); end.After(idleAt) {
				idleAt = end
			}
		}
		if idleAt.After(retryAt) {
			crowded, retryAt = l, idleAt
		}
	}
	return crowded, retryAt
}
