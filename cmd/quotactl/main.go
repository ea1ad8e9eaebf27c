// Command quotactl shows a quota budget and spends from it.
package main

import (
	"context"
	_ "embed"
	"fmt"
	"io"
	"log"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	_ "time/tzdata" // zones for systems without any

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/costs"
	"quotabudget/internal/job"
	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/words"
)

func main() {
	log.SetOutput(io.Discard) // net/http logs unsolicited data of an upstream there
	// an ignored signal must stay ignored: exec would end its command otherwise
	signals := []os.Signal{syscall.SIGTERM}
	if !signal.Ignored(os.Interrupt) {
		signals = append(signals, os.Interrupt)
	}
	// The first signal ends the program in an orderly way; the second ends it at once, as usual.
	caught := make(chan os.Signal, 1)
	signal.Notify(caught, signals...)
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		sig := <-caught
		signal.Stop(caught)
		cancel(&job.SignalError{Signal: sig.(syscall.Signal)})
	}()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr, os.Getenv))
}

func run(ctx context.Context, args []string, stdout, stderr io.Writer,
	getenv func(string) string) int {
	a := &app{cli.Common{Stdout: stdout, Stderr: stderr, Getenv: getenv}}
	return a.Execute(ctx, a.root(args), args)
}

// manual is the help of the commands.
//
//go:embed manual.yaml
var manual []byte

type app struct{ cli.Common }

// settings is the group of commands that includes version.
const settings = "Settings:"

// command names a command. build returns the command with its flags and subcommands.
type command struct {
	name  string
	build func() *cobra.Command
}

// root returns the command tree. It builds only the commands that args name: help and completion
// need only the names and help texts of the others.
func (a *app) root(args []string) *cobra.Command {
	a.Manual = cli.ReadManual(manual)
	root := a.Command("quotactl", nil)
	a.Bind(root)
	cli.Elsewhere(root, "ingestor", "once", "run", "plan", "jobs", "chart", "search", "video",
		"purge")
	help := func(c *cobra.Command, _ []string) error { return c.Help() }
	add := func(title string, commands ...command) {
		root.AddGroup(&cobra.Group{ID: title, Title: title})
		for _, cmd := range commands {
			c := a.Command(cmd.name, help)
			if slices.Contains(args, cmd.name) {
				c = cmd.build()
			}
			c.GroupID = title
			root.AddCommand(c)
		}
	}
	group := func(name string, run func(*cobra.Command, []string) error,
		subcommands ...func() *cobra.Command) command {
		return command{name, func() *cobra.Command {
			c := a.Command(name, run)
			for _, build := range subcommands {
				c.AddCommand(build())
			}
			return c
		}}
	}
	add("Look:", command{"status", a.status}, command{"top", a.top},
		command{"forecast", a.forecast}, command{"log", a.log}, command{"explain", a.explain},
		group("report", nil, a.reportObserve, a.reportChargeback),
		command{"reservations", a.reservations}, command{"costs", a.costs}, command{"prove", a.prove})
	add("Spend:", command{"spend", a.spend}, command{"exec", a.exec}, command{"reserve", a.reserve},
		command{"draw", a.draw}, command{"commit", a.commit}, command{"settle", a.settle},
		command{"release", a.release}, command{"adjust", a.adjust},
		command{"reconcile", a.reconcile}, command{"suspend", a.suspend},
		command{"resume", a.resume}, command{"proxy", a.proxy}, command{"serve", a.serve},
		command{"mcp", a.mcp}, command{"standin", a.standin})
	add(settings, command{"config", a.config}, group("import", help, a.importCrontab),
		group("limits", help, a.limitsImport), group("ledger", nil, a.ledgerCheck),
		group("notify", nil, a.notifyTest), command{"doctor", a.doctor})
	for _, c := range root.Commands() {
		if c.GroupID == "" { // version
			c.GroupID = settings
		}
	}
	// Flags may precede the request for completions: alias q='quotactl --config FILE'
	if slices.ContainsFunc(args, func(arg string) bool {
		return strings.HasPrefix(arg, cobra.ShellCompRequestCmd)
	}) {
		a.complete(root)
	}
	return root
}

