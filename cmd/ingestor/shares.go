package main

import (
	"cmp"
	"context"
	"time"

	"quotabudget/internal/daemon"
	"quotabudget/internal/report"
	"quotabudget/internal/share"
	"quotabudget/internal/words"
)

// sharesJSON says who may take how much of what is left until the reset, when that is not enough
// for every tick.
type sharesJSON struct {
	Reset   words.Time   `json:"reset"`
	Left    int64        `json:"left"`
	Regions []shareJSON  `json:"regions"`
	Loans   []share.Loan `json:"loans"`
}

type shareJSON struct {
	Region    string `json:"region"`
	Weight    int64  `json:"weight"`
	Priority  int64  `json:"priority"`
	Floor     int64  `json:"floor"`
	Wants     int64  `json:"wants"`
	Entitled  int64  `json:"entitled"`
	Spent     int64  `json:"spent"`
	Runs      int64  `json:"runs"`
	Remaining int64  `json:"remaining"`
}

// shares returns nil if nothing is scheduled, if there is enough for every tick that the schedule
// has until the reset, or if the ledger cannot be read.
func (s *deps) shares(ctx context.Context, work *daemon.Config) *sharesJSON {
	src := report.Source{Config: s.cfg, Ledger: s.ledger}
	if scheduled, err := src.Scheduled(ctx); err != nil || !scheduled {
		return nil
	}
	shares, short, err := work.Shares(ctx, s.cred.Name)
	if err != nil {
		s.log.Debug("shares are not known", "error", err)
	}
	if err != nil || !short {
		return nil
	}
	out := &sharesJSON{Reset: words.Time(shares.Until), Left: shares.Left,
		Loans: append([]share.Loan{}, share.Loans(shares.Lanes)...)}
	for _, one := range shares.Lanes {
		out.Regions = append(out.Regions, shareJSON{one.Title(), one.Weight, one.Priority,
			one.Floor, one.Wants, one.Entitled, one.Spent, one.Runs, one.Remaining})
	}
	return out
}

func (a *app) printShares(s *sharesJSON) error {
	if s == nil {
		return nil
	}
	screen := a.Screen()
	err := screen.Say("\nUnits are short: %d are left until %s, and the schedule wants more.\n",
		s.Left, screen.Moment(time.Time(s.Reset)))
	table := screen.Table("region", ">weight", ">priority", ">wants", ">entitled", ">spent",
		">runs left", ">of ticks")
	for _, r := range s.Regions {
		table.AppendRow([]any{r.Region, r.Weight, r.Priority, r.Wants, r.Entitled, r.Spent, r.Runs,
			r.Remaining})
	}
	err = cmp.Or(err, screen.Draw(table))
	for _, loan := range s.Loans {
		err = cmp.Or(err, screen.Say("%s leaves %s to %s\n", loan.From,
			words.Plural(loan.Units, "unit"), loan.To))
	}
	return err
}
