// Package doctor finds faults of a setup: in the ledger and its server or file, in price lists,
// keys, limits and schedule.
package doctor

import (
	"cmp"
	"context"
	"slices"
	"time"

	"quotabudget/internal/config"
	"quotabudget/internal/ledger"
	"quotabudget/internal/report"
)

// Level is the severity of a finding.
type Level string

// An Error keeps charges from being decided, or lets more be spent than intended. A Warning will
// become an error some day, or may not be intended.
const (
	Error   Level = "error"
	Warning Level = "warning"
)

// Finding is one fault.
type Finding struct {
	Level Level  `json:"level"`
	Check string `json:"check"` // name of the check, which never changes
	About string `json:"about"` // the ledger, credential, bucket or file
	What  string `json:"what"`
	Why   string `json:"why"` // the consequence
	Do    string `json:"do"`  // what to type or write
}

// Result is the result of an examination, errors first.
type Result struct {
	OK       bool      `json:"ok"`
	Findings []Finding `json:"findings"`
	Facts    []string  `json:"facts"` // what is in order
}

// Options set the thresholds of an examination.
type Options struct {
	MinFree int64     // bytes of disk next to a ledger file
	Days    int       // days of the schedule to plan
	Now     time.Time // reference for the age of prices; zero is the current time
}

// exam is an examination in progress.
type exam struct {
	report.Source
	Options
	Result
}

// Examine checks everything that the configuration names. It returns ctx's error if ctx ends first;
// every other fault is a finding.
func Examine(ctx context.Context, cfg *config.Config, o Options) (Result, error) {
	e := &exam{Source: report.Source{Config: cfg}, Options: o}
	e.Findings, e.Facts = []Finding{}, []string{}
	e.store(ctx) // before the ledger is opened, which repairs some things
	if l, err := ledger.Open(ctx, cfg.Ledger); err != nil {
		e.unopened(err)
	} else {
		e.Ledger = l
		defer l.Close()
		e.entries(ctx)
		e.unlisted(ctx)
		e.schedule(ctx)
	}
	e.keys()
	e.server()
	for _, path := range []string{cfg.File, cfg.CostsFile} {
		if path != "" {
			e.rights(path, "can raise limits, and change the commands that jobs run")
		}
	}
	e.endpoints()
	e.limits(ctx)
	e.unmetered(ctx)
	e.prices()
	e.zones()
	rank := map[Level]int{Error: 0, Warning: 1}
	slices.SortStableFunc(e.Findings, func(a, b Finding) int {
		return cmp.Compare(rank[a.Level], rank[b.Level])
	})
	e.OK = len(e.Findings) == 0
	return e.Result, ctx.Err()
}

// Unreadable returns the result for a configuration with mistakes, which allows no other checks.
func Unreadable(err *config.Error) Result {
	r := Result{Findings: []Finding{}, Facts: []string{}}
	for _, p := range err.Problems {
		r.Findings = append(r.Findings, Finding{Error, "config", p.Where,
			p.String(), "no program can start with it",
			"quotactl config check shows whether it is fixed"})
	}
	return r
}

// check is a fault that may be present. The other fields are those of its Finding.
type check struct {
	present       bool
	level         Level
	name          string
	what, why, do string
}

// judge adds the faults that are present.
func (e *exam) judge(about string, checks []check) {
	for _, c := range checks {
		if c.present {
			e.add(Finding{c.level, c.name, about, c.what, c.why, c.do})
		}
	}
}

func (e *exam) add(f Finding) { e.Findings = append(e.Findings, f) }

// Worst returns the highest level of the findings, "" if there are none.
func (r Result) Worst() Level {
	if len(r.Findings) == 0 {
		return ""
	}
	return r.Findings[0].Level
}