// gate is the budget of the chosen credential, on its open ledger.
type gate struct {
	*quota.Budget
	Ledger *ledger.Ledger // the budget's
	cfg    *config.Config
	cred   config.Credential
}

func (a *app) gate(cfg *config.Config, l *ledger.Ledger, cred config.Credential) *gate {
	budget := cred.Budget(l, cfg.Table(cred), a.Logger())
	return &gate{report.Journaled(budget, cfg, cred), l, cfg, cred}
}

// with reads the configuration, and runs work on the gate while the ledger is open.
func (a *app) with(ctx context.Context, work func(*gate) error) error {
	cfg, err := a.Load(ctx)
	if err != nil {
		return err
	}
	chosen, err := a.Chosen(cfg)
	if err != nil {
		return err
	}
	a.Logger().Debug("configuration read", "file", cfg.File,
		"ledger", config.HidePassword(cfg.Ledger), "credential", chosen.Name)
	l, err := cli.OpenLedger(ctx, cfg.Ledger)
	if err != nil {
		return err
	}
	defer l.Close()
	return work(a.gate(cfg, l, chosen))
}

// withBucket runs work on the open gate, if the bucket of --bucket has a limit or needs none.
func (a *app) withBucket(c *cobra.Command, bucket string, work func(*gate) error) error {
	if bucket == "" {
		return misuse(c, "--bucket is missing")
	}
	return a.with(c.Context(), func(g *gate) error {
		if listed, ok := g.prices().Bucket(bucket); !ok || listed.Required { // it may need no limit
			if err := g.bucket(bucket); err != nil {
				return err
			}
		}
		return work(g)
	})
}

// withLedger runs work on the open ledger and the selected credentials.
func (a *app) withLedger(ctx context.Context, work func(report.Source) error) error {
	cfg, err := a.loadChosen(ctx)
	if err != nil {
		return err
	}
	l, err := ledger.Open(ctx, cfg.Ledger)
	if err != nil {
		return err
	}
	defer l.Close()
	return work(report.Source{Config: cfg, Ledger: l})
}

// loadChosen reads the configuration with only the selected credentials: the one of --credential,
// or all.
func (a *app) loadChosen(ctx context.Context) (*config.Config, error) {
	cfg, err := a.Load(ctx)
	if err != nil || a.Credential == "" {
		return cfg, err
	}
	chosen, err := a.Chosen(cfg)
	if err != nil {
		return nil, err
	}
	cfg.Credentials = []config.Credential{chosen}
	return cfg, nil
}

// charged refuses a bucket that cannot be charged: one without a limit, or a split one, whose
// limits hold for its parts, unless it also has a limit across them.
func (g *gate) charged(name string) error {
	if err := g.whole(name); err != nil {
		return err
	}
	return g.bucket(name)
}

// whole refuses a split bucket without a limit across its parts: an action on it would affect no
// part.
func (g *gate) whole(name string) error {
	across := func(l quota.Limit) bool { return l.Across && l.Bucket == name }
	if slices.Contains(g.Split, name) && !slices.ContainsFunc(g.Limits, across) {
		return cli.Hint(cli.Usagef("bucket %s is split: its limits hold for each of its parts", name),
			"name a part, such as %s/NAME (quotactl status shows those that were used)", name)
	}
	return nil
}

// bucket refuses a bucket without a limit, and suggests one that has a limit.
func (g *gate) bucket(name string) error {
	buckets := g.Buckets()
	if slices.Contains(buckets, name) || slices.Contains(g.Split, quota.WholeOf(name)) {
		return nil
	}
	hint := "credential " + g.Credential + " has no limits"
	if len(buckets) > 0 {
		hint = "credential " + g.Credential + " has limits on " + strings.Join(buckets, ", ")
	}
	return cli.Hint(fmt.Errorf("%w: %q%s", quota.ErrNoBucket, name, words.DidYouMean(name,
		buckets)), "%s", hint)
}

// prices returns the price list of the credential's upstream.
func (g *gate) prices() *costs.Table { return g.cfg.Table(g.cred) }
