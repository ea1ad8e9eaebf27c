package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/report"
	"quotabudget/internal/schedule"
	"quotabudget/internal/words"
)

func (a *app) imports() *cobra.Command {
	c := &cobra.Command{
		Use:   "import",
		Short: "Import jobs that other programs run, for plan and forecast",
		RunE:  func(c *cobra.Command, _ []string) error { return c.Help() },
	}
	c.AddCommand(a.importCrontab())
	return c
}

type crontabFlags struct {
	system           bool
	source, timezone string
}

func (a *app) importCrontab() *cobra.Command {
	var f crontabFlags
	c := &cobra.Command{
		Use:   "crontab [FILE|-]",
		Short: "Read the jobs that a crontab runs under quotactl exec",
		Long: `crontab reads the lines of a crontab that run quotactl exec or ingestor once, and prints
them as jobs that run elsewhere, for the section jobs: of quota.yaml: "ingestor plan" and "quotactl
forecast" count them, "ingestor run" leaves them alone. ingestor once is the job trending.

Without a file, or with -, it reads standard input. Files below /etc have the user before each
command; so has any other with --system. The schedule is in the time zone of this machine, unless
--timezone or a line CRON_TZ= names another.

A line that cannot be read, never runs or costs more than a limit is skipped and named with its
number, and the exit code is then 1.`,
		Example: `  crontab -l | quotactl import crontab
  quotactl import crontab /etc/cron.d/backfill >> quota.yaml
  ssh host1 crontab -l | quotactl import crontab --source host1`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error {
			file := "-"
			if len(args) > 0 {
				file = args[0]
			}
			return a.readCrontab(c.Context(), f, file, c.InOrStdin())
		},
	}
	flags := c.Flags()
	flags.BoolVar(&f.system, "system", false, "the lines have a user before the command")
	flags.StringVar(&f.source, "source", "",
		"`NAME` of what runs the jobs (default: the file's, or crontab)")
	flags.StringVar(&f.timezone, "timezone", "",
		"`ZONE` of the schedules (default: this machine's)")
	return c
}

func (a *app) readCrontab(ctx context.Context, f crontabFlags, file string, in io.Reader) error {
	text, err := readAll(file, in)
	if err == nil && file != "-" {
		file, err = filepath.Abs(file)
	}
	if err != nil {
		return err
	}
	if f.timezone == "" {
		if f.timezone, err = localZone(a.Getenv); err != nil {
			return err
		}
	}
	if _, err := time.LoadLocation(f.timezone); err != nil {
		return cli.Usagef("--timezone %s: it is not an IANA time zone such as Europe/Berlin",
			f.timezone)
	}
	system := f.system || strings.HasPrefix(file, "/etc/")
	if f.source == "" {
		f.source = "crontab"
		if file != "-" {
			f.source = file
		}
	}
	lines, problems := schedule.ParseCrontab(string(text), system)
	im := importer{app: a, flags: f, jobs: []importedJob{}}
	for _, p := range problems { // foreign lines may have any schedule
		if calls, err := im.callsOf(p.CronLine); len(calls) > 0 || err != nil {
			im.problems = append(im.problems, p)
		}
	}
	err = a.withLedger(ctx, func(src report.Source) error {
		im.src = src
		return im.read(ctx, lines)
	})
	if err != nil {
		return err
	}
	return im.finish()
}

// readAll reads a file, or standard input for -.
func readAll(file string, in io.Reader) ([]byte, error) {
	if file == "-" {
		return io.ReadAll(in)
	}
	return os.ReadFile(file)
}

// finish prints the jobs, and reports the lines that could not be read.
func (im *importer) finish() error {
	for _, p := range im.problems {
		fmt.Fprintf(im.Stderr, "quotactl: %s, line %d: skipped: %s\n", words.Plain(im.flags.source),
			p.Number, words.Plain(p.Text))
	}
	if len(im.jobs) == 0 && len(im.problems) == 0 {
		return cli.Hint(errors.New("no line runs quotactl exec or ingestor once"),
			"put it before the command of a line: quotactl exec --units 40 -- COMMAND")
	}
	var err error
	if len(im.jobs) > 0 || im.Output != "table" {
		err = im.Print(struct {
			Jobs []importedJob `json:"jobs"`
		}{im.jobs}, func(s cli.Screen) {
			fmt.Fprintln(s.W, "jobs:")
			for _, j := range im.jobs {
				io.WriteString(s.W, j.text())
			}
		})
	}
	if err == nil && len(im.problems) > 0 {
		return &cli.Coded{Code: cli.ExitFailed}
	}
	return err
}

// localZone returns the name of this machine's time zone.
func localZone(getenv func(string) string) (string, error) {
	if zone := strings.TrimPrefix(getenv("TZ"), ":"); zone != "" {
		return zone, nil
	}
	target, err := os.Readlink("/etc/localtime")
	if _, zone, ok := strings.Cut(target, "zoneinfo/"); err == nil && ok {
		return zone, nil
	}
	if text, err := os.ReadFile("/etc/timezone"); err == nil {
		return strings.TrimSpace(string(text)), nil
	}
	if _, err := os.Stat("/etc/localtime"); errors.Is(err, os.ErrNotExist) {
		return "UTC", nil
	}
	return "", cli.Usagef("the time zone of this machine has no name: give --timezone")
}
