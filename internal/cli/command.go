package cli

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quotabudget/internal/quota"
	"quotabudget/internal/spell"
)

// Execute runs the command of root that args name, reports its error on stderr and returns the exit
// code.
func Execute(ctx context.Context, root *cobra.Command, args []string, stdout,
	stderr io.Writer) int {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(helpCommand(root))
	root.InitDefaultCompletionCmd(args...)
	groups(root)
	help(root)
	root.SetUsageTemplate(usageTemplate(root))
	err := run(ctx, root, args)
	if format := root.PersistentFlags().Lookup("log-format"); format != nil &&
		format.Value.String() == "json" {
		return reportJSON(stderr, err)
	}
	return Report(stderr, root.Name(), err)
}

func run(ctx context.Context, root *cobra.Command, args []string) error {
	for _, arg := range args {
		if quota.LooksSecret(arg) {
			return Hint(Usagef("an argument holds what looks like an API key"),
				"other users of this machine can read arguments: make a new key, and name the "+
					"variable or file that holds it in quota.yaml")
		}
	}
	err := root.ExecuteContext(ctx)
	var usage *UsageError
	// cobra has no type for it
	if err != nil && !errors.As(err, &usage) && strings.HasPrefix(err.Error(), "unknown command ") {
		text, _, _ := strings.Cut(err.Error(), "\n")
		err = Hint(Usagef("%s%s", text, suggestion(root, text)), "%s --help lists the commands",
			root.CommandPath())
	}
	return err
}

// suggestion is the command that was meant by the quoted word of cobra's text.
func suggestion(parent *cobra.Command, text string) string {
	_, rest, _ := strings.Cut(text, `"`)
	word, _, _ := strings.Cut(rest, `"`)
	var names []string
	for _, c := range parent.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	return spell.DidYouMean(word, names)
}

// groups makes every command that only holds others say so: alone it prints its help and fails, and
// a wrong word after it is an error.
func groups(c *cobra.Command) {
	for _, sub := range c.Commands() {
		groups(sub)
	}
	if c.Runnable() {
		return
	}
	if c.HasParent() {
		c.Args = func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			return Hint(Usagef("unknown command %q for %q%s", args[0], c.CommandPath(),
				suggestion(c, `"`+args[0]+`"`)),
				"%s --help lists the commands", c.CommandPath())
		}
	}
	c.RunE = func(c *cobra.Command, _ []string) error {
		c.SetOut(c.ErrOrStderr())
		if err := c.Help(); err != nil {
			return err
		}
		return &Coded{Code: ExitUsage}
	}
}

func helpCommand(root *cobra.Command) *cobra.Command {
	return &cobra.Command{
		Use:   "help [COMMAND]",
		Short: "Explain a command",
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string,
			cobra.ShellCompDirective) {
			var names []string
			if c, _, err := root.Find(args); err == nil {
				for _, sub := range c.Commands() {
					if sub.IsAvailableCommand() {
						names = append(names, sub.Name()+"\t"+sub.Short)
					}
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			c, rest, err := root.Find(args)
			if err != nil || c == nil || len(rest) > 0 {
				return Usagef("no command %q%s", strings.Join(args, " "),
					suggestion(root, `"`+strings.Join(args, " ")+`"`))
			}
			c.InitDefaultHelpFlag()
			return c.Help()
		},
	}
}

// Args takes exactly the arguments named, for a command's Args.
func Args(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		var err error
		switch {
		case len(args) < len(names):
			err = Usagef("%s is missing", names[len(args)])
		case len(args) > len(names):
			err = Usagef("%q is one argument too many", args[len(names)])
		default:
			return nil
		}
		return Hint(err, "usage: %s", c.UseLine())
	}
}

// flagError puts pflag's errors into words.
func flagError(c *cobra.Command, err error) error {
	var unknown *pflag.NotExistError
	var missing *pflag.ValueRequiredError
	var invalid *pflag.InvalidValueError
	switch {
	case errors.As(err, &unknown) && unknown.GetSpecifiedShortnames() != "":
		return Hint(Usagef("-%s is not a flag", unknown.GetSpecifiedShortnames()),
			"no ID and no number of units begins with \"-\"; %s --help lists the flags",
			c.CommandPath())
	case errors.As(err, &unknown):
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		name := "--" + unknown.GetSpecifiedName()
		return Hint(Usagef("unknown flag %s%s", name, spell.DidYouMean(name, names)),
			"%s --help lists the flags", c.CommandPath())
	case errors.As(err, &missing):
		return Usagef("--%s needs a value", missing.GetFlag().Name)
	case errors.As(err, &invalid):
		return Usagef("--%s %s: %s", invalid.GetFlag().Name, invalid.GetValue(),
			invalidValue(invalid))
	}
	return &UsageError{err}
}

// invalidValue says what the flag takes.
func invalidValue(e *pflag.InvalidValueError) string {
	switch e.GetFlag().Value.Type() {
	case "int64", "int":
		return "not a whole number"
	case "duration":
		return "not a duration such as 90s, 5m or 1h"
	case "bool":
		return "neither true nor false"
	}
	return e.Unwrap().Error()
}
