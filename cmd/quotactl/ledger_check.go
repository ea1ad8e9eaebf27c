package main

import (
	"bufio"
	"context"
	"errors"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/ledger"
	"quotabudget/internal/report"
)

// checkResult is the faults of the ledger; after a repair, its repaired faults.
type checkResult struct {
	OK       bool      `json:"ok"`
	Findings []finding `json:"findings"`

	buckets int // examined buckets
}

type finding struct {
	Credential string `json:"credential,omitempty"` // if several are checked
	Bucket     string `json:"bucket"`
	What       string `json:"what"`
	Repair     string `json:"repair"`

	owner string // the credential, also if only one is checked
	mends bool
}

func (a *app) ledgerCheck() *cobra.Command {
	var repair, yes bool
	c := a.Command("ledger check", func(c *cobra.Command, _ []string) error {
		in, isFile := c.InOrStdin().(io.Writer) // a terminal is a file
		fromTerminal := isFile && cli.IsTerminal(in)
		if yes && !repair {
			return cli.Usagef("--yes needs --repair")
		}
		return a.withLedger(c.Context(), func(src report.Source) error {
			cfg, l := src.Config, src.Ledger
			check := func(repair bool) (checkResult, error) {
				return checkLedger(c.Context(), cfg, l, repair)
			}
			before, err := check(false)
			if err != nil {
				return err
			}
			if !repair || before.mendable() == 0 {
				return before.end(a.Print(before, func(s cli.Screen) {
					if before.OK {
						s.Say("buckets checked: %d; nothing is wrong\n", before.buckets)
					}
					before.list(s)
					if before.mendable() > 0 {
						s.Say("\nto repair it: quotactl ledger check --repair\n")
					}
				}))
			}
			if !yes && fromTerminal {
				if err := a.confirm(c.InOrStdin(), before); err != nil {
					return err
				}
			}
			done, err := check(true)
			if err != nil {
				return cli.Hint(err, "a bucket denies all charges until its interrupted repair "+
					"is complete: quotactl ledger check --repair")
			}
			after, err := check(false)
			if err != nil {
				return err
			}
			done.OK = after.OK
			return done.end(a.Print(done, func(s cli.Screen) {
				done.list(s)
				if after.OK {
					s.Say("\nrepaired: nothing is wrong now\n")
					return
				}
				s.Say("\nrepaired, except:\n")
				after.list(s)
			}))
		})
	})
	cli.Flags(c.Flags(), "repair", &repair, "yes", &yes)
	return c
}

func checkLedger(ctx context.Context, cfg *config.Config, l *ledger.Ledger,
	repair bool) (checkResult, error) {
	out := checkResult{OK: true, Findings: []finding{}}
	for _, c := range cfg.Credentials {
		names, err := l.AllBuckets(ctx, c.Name)
		if err != nil {
			return out, err
		}
		out.buckets += len(names)
		for _, l := range c.Limits { // a bucket missing from the ledger's list may be damaged, too
			if !slices.Contains(names, l.Bucket) {
				names = append(names, l.Bucket)
			}
		}
		for _, bucket := range names {
			faults, err := l.Check(ctx, c.Name, bucket, repair)
			if err != nil {
				return out, err
			}
			for _, f := range faults {
				shown := finding{Bucket: f.Bucket, What: f.What, Repair: f.Repair,
					owner: c.Name, mends: f.Mends}
				if len(cfg.Credentials) > 1 {
					shown.Credential = c.Name
				}
				out.OK, out.Findings = false, append(out.Findings, shown)
			}
		}
	}
	return out, nil
}

func (r checkResult) mendable() (n int) {
	for _, f := range r.Findings {
		if f.mends {
			n++
		}
	}
	return n
}

func (r checkResult) list(s cli.Screen) {
	for _, f := range r.Findings {
		s.Say("bucket %s of %s: %s\n  repair: %s\n", f.Bucket, f.owner, f.What, f.Repair)
	}
}

func (r checkResult) end(err error) error {
	if err == nil && !r.OK {
		err = &cli.Coded{Code: cli.ExitFailed}
	}
	return err
}

// confirm prints the changes of a repair, and asks for confirmation. Any answer but yes declines.
func (a *app) confirm(in io.Reader, r checkResult) error {
	err := a.Draw(a.Stderr, func(s cli.Screen) {
		r.list(s)
		s.Say("\nwrite these changes (%d of %d findings)? [y/N] ", r.mendable(), len(r.Findings))
	})
	if err != nil {
		return err
	}
	answer, err := bufio.NewReader(in).ReadString('\n')
	word := strings.ToLower(strings.TrimSpace(answer))
	if err == nil && (word == "y" || word == "yes") {
		return nil
	}
	return errors.New("nothing was changed")
}
