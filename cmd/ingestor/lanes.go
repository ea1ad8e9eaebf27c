package main

import (
	"quotabudget/internal/config"
	"quotabudget/internal/share"
)

// lanesOf are the configured lanes, with what each may take of a short day.
func lanesOf(cfg *config.Config) ([]share.Lane, error) {
	configured, err := cfg.Lanes()
	lanes := make([]share.Lane, len(configured))
	for i, l := range configured {
		lanes[i] = share.Lane{
			Lane: l.Lane, Zone: l.Zone, Pages: int64(l.Pages), Weight: cfg.Daemon.Weight(l.Code), Priority: cfg.Daemon.Priorities[l.Code], Floor: cfg.Daemon.Floors[l.Code],
		}
	}
	return lanes, err
}
