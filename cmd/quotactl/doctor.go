package main

import (
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
	o, free := doctor.Options{Days: 2}, int64(256)
	c := a.Command("doctor", func(c *cobra.Command, _ []string) error {
		o.MinFree = free << 20
		cfg, err := a.loadChosen(c.Context())
		var r doctor.Result
		if invalid, ok := errors.AsType[*config.Error](err); ok { // its problems are findings, too
			r, err = doctor.Unreadable(invalid), nil
		} else if err == nil {
			r, err = doctor.Examine(c.Context(), cfg, o)
		}
		if err != nil {
			return err
		}
		err = a.Print(r, func(s cli.Screen) {
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
	})
	cli.Flags(c.Flags(), "min-free", &free, "days", &o.Days)
	cli.Limit(c.Flags(), 0, cli.ManyMiB, "min-free")
	cli.Limit(c.Flags(), 1, 31, "days")
	return c
}
