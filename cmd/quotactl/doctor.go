package main

import (
	"context"
	"errors"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/doctor"
	"quotabudget/internal/words"
)

// Exit codes of doctor.
const (
	exitWarnings = 1
	exitErrors   = 2
)

func (a *app) doctor() *cobra.Command {
	var o doctor.Options
	var free int64
	c := a.Command("doctor", func(c *cobra.Command, _ []string) error {
		o.MinFree = free << 20
		r, err := a.examine(c.Context(), o)
		if err != nil {
			return err
		}
		return a.diagnosed(r)
	})
	cli.Flag(c.Flags(), &free, "min-free", 256)
	cli.Flag(c.Flags(), &o.Days, "days", 2)
	cli.Limit(c.Flags(), 0, cli.ManyMiB, "min-free")
	cli.Limit(c.Flags(), 1, 31, "days")
	return c
}

// examine reports a configuration that cannot be read as findings, too.
func (a *app) examine(ctx context.Context, o doctor.Options) (doctor.Result, error) {
	cfg, err := a.Load(ctx)
	if invalid, ok := errors.AsType[*config.Error](err); ok {
		return doctor.Unreadable(invalid), nil
	}
	if err != nil {
		return doctor.Result{}, err
	}
	if a.Credential != "" {
		chosen, err := a.Chosen(cfg)
		if err != nil {
			return doctor.Result{}, err
		}
		cfg.Credentials = []config.Credential{chosen}
	}
	return doctor.Examine(ctx, cfg, o)
}

func (a *app) diagnosed(r doctor.Result) error {
	err := a.Print(r, func(s cli.Screen) {
		for _, f := range r.Findings {
			s.Say("%s: %s: %s  [%s]\n  why: %s\n  do:  %s\n", f.Level, words.Plain(f.About),
				words.Plain(f.What), f.Check, f.Why, f.Do)
		}
		for _, fact := range r.Facts {
			s.Say("%s\n", fact)
		}
		if r.OK {
			s.Say("nothing is wrong\n")
		}
	})
	switch {
	case err != nil:
		return err
	case r.Worst() == doctor.Error:
		return &cli.Coded{Code: exitErrors}
	case r.Worst() == doctor.Warning:
		return &cli.Coded{Code: exitWarnings}
	}
	return nil
}
