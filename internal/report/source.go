package report

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"runtime/debug"
	"slices"
	"strings"

	"quotabudget/internal/catalog"
	"quotabudget/internal/config"
	"quotabudget/internal/job"
	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
	"quotabudget/internal/share"
)

// PageMethod is the method that a page of a chart is charged as.
const PageMethod = "youtube.videos.list"

// Source holds the inputs of reports.
type Source struct {
	Config *config.Config
	Ledger *ledger.Ledger
}

// budget returns the budget of a credential.
func (s Source) budget(c config.Credential) *quota.Budget {
	return c.Budget(s.Ledger, s.Config.Table(c), slog.New(slog.DiscardHandler))
}

// Scheduled reports whether the regions are swept by a schedule: one is configured, or the log
// contains a daemon's run. Without an open ledger, only the configuration counts.
func (s Source) Scheduled(ctx context.Context) (bool, error) {
	if s.Config.Ingest.Scheduled || s.Ledger == nil || s.Config.Ingest.Credential == "" {
		return s.Config.Ingest.Scheduled, nil
	}
	price, err := s.Config.Costs.Price(PageMethod)
	if err != nil { // no region can be swept
		return false, nil
	}
	for _, c := range price {
		entries, err := s.Ledger.Entries(ctx, quota.Query{Credential: s.Config.Ingest.Credential,
			Bucket: c.Bucket, Limit: newestEntries})
		if err != nil {
			return false, err
		}
		for _, e := range entries { // a daemon names the run of a sweep after its tick
			if strings.HasPrefix(e.Labels[quota.LabelRun], config.DefaultJob+"/") {
				return true, nil
			}
		}
	}
	return false, nil
}

// newestEntries is the number of entries searched for a daemon's run.
const newestEntries = 1000

// Assumed returns the source for a plan, and whether it assumes the default schedule, which it does
// only if nothing is scheduled.
func (s Source) Assumed(ctx context.Context) (Source, bool, error) {
	scheduled, err := s.Scheduled(ctx)
	if err != nil || scheduled {
		return s, false, err
	}
	cfg := *s.Config
	cfg.Ingest.Scheduled = len(cfg.Jobs) == 0
	if !cfg.Ingest.Scheduled {
		cfg.Ingest.Regions = nil
	}
	return Source{Config: &cfg, Ledger: s.Ledger}, cfg.Ingest.Scheduled, nil
}

// Regions returns the configured regions.
func (s Source) Regions() []string {
	names := make([]string, len(s.Config.Ingest.Regions))
	for i, r := range s.Config.Ingest.Regions {
		names[i] = string(r)
	}
	return names
}

// RegionStates returns the states of the configured regions or, if no schedule is configured and no
// daemon has run, of the default regions that have a chart.
func (s Source) RegionStates(ctx context.Context, c *catalog.Catalog) ([]catalog.RegionState,
	error) {
	states, err := c.Staleness(ctx, s.Regions())
	if err != nil {
		return nil, err
	}
	// If the ledger cannot be read, show all configured regions.
	if scheduled, err := s.Scheduled(ctx); err != nil || scheduled {
		return states, nil
	}
	return slices.DeleteFunc(states, func(r catalog.RegionState) bool {
		return r.CompletedAt.IsZero()
	}), nil
}

// Lanes returns the lanes that spend from a credential: lanes of the sweep, with the pages of a run
// according to the catalogue, and lanes of jobs, with the units of a run according to the ledger,
// if there is one.
func (s Source) Lanes(ctx context.Context, cred config.Credential) ([]share.Lane, error) {
	var sweep []share.Lane
	if s.Config.Ingest.Credential == cred.Name {
		var err error
		if sweep, err = s.sweepLanes(ctx); err != nil {
			return nil, err
		}
	}
	jobs, err := s.JobLanes(ctx, cred)
	return append(sweep, jobs...), err
}

// AllLanes returns the lanes of all credentials.
func (s Source) AllLanes(ctx context.Context) (all []share.Lane, err error) {
	if s.Config.Ingest.Credential == "" { // a sweep needs a credential
		if all, err = s.sweepLanes(ctx); err != nil {
			return nil, err
		}
	}
	for _, cred := range s.Config.Credentials {
		lanes, err := s.Lanes(ctx, cred)
		if err != nil {
			return nil, err
		}
		all = append(all, lanes...)
	}
	return all, nil
}

// JobLanes returns the lanes of the jobs alone.
func (s Source) JobLanes(ctx context.Context, cred config.Credential) (
	lanes []share.Lane, err error,
) {
	budget := s.budget(cred)
	var history job.History
	for _, j := range s.Config.Jobs {
		if j.Credential != cred.Name {
			continue
		}
		l, err := j.Lane(budget)
		if err != nil {
			return nil, err
		}
		if j.Learns() && s.Ledger != nil {
			if history.At.IsZero() {
				if history, err = job.ReadHistory(ctx, budget, budget.Buckets()); err != nil {
					return nil, err
				}
			}
			if j.Cost.Learned {
				l.Price = history.LearnedOr(j.Name, l.Price)
			}
			l.LearnedCosts, l.Runs = history.Took(j.Name)
		}
		lanes = append(lanes, l)
	}
	return lanes, nil
}

func (s Source) sweepLanes(ctx context.Context) ([]share.Lane, error) {
	if scheduled, err := s.Scheduled(ctx); err != nil || !scheduled {
		return nil, err
	}
	lanes, err := s.Config.Lanes()
	if err != nil || len(lanes) == 0 {
		return lanes, err
	}
	c, err := catalog.OpenReading(ctx, s.Config.Catalog)
	if errors.Is(err, fs.ErrNotExist) {
		return lanes, nil
	}
	if err != nil {
		return nil, err
	}
	for i := range lanes {
		l := &lanes[i]
		if l.Pages, err = c.PagesWanted(ctx, l.Region, l.Pages); err != nil {
			break
		}
	}
	return lanes, errors.Join(err, c.Close())
}

// stamped is set by the linker (-X quotabudget/internal/report.stamped=v1.2.3) where there is no
// repository to read it from.
var stamped string

// Version returns the version of the program, and the Go version that built it.
func Version() (program, toolchain string) {
	program, toolchain = "unknown", "unknown"
	if info, ok := debug.ReadBuildInfo(); ok {
		program, toolchain = info.Main.Version, info.GoVersion
	}
	if stamped != "" {
		program = stamped
	}
	return program, toolchain
}
