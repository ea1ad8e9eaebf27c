// Package doctor looks for what will go wrong: in the ledger and the server or file that keeps it,
// in the price lists, keys, limits and schedule.
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

// Level is how bad a finding is.
type Level string

// An Error keeps charges from being decided, or lets more be spent than was meant. A Warning will
// be one of these some day, or may not be what was meant.
const (
	Error   Level = "error"
	Warning Level = "warning"
)

// Finding is one thing that will go wrong.
type Finding struct {
	Level Level  `json:"level"`
	Check string `json:"check"` // what was looked at, by a name that never changes
	About string `json:"about"` // the ledger, credential, bucket or file
	What  string `json:"what"`
	Why   string `json:"why"` // what comes of it
	Do    string `json:"do"`  // what to type or write
}

// Result is what an examination found, the errors first.
type Result struct {
	OK       bool      `json:"ok"`
	Findings []Finding `json:"findings"`
	Facts    []string  `json:"facts"` // what is in order, and worth knowing
}

// Options say what counts as too little or too much.
type Options struct {
	MinFree int64     // bytes of disk beside a ledger in a file
	Days    int       // days of the schedule to plan
	Now     time.Time // reference for the age of prices; zero is the current time
}

// exam is an examination that is under way.
type exam struct {
	report.Source
	Options
	Result
}

// Examine looks at everything that the configuration names. It returns ctx's error if that ends
// first; all else is a finding.
func Examine(ctx context.Context, cfg *config.Config, o Options) (Result, error) {
	e := &exam{Source: report.Source{Config: cfg}, Options: o}
	e.Findings, e.Facts = []Finding{}, []string{}
	e.store(ctx) // before the ledger is opened, which mends some things
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
	e.tokens()
	e.notify()
	e.files()
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

// Unreadable is the result for a configuration with mistakes: nothing else can be looked at.
func Unreadable(err *config.Error) Result {
	r := Result{Findings: []Finding{}, Facts: []string{}}
	for _, p := range err.Problems {
		r.Findings = append(r.Findings, Finding{Error, "config", p.Where,
			p.String(), "no program starts with it",
			"quotactl config check shows whether it is mended"})
	}
	return r
}

func (e *exam) add(f Finding) { e.Findings = append(e.Findings, f) }

// Worst is the level of the worst finding, "" if there is none.
func (r Result) Worst() Level {
	if len(r.Findings) == 0 {
		return ""
	}
	return r.Findings[0].Level
}
