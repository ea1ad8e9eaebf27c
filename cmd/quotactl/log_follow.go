package main

import (
	"context"
	"errors"
	"time"

	"quotabudget/internal/cli"
	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

const (
	followEvery  = 500 * time.Millisecond
	followNewest = 10 // initial entries if no flag sets their number
)

// follow prints entries as they are charged, until it is interrupted.
func (a *app) follow(ctx context.Context, g *gate, q question) error {
	log := &ledger.Tail{Ledger: g.Ledger, Credential: g.Credential,
		Buckets: func(ctx context.Context) ([]string, error) { return g.chosen(ctx, q.bucket) }}
	start := ledger.TailStart{Newest: q.limit}
	if q.all {
		start.Newest = followNewest
	}
	_, in, err := g.span(ctx, q)
	if err != nil {
		return err
	}
	start.Since = in.Since
	news, err := log.Begin(ctx, start, time.Now())
	if err != nil {
		return err
	}
	out := a.newsPrinter(g)
	err = out(news)
	for state := new(outage); err == nil; {
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(followEvery):
		}
		news, err = log.Next(ctx, time.Now())
		if ctx.Err() != nil {
			return nil
		}
		if err = a.bridge(state, err); err == nil {
			err = out(news)
		}
	}
	return err
}

// newsPrinter prints new entries, batch by batch.
func (a *app) newsPrinter(g *gate) func(ledger.TailNews) error {
	if a.Output == "json" {
		a.Output = "jsonl"
	}
	table := new(cli.Table)
	started := false
	return func(news ledger.TailNews) error {
		for _, note := range news.Notes {
			a.Logger().Warn(note)
		}
		if started && len(news.Lines) == 0 {
			return nil
		}
		started = true
		var entries []report.Entry
		for _, line := range news.Lines {
			e := report.NewEntry(line.Entry)
			e.TakenBack = line.TakenBack
			entries = append(entries, e)
		}
		if a.InLines() {
			return a.printEntryLines(table, entries)
		}
		return a.Draw(a.Stdout, func(s cli.Screen) { // the terminal may have been resized
			drawEntries(s, table, g.prices(), entries)
		})
	}
}

// outage is the state of a ledger outage.
type outage struct{ since time.Time }

// bridge logs once that the ledger is unreachable, and once that it is reachable again. It returns
// any other error.
func (a *app) bridge(o *outage, err error) error {
	switch away := !o.since.IsZero(); {
	case errors.Is(err, quota.ErrUnreachable):
		if !away {
			o.since = time.Now()
			a.Logger().Warn("waiting for the ledger", "error", err)
		}
		return nil
	case err == nil && away:
		a.Logger().Info("ledger is back", "after", time.Since(o.since).Round(time.Second))
		o.since = time.Time{}
	}
	return err
}
