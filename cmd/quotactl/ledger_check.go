package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/quota"
)

// checkResult is what is wrong with the ledger; after a repair, what was.
type checkResult struct {
	OK       bool      `json:"ok"`
	Findings []finding `json:"findings"`

	buckets int // looked at
}

type finding struct {
	Credential string `json:"credential,omitempty"` // where several are checked
	Bucket     string `json:"bucket"`
	What       string `json:"what"`
	Repair     string `json:"repair"`

	credential string
	mends      bool
}

func (a *app) ledger() *cobra.Command {
	c := &cobra.Command{
		Use:   "ledger",
		Short: "The ledger itself",
	}
	c.AddCommand(a.ledgerCheck())
	return c
}

func (a *app) ledgerCheck() *cobra.Command {
	var repair, yes bool
	c := &cobra.Command{
		Use:   "check",
		Short: "Compare every bucket with its entries, and repair what disagrees",
		Long: `check reads every bucket of the configured credentials in the ledger, with or without a limit, and
compares its totals, state, labels and reservations with its entries. They disagree if somebody has
edited the ledger by hand, or restored a part of it. Such a bucket denies every charge that meets the
damage.

With --repair it shows what it would change, asks, and then repairs each bucket in one atomic step.
Afterwards the sum of the entries counts as used. If an entry cannot be read, its units are worked
out from the totals around it; if they do not say, it is left alone. Programs may charge meanwhile.

It exits with 0 if nothing is wrong (any more), else with 1.`,
		Example: `  quotactl ledger check
  quotactl ledger check --repair
  quotactl ledger check --repair --yes -o json`,
		Args: cli.Args(),
		RunE: func(c *cobra.Command, _ []string) error {
			switch {
			case yes && !repair:
				return cli.Usagef("--yes needs --repair")
			case repair && !yes && !isTerminal(c.InOrStdin()):
				return cli.Hint(cli.Usagef(
					"--repair asks before it changes anything, and standard input is no terminal"),
					"see what it would change: quotactl ledger check; then add --yes")
			}
			return a.withChecker(c.Context(), func(books *books) error {
				before, err := books.check(c.Context(), false)
				if err != nil || !repair || !before.mends() {
					return a.checked(before, err)
				}
				if !yes {
					if err := a.confirm(c.InOrStdin(), before); err != nil {
						return err
					}
				}
				done, err := books.check(c.Context(), true)
				if err != nil {
					return err
				}
				after, err := books.check(c.Context(), false)
				done.OK = after.OK
				return a.repaired(done, after, err)
			})
		},
	}
	c.Flags().BoolVar(&repair, "repair", false, "repair what can be repaired, after asking")
	c.Flags().BoolVar(&yes, "yes", false, "with --repair: do not ask")
	return c
}

func isTerminal(in io.Reader) bool {
	w, ok := in.(io.Writer) // a terminal is a file
	return ok && cli.IsTerminal(w)
}

// books are the buckets of some credentials in a ledger.
type books struct {
	quota.Checker
	credentials []string
}

// withChecker runs work on the ledger of the configuration, and on the credential of --credential
// or on all of them.
func (a *app) withChecker(ctx context.Context, work func(*books) error) error {
	cfg, err := a.Load(ctx, a.getenv)
	if err != nil {
		return err
	}
	credentials := cfg.Credentials
	if a.Credential != "" {
		chosen, err := a.Chosen(cfg)
		if err != nil {
			return err
		}
		credentials = []config.Credential{chosen}
	}
	l, err := cli.OpenLedger(ctx, cfg.Ledger)
	if err != nil {
		return err
	}
	defer l.Close()
	checker, ok := l.(quota.Checker)
	if !ok {
		return fmt.Errorf("the ledger %s cannot be checked", config.HidePassword(cfg.Ledger))
	}
	b := &books{Checker: checker}
	for _, c := range credentials {
		b.credentials = append(b.credentials, c.Name)
	}
	return work(b)
}

// check looks at every bucket, and with repair mends it.
func (b *books) check(ctx context.Context, repair bool) (checkResult, error) {
	out := checkResult{OK: true, Findings: []finding{}}
	for _, credential := range b.credentials {
		names, err := b.BucketsOf(ctx, credential)
		if err != nil {
			return out, err
		}
		for _, name := range names {
			out.buckets++
			found, err := b.CheckBucket(ctx, credential, name, repair)
			if err != nil {
				return out, err
			}
			for _, f := range found {
				shown := finding{
					Bucket:     f.Bucket,
					What:       f.What,
					Repair:     f.Repair,
					credential: credential,
					mends:      f.Mends,
				}
				if len(b.credentials) > 1 {
					shown.Credential = credential
				}
				out.OK, out.Findings = false, append(out.Findings, shown)
			}
		}
	}
	return out, nil
}

func (r checkResult) mends() bool { return r.mendable() > 0 }

func (r checkResult) mendable() (n int) {
	for _, f := range r.Findings {
		if f.mends {
			n++
		}
	}
	return n
}

// checked prints what was found.
func (a *app) checked(r checkResult, err error) error {
	if err != nil {
		return err
	}
	err = a.Print(a.stdout, r, func() error {
		s := a.screen()
		if r.OK {
			return s.Say("buckets checked: %d; nothing is wrong\n", r.buckets)
		}
		if err := r.list(s); err != nil || !r.mends() {
			return err
		}
		return s.Say("\nto repair it: quotactl ledger check --repair\n")
	})
	return r.end(err)
}

// list writes the findings, each with its repair.
func (r checkResult) list(s cli.Screen) error {
	for _, f := range r.Findings {
		if err := s.Say("bucket %s of %s: %s\n", f.Bucket, f.credential, f.What); err != nil {
			return err
		}
		if err := s.Say("  repair: %s\n", f.Repair); err != nil {
			return err
		}
	}
	return nil
}

// end is exit code 1 where something is wrong.
func (r checkResult) end(err error) error {
	if err == nil && !r.OK {
		err = &cli.Coded{Code: cli.ExitFailed}
	}
	return err
}

// confirm shows on the terminal what a repair would change, and asks. No answer is no.
func (a *app) confirm(in io.Reader, r checkResult) error {
	s := a.Screen(a.stderr, a.getenv)
	if err := r.list(s); err != nil {
		return err
	}
	if err := s.Say("\nwrite these changes (%d of %d findings)? [y/N] ", r.mendable(),
		len(r.Findings)); err != nil {
		return err
	}
	answer, err := bufio.NewReader(in).ReadString('\n')
	if word := strings.ToLower(strings.TrimSpace(answer)); err == nil &&
		(word == "y" || word == "yes") {
		return nil
	}
	return &cli.Coded{Code: cli.ExitFailed, Err: fmt.Errorf("nothing was changed")}
}

// repaired prints what was done, and what is still wrong.
func (a *app) repaired(done, after checkResult, err error) error {
	if err != nil {
		return err
	}
	err = a.Print(a.stdout, done, func() error {
		s := a.screen()
		if err := done.list(s); err != nil {
			return err
		}
		if after.OK {
			return s.Say("\nrepaired: nothing is wrong any more\n")
		}
		if err := s.Say("\nrepaired, except:\n"); err != nil {
			return err
		}
		return after.list(s)
	})
	return done.end(err)
}
