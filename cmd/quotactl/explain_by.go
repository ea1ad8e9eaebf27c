package main

import (
	"cmp"
	"maps"
	"slices"

	"quotabudget/internal/quota"
)

// spender is a job that took units, or the entries with the same labels if they name no job.
type spender struct {
	Labels quota.Labels `json:"labels"` // shared by all of its entries
	Units  int64        `json:"units"`
}

// The labels of what a reservation holds.
const (
	labelReservation = "reservation"
	labelNote        = "note"
)

// sumUp adds up what was spent by job, and adds what reservations hold; the largest sum first.
func sumUp(spent []quota.Sum, held []quota.Reservation) []spender {
	sums := make(map[string]*spender)
	add := func(labels quota.Labels, units int64) {
		line := labels.Encode()
		if job := labels[quota.LabelJob]; job != "" {
			line = quota.Labels{quota.LabelJob: job}.Encode()
		}
		if sums[line] == nil {
			sums[line] = &spender{Labels: labels}
		}
		of := sums[line]
		of.Units += units
		maps.DeleteFunc(of.Labels, func(name, value string) bool { return labels[name] != value })
	}
	for _, s := range spent {
		labels := s.Labels.With(nil)
		delete(labels, quota.LabelDenied)
		add(labels, s.Units)
	}
	for _, r := range held {
		labels := quota.Labels{labelReservation: r.ID}
		if r.Note != "" {
			labels[labelNote] = r.Note
		}
		if r.Left > 0 {
			add(labels, r.Left)
		}
	}
	by := []spender{}
	for _, s := range sums {
		by = append(by, *s)
	}
	slices.SortFunc(by, func(a, b spender) int {
		return cmp.Or(cmp.Compare(b.Units, a.Units),
			cmp.Compare(a.Labels.Encode(), b.Labels.Encode()))
	})
	return by
}

func (s spender) text() string { return cmp.Or(labelText(s.Labels), "(none)") }
