package cli

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"quotabudget/internal/config"
)

// Common holds what every command needs: outputs, environment, and the common flags.
type Common struct {
	Stdout, Stderr io.Writer
	Getenv         func(string) string

	Config     string // path; "" to search
	System     string // the last place that Load searches; "" for config.SystemFile
	Output     string // table, json or yaml
	LogLevel   string
	LogFormat  string
	Credential string // "" for the only one
	Color      string // auto, always or never
	UTC        bool   // show times only in UTC
}

// Bind adds the flags, and the command version, to the root command.
func (c *Common) Bind(root *cobra.Command) {
	flags := root.PersistentFlags()
	flags.StringVar(&c.Config, "config", "", "configuration `FILE` "+
		"(default $QUOTA_CONFIG, ./quota.yaml, $XDG_CONFIG_HOME/quota/quota.yaml, "+
		config.SystemFile+")")
	flags.StringVar(&c.Credential, "credential", "",
		"`NAME` of the credential; optional if only one is configured")
	pick(root, &c.Output, "output", "o", "format of results", "table", "json", "yaml")
	pick(root, &c.LogLevel, "log-level", "", "lowest level to log",
		"info", "debug", "warn", "error")
	pick(root, &c.LogFormat, "log-format", "", "format of standard error", "text", "json")
	pick(root, &c.Color, "color", "", "when to use colours; auto: on a terminal, unless NO_COLOR "+
		"is set", "auto", "always", "never")
	flags.BoolVar(&c.UTC, "utc", false,
		"show times only in UTC, not also in your own zone")
	if err := root.MarkPersistentFlagFilename("config", "yaml", "yml"); err != nil {
		panic(err) // the flag is bound above
	}
	c.version(root)
}

// pick adds a flag that accepts one of a few words, the first by default, and completes them.
func pick(root *cobra.Command, field *string, name, short, usage string, words ...string) {
	*field = words[0]
	root.PersistentFlags().VarP(&choice{field, words}, name, short, usage)
	complete := cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
	if err := root.RegisterFlagCompletionFunc(name, complete); err != nil {
		panic(err) // the flag is bound above
	}
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
	if err == nil && cfg.Empty && cfg.File != os.DevNull { // naming the null device is deliberate
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
