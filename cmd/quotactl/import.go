package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"quotabudget/internal/cli"
	"quotabudget/internal/report"
	"quotabudget/internal/schedule"
	"quotabudget/internal/words"
)

type crontabFlags struct {
	system           bool
	source, timezone string
}

func (a *app) importCrontab() *cobra.Command {
	var f crontabFlags
	c := a.Command("import crontab", func(c *cobra.Command, args []string) error {
		file := "-"
		if len(args) > 0 {
			file = args[0]
		}
		return a.readCrontab(c.Context(), f, file, c.InOrStdin())
	})
	c.Args = cobra.MaximumNArgs(1)
	flags := c.Flags()
	cli.Flags(flags, "system", &f.system, "source", &f.source, "timezone", &f.timezone)
	return c
}

func (a *app) readCrontab(ctx context.Context, f crontabFlags, file string, in io.Reader) error {
	var text []byte
	var err error
	if file == "-" {
		text, err = io.ReadAll(in)
	} else if text, err = os.ReadFile(file); err == nil {
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
		err = im.Print(object{"jobs", im.jobs}, func(s cli.Screen) {
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

// invocation is a call of a metered command in a crontab line.
type invocation struct {
	program string            // quotactl or ingestor
	words   []string          // after the program
	env     map[string]string // variables of cron, and of the line
}

// callsOf returns the calls of "quotactl exec" and "ingestor once" in a line.
func (im *importer) callsOf(l schedule.CronLine) ([]invocation, error) {
	if !strings.Contains(l.Command, "quotactl") && !strings.Contains(l.Command, "ingestor") {
		return nil, nil
	}
	home := im.Getenv("HOME")
	if account, err := user.Lookup(l.User); l.User != "" && err == nil {
		home = account.HomeDir
	}
	s := shellReader{env: map[string]string{"HOME": home, "LOGNAME": l.User}, shells: new(int)}
	maps.Copy(s.env, l.Env)
	err := s.read(l.Command, l.Env["SHELL"])
	if err != nil && !strings.Contains(l.Command, "exec") && !strings.Contains(l.Command, "once") {
		return nil, nil
	}
	return s.calls, err
}

// shellReader finds calls in commands.
type shellReader struct {
	env   map[string]string
	calls []invocation
	// shells counts the shells of the line read so far. Their number is limited, because the command
	// in a variable can expand that variable again.
	shells *int
}

// maxShells is the maximum number of shells that a line may start: that of cron, and one for each
// "sh -c".
const maxShells = 50

// read reads a command in the language of a shell, that of /bin/sh by default.
func (s *shellReader) read(command, shell string) error {
	if *s.shells++; *s.shells > maxShells {
		return fmt.Errorf("the command starts more than %d shells", maxShells)
	}
	variant := syntax.LangPOSIX
	switch filepath.Base(shell) {
	case "bash", "zsh":
		variant = syntax.LangBash
	case "ksh", "mksh":
		variant = syntax.LangMirBSDKorn
	}
	file, err := syntax.NewParser(syntax.Variant(variant)).Parse(strings.NewReader(command), "")
	if err != nil {
		return fmt.Errorf("the command cannot be read: %w", err)
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.DeclClause: // export A=1
			s.assign(s.env, n.Args)
		case *syntax.CallExpr:
			env := s.env
			if len(n.Args) > 0 { // otherwise the variables apply to later commands
				env = maps.Clone(s.env)
			}
			s.assign(env, n.Assigns)
			if failed := s.call(n.Args, env); failed != nil {
				err = failed
			}
		}
		return true
	})
	return err
}

func (s *shellReader) assign(env map[string]string, list []*syntax.Assign) {
	for _, a := range list {
		if a.Name != nil && a.Value != nil {
			env[a.Name.Value] = literal(a.Value, env)
		}
	}
}

// call records a call of quotactl or ingestor. It looks through wrappers such as nice, and into the
// code of "sh -c" and "su -c".
func (s *shellReader) call(args []*syntax.Word, env map[string]string) error {
	words := make([]string, len(args))
	for i, w := range args {
		words[i] = literal(w, env)
	}
	for i, w := range words {
		if name, value, ok := strings.Cut(w, "="); ok { // of env
			env[name] = value
			continue
		}
		switch filepath.Base(w) {
		case "quotactl", "ingestor":
			c := invocation{filepath.Base(w), words[i+1:], env}
			if c.program == "quotactl" && slices.Contains(c.words, "exec") ||
				c.program == "ingestor" && slices.Contains(c.words, "once") {
				s.calls = append(s.calls, c)
			}
			return nil
		case "sh", "bash", "dash", "ksh", "zsh", "su", "runuser":
			if code := codeOf(words[i+1:]); code != "" {
				inner := shellReader{env: maps.Clone(env), shells: s.shells}
				err := inner.read(code, w)
				s.calls = append(s.calls, inner.calls...)
				return err
			}
		}
	}
	return nil
}

// codeOf returns the argument of -c or of -lc, "" if there is none.
func codeOf(words []string) string {
	for i, w := range words[:max(0, len(words)-1)] {
		short := strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--")
		if w == "--command" || short && strings.HasSuffix(w, "c") {
			return words[i+1]
		}
	}
	return ""
}

// literal returns a word as the shell expands it, or as written if that depends on the output of a
// command.
func literal(w *syntax.Word, env map[string]string) string {
	cfg := &expand.Config{Env: expand.FuncEnviron(func(name string) string { return env[name] })}
	text, err := expand.Literal(cfg, w)
	if err != nil {
		var b strings.Builder
		syntax.NewPrinter().Print(&b, w)
		text = b.String()
	}
	if path, ok := strings.CutPrefix(text, "~/"); ok {
		text = filepath.Join(env["HOME"], path)
	}
	return text
}
