package main

import (
	"context"
	"iter"
	"strconv"

	"quotabudget/internal/quota"
)

// labelTakenOff is the label, in the log as it is shown, of units that a correction has taken off
// entries. These have none of them any more, so the line itself is of 0 units.
const labelTakenOff = "taken_off"

// takings are the corrections of a bucket as lines of its log.
func (g *gate) takings(ctx context.Context, q quota.Query) ([]quota.Entry, error) {
	list, err := g.Ledger.Takings(ctx, q)
	entries := make([]quota.Entry, len(list))
	for i, t := range list {
		entries[i] = quota.Entry{At: t.At, ID: t.ID, Bucket: t.Bucket,
			Labels: t.Labels.With(quota.Labels{labelTakenOff: strconv.FormatInt(t.Units, 10)})}
	}
	return entries, err
}

// each is a list as it is merged with logs.
func each(list []quota.Entry) iter.Seq2[quota.Entry, error] {
	return func(yield func(quota.Entry, error) bool) {
		for _, e := range list {
			if !yield(e, nil) {
				return
			}
		}
	}
}
