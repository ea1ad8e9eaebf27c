package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quotabudget/internal/config"
	"quotabudget/internal/report"
)

// Common holds what every command needs: outputs, environment, and the common flags.
type Common struct {
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	Manual         Manual

	Config     string // path; "" to search
	System     string // the last place that Load searches; "" for config.SystemFile
	Output     string // table, json or yaml
	LogLevel   string
	LogFormat  string
	Credential string // "" for the only one
	Color      string // auto, always or never
	UTC        bool   // show times only in UTC

	warned bool // Load has warned that the configuration file is empty
}

// Bind adds the flags, and the command version, to the root command.
func (c *Common) Bind(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&c.Config, "config", "", "configuration `FILE` "+
		"(default $QUOTA_CONFIG, ./quota.yaml, $XDG_CONFIG_HOME/quota/quota.yaml, "+
		config.SystemFile+")")
	flags.StringVar(&c.Credential, "credential", "",
		"`NAME` of the credential; optional if only one is configured")
	choose := func(field *string, name, short, usage string, words ...string) {
		bindChoice(root, flags, field, name, short, usage, words)
	}
	choose(&c.Output, "output", "o", "format of results", "table", "json", "yaml")
	choose(&c.LogLevel, "log-level", "", "lowest level to log", "info", "debug", "warn", "error")
	choose(&c.LogFormat, "log-format", "", "format of standard error", "text", "json")
	choose(&c.Color, "color", "", "when to use colours; auto: on a terminal, unless NO_COLOR is set",
		"auto", "always", "never")
	flags.BoolVar(&c.UTC, "utc", false,
		"show times only in UTC, not also in your own zone")
	Bound(root.MarkPersistentFlagFilename("config", "yaml", "yml"))
	version, toolchain := report.Version()
	text := fmt.Sprintf("%s %s (%s)\n", root.Name(), version, toolchain)
	root.Version = version
	root.SetVersionTemplate(text)
	root.Flags().Bool("version", false, "show the version")
	root.AddCommand(&cobra.Command{
		Use:     "version",
		Short:   "Show the version",
		Example: "  " + root.Name() + " version",
		Args:    Args(),
		RunE: func(*cobra.Command, []string) error {
			return c.Print(Object{"version", version, "go", toolchain}, func(s Screen) {
				s.Say("%s", text)
			})
		},
	})
}

// bindChoice adds a flag that accepts one of a few words, the first by default, and completes them.
func bindChoice(c *cobra.Command, flags *pflag.FlagSet, field *string, name, short, usage string,
	words []string) {
	*field = words[0]
	flags.VarP(&choice{field, words}, name, short, usage)
	complete := cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
	Bound(c.RegisterFlagCompletionFunc(name, complete))
}

// Bound panics on an error of cobra about a flag that the caller has just bound.
func Bound(err error) {
	if err != nil {
		panic(err)
	}
}

// PrintsLines adds the line formats to a command's --output: jsonl, one object per line, csv, and
// the command's own formats.
func (c *Common) PrintsLines(command *cobra.Command, more ...string) {
	words := append([]string{"table", "json", "yaml", "jsonl", "csv"}, more...)
	bindChoice(command, command.Flags(), &c.Output, "output", "o", "format of results", words)
}

// ManyMiB is more MiB than any machine has. As bytes, it fits an int64.
const ManyMiB = 1 << 40

// Limit makes integer flags refuse values below low or above high. If high is at least ManyMiB,
// their errors state no maximum.
func Limit(flags *pflag.FlagSet, low, high int64, names ...string) {
	for _, name := range names {
		f := flags.Lookup(name)
		f.Value = limited{f.Value, low, high}
	}
}

type limited struct {
	pflag.Value
	low, high int64
}

func (l limited) Set(text string) error {
	if err := l.Value.Set(text); err != nil {
		return err
	}
	switch n, err := strconv.ParseInt(l.Value.String(), 10, 64); {
	case err != nil || l.low <= n && n <= l.high:
		return err
	case l.high >= ManyMiB:
		return fmt.Errorf("must be at least %d", l.low)
	}
	return fmt.Errorf("must be %d to %d", l.low, l.high)
}

type choice struct {
	field *string
	words []string
}

func (c *choice) String() string { return *c.field }

func (c *choice) Type() string { return strings.Join(c.words, "|") }

func (c *choice) Set(word string) error {
	if !slices.Contains(c.words, word) {
		return fmt.Errorf("must be one of %s", strings.Join(c.words, ", "))
	}
	*c.field = word
	return nil
}

// Load reads the configuration that the flags and the environment name. It warns of an empty file,
// which may be truncated, or the output of a failed program.
func (c *Common) Load(ctx context.Context) (*config.Config, error) {
	cfg, err := c.Search().Load(ctx)
	// naming the null device is deliberate
	if err == nil && cfg.Empty && cfg.File != os.DevNull && !c.warned {
		c.warned = true
		c.Logger().Warn("the configuration file is empty; using the defaults", "file",
			cfg.File)
	}
	return cfg, err
}

// Search returns the places where Load searches.
func (c *Common) Search() config.Search {
	return config.Search{Path: c.Config, System: c.System, Getenv: c.Getenv}
}

// Chosen returns the credential that --credential names.
func (c *Common) Chosen(cfg *config.Config) (config.Credential, error) {
	cred, err := cfg.Credential(c.Credential)
	switch {
	case err == nil:
		return cred, nil
	case c.Credential == "":
		return cred, Hint(&UsageError{err}, "choose one with --credential")
	}
	return cred, &UsageError{err}
}

// Logger returns a logger to Stderr with the format and the level of the flags.
func (c *Common) Logger() *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(c.LogLevel)); err != nil {
		level = slog.LevelInfo // not bound to flags
	}
	opts := &slog.HandlerOptions{Level: level}
	if c.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(escaper{c.Stderr}, opts))
	}
	return slog.New(slog.NewTextHandler(escaper{c.Stderr}, opts))
}
