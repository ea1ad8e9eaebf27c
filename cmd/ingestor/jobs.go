package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/catalog"
	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/costs"
	"quotabudget/internal/report"
	"quotabudget/internal/share"
	"quotabudget/internal/words"
)

// jobJSON is a lane of the schedule, with the results of its last runs.
type jobJSON struct {
	Name       string           `json:"name"`
	Kind       string           `json:"kind"`
	Job        string           `json:"job"`
	Region     string           `json:"region"`
	Credential string           `json:"credential"`
	Schedule   string           `json:"schedule"`
	Timezone   string           `json:"timezone"`
	Next       words.Time       `json:"next"`
	Weight     int64            `json:"weight"`
	Priority   int64            `json:"priority"`
	Floor      int64            `json:"floor"`
	Cost       map[string]int64 `json:"cost"`
	Last       *jobRun          `json:"last"`
	Runs       []jobRun         `json:"runs"`
}

type jobRun struct {
	At       words.Time       `json:"at"`
	Tick     string           `json:"tick"`
	Outcome  string           `json:"outcome"`
	ExitCode *int             `json:"exit_code"`
	Units    map[string]int64 `json:"units"`
}

func (a *app) jobs(c *cobra.Command, _ []string) error {
	ctx := c.Context()
	cfg, err := a.Load(ctx)
	if err != nil {
		return err
	}
	src := report.Source{Config: cfg}
	learned := func(j config.OwnJob) bool { return j.Cost.Learned }
	if !absentFile(cfg.Ledger) &&
		(!cfg.Ingest.Scheduled || slices.ContainsFunc(cfg.Jobs, learned)) {
		if src.Ledger, err = cli.OpenLedger(ctx, cfg.Ledger); err != nil {
			return err
		}
		defer src.Ledger.Close()
	}
	lanes, err := src.AllLanes(ctx)
	if err != nil {
		return err
	}
	runs, err := lastRuns(ctx, cfg.Catalog)
	if err != nil {
		a.Logger().Warn("cannot read the results of the last runs", "error", err)
	}
	jobs := cli.Each(lanes, func(l share.Lane) jobJSON { return newJob(cfg, l, runs[l.Name()]) })
	return a.Print(cli.Object{"jobs", jobs}, func(s cli.Screen) { drawJobs(s, cfg, jobs) })
}

// lastRuns returns the last runs recorded by this machine's daemons; none if there is no catalogue
// yet.
func lastRuns(ctx context.Context, url string) (map[string][]catalog.LaneRun, error) {
	c, err := catalog.OpenReading(ctx, url)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	runs, err := c.LaneRuns(ctx)
	return runs, errors.Join(err, c.Close())
}

func newJob(cfg *config.Config, l share.Lane, runs []catalog.LaneRun) jobJSON {
	out := jobJSON{Name: l.Name(), Kind: "sweep", Job: l.Job, Region: l.Region,
		Credential: cfg.Ingest.Credential, Schedule: l.Schedule.String(),
		Timezone: l.Zone.String(), Weight: l.Weight, Priority: l.Priority, Floor: l.Floor,
		Cost: make(map[string]int64)}
	if tick := l.Next(time.Now()); !tick.At.IsZero() {
		out.Next = words.Time(tick.At)
	}
	price, _ := cfg.Costs.Price(report.PageMethod) // a list without the method has no sweeps
	for _, c := range l.PriceOr(price) {
		out.Cost[c.Bucket] = c.Units * l.Pages
	}
	for _, j := range cfg.Jobs {
		if l.Region == "" && j.Name == l.Job {
			out.Credential, out.Kind = j.Credential, "command"
			switch {
			case j.Elsewhere != "":
				out.Kind = "elsewhere"
			case j.Request.URL != "":
				out.Kind = "request"
			}
		}
	}
	out.Runs = cli.Each(runs, func(r catalog.LaneRun) jobRun {
		return jobRun{words.Time(r.EndedAt), r.Tick, r.Outcome, r.ExitCode, cli.NonNil(r.Units)}
	})
	if len(out.Runs) > 0 {
		out.Last = &out.Runs[0]
	}
	return out
}

// shownRuns is how many of the last runs with a cost a table shows.
const shownRuns = 5

func drawJobs(s cli.Screen, cfg *config.Config, jobs []jobJSON) {
	if len(jobs) == 0 {
		s.Say("nothing is scheduled: jobs: and ingest: of quota.yaml have no " +
			"jobs and no regions, and no daemon has run\n")
		return
	}
	table := cli.View(jobs, func(j jobJSON) cli.Row {
		last, outcome, took, color := s.On(time.Time{}), "", []string{}, cli.Color("")
		if j.Last != nil {
			last, outcome = s.On(time.Time(j.Last.At).Truncate(time.Second)), j.Last.Outcome
			if code := j.Last.ExitCode; code != nil && *code != 0 {
				outcome += fmt.Sprintf(" (%d)", *code)
			}
			switch j.Last.Outcome {
			case "complete":
			case "failed", "timeout", "lost":
				color = cli.Red
			default:
				color = cli.Yellow
			}
		}
		cred, _ := cfg.Credential(j.Credential) // a sweep may not have a credential yet
		table := cfg.Table(cred)
		for _, r := range j.Runs {
			if len(r.Units) > 0 && len(took) < shownRuns {
				took = append(took, unitsText(table, r.Units))
			}
		}
		return cli.Row{color, "job", j.Name, "kind", j.Kind, "schedule", j.Schedule,
			"next", s.On(time.Time(j.Next)), "last", last, "outcome", outcome,
			">holds", unitsText(table, j.Cost), ">took", strings.Join(took, ", ")}
	})
	s.Draw(table, cli.Drop("kind"), cli.Shorten("last"), cli.Shorten("next"),
		cli.Drop("took"), cli.Cut("schedule", 14), cli.Drop("holds"), cli.Drop("schedule"),
		cli.Cut("job", 16), cli.Drop("last"))
}

// unitsText returns "40", or "$0.02 money + 3 requests" for several buckets.
func unitsText(table *costs.Table, units map[string]int64) string {
	var all []string
	for _, bucket := range slices.Sorted(maps.Keys(units)) {
		text := fmt.Sprint(units[bucket])
		if unit := report.UnitOf(table, bucket); unit.IsMoney() {
			text = unit.Text(units[bucket])
		}
		all = append(all, text+besides(bucket, len(units) > 1))
	}
	return strings.Join(all, " + ")
}
