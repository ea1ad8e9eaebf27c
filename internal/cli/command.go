package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// Execute runs the command of root that args name, reports its error on Stderr, and returns the
// exit code.
func (c *Common) Execute(ctx context.Context, root *cobra.Command, args []string) int {
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetArgs(args)
	root.SetOut(c.Stdout)
	root.SetErr(c.Stderr)
	root.SetFlagErrorFunc(FlagError)
	root.SetHelpCommand(helpCommand(root))
	root.InitDefaultCompletionCmd(args...)
	groups(root)
	c.Manual.helpFlags(root)
	root.CompletionOptions.SetDefaultShellCompDirective(cobra.ShellCompDirectiveNoFileComp)
	root.SetUsageTemplate(strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages ",
		fmt.Sprintf(".FlagUsagesWrapped %d ", helpColumns)))
	root.SetHelpFunc(printHelp)
	err := run(ctx, root, args)
	if isCanceled(err) && ctx.Err() != nil { // the cause names the signal
		hinted, _ := errors.AsType[*HintError](err)
		if err = context.Cause(ctx); hinted != nil {
			err = Hint(err, "%s", hinted.Hint)
		}
	}
	if c.LogFormat == "json" {
		return reportJSON(c.Stderr, err)
	}
	return Report(c.Stderr, root.Name(), err)
}

// isCanceled reports whether the end of a context is the only cause of err. It returns false if
// another error is joined to it, or if the command chose its exit code.
func isCanceled(err error) bool {
	if _, is := err.(*Coded); is || err == nil {
		return false
	}
	if joined, is := err.(interface{ Unwrap() []error }); is {
		return len(joined.Unwrap()) == 1 && isCanceled(joined.Unwrap()[0])
	}
	return err == context.Canceled || isCanceled(errors.Unwrap(err))
}

func run(ctx context.Context, root *cobra.Command, args []string) error {
	for _, arg := range args {
		if arg == "--" { // the other arguments belong to another program
			break
		}
		if quota.LooksSecret(arg) {
			return Hint(Usagef("an argument holds what looks like an API key"),
				"other users of this machine can read arguments: make a new key, and name the "+
					"variable or file that holds it in quota.yaml")
		}
	}
	err := root.ExecuteContext(ctx)
	if _, usage := errors.AsType[*UsageError](err); err != nil && !usage {
		var word string // cobra has no type for this error
		if n, _ := fmt.Sscanf(err.Error(), "unknown command %q", &word); n == 1 {
			return unknownCommand(root, word)
		}
	}
	return err
}

// Elsewhere names the program that has the commands: a user looks for them in both.
func Elsewhere(root *cobra.Command, program string, commands ...string) {
	root.Annotations = make(map[string]string)
	for _, name := range commands {
		root.Annotations[name] = program + " " + name
	}
}

func unknownCommand(parent *cobra.Command, word string) error {
	if other := parent.Annotations[word]; other != "" {
		return Hint(Usagef("%s has no command %q", parent.Name(), word), "it is %s", other)
	}
	return Hint(Usagef("unknown command %q for %q%s", word, parent.CommandPath(),
		suggestion(parent, word)), "%s --help lists the commands", parent.CommandPath())
}

func suggestion(parent *cobra.Command, word string) string {
	var names []string
	for _, c := range available(parent) {
		names = append(names, c.Name())
	}
	return words.DidYouMean(word, names)
}

func available(parent *cobra.Command) (list []*cobra.Command) {
	for _, c := range parent.Commands() {
		if c.IsAvailableCommand() {
			list = append(list, c)
		}
	}
	return list
}

// groups makes commands that only have subcommands print their help and fail, and refuse unknown
// words.
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
			return unknownCommand(c, args[0])
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
		ValidArgsFunction: func(_ *cobra.Command, args []string,
			_ string) (names []string, _ cobra.ShellCompDirective) {
			if c, _, err := root.Find(args); err == nil {
				for _, sub := range available(c) {
					names = append(names, sub.Name()+"\t"+sub.Short)
				}
			}
			return names, cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(_ *cobra.Command, args []string) error {
			c, extra, err := root.Find(args)
			if err != nil || c == nil || len(extra) > 0 {
				words := strings.Join(args, " ")
				return Usagef("no command %q%s", words, suggestion(root, words))
			}
			c.InitDefaultHelpFlag()
			return c.Help()
		},
	}
}

// Args accepts exactly the named arguments. One whose name is in brackets may be left out.
func Args(names ...string) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		var err error
		switch {
		case len(args) < len(names) && !strings.HasPrefix(names[len(args)], "["):
			err = Usagef("%s is missing", names[len(args)])
		case len(args) > len(names):
			err = Usagef("unexpected argument %q", args[len(names)])
		default:
			return nil
		}
		return Hint(err, "usage: %s", c.UseLine())
	}
}

// FlagError rewords an error of pflag.
func FlagError(c *cobra.Command, err error) error {
	unknown, isUnknown := errors.AsType[*pflag.NotExistError](err)
	missing, isMissing := errors.AsType[*pflag.ValueRequiredError](err)
	invalid, isInvalid := errors.AsType[*pflag.InvalidValueError](err)
	switch {
	case isUnknown && unknown.GetSpecifiedShortnames() != "":
		return Hint(Usagef("unknown flag -%s", unknown.GetSpecifiedShortnames()),
			"IDs and units do not begin with \"-\"; %s --help lists the flags", c.CommandPath())
	case isUnknown:
		var names []string
		c.Flags().VisitAll(func(f *pflag.Flag) { names = append(names, "--"+f.Name) })
		name := "--" + unknown.GetSpecifiedName()
		return Hint(Usagef("unknown flag %s%s", name, words.DidYouMean(name, names)),
			"%s --help lists the flags", c.CommandPath())
	case isMissing:
		err = Usagef("--%s needs a value", missing.GetFlag().Name)
	case isInvalid:
		err = Usagef("--%s %s: %s", invalid.GetFlag().Name, invalid.GetValue(),
			invalidValue(invalid))
	default:
		err = &UsageError{err}
	}
	return Hint(err, "usage: %s", c.UseLine())
}

func invalidValue(e *pflag.InvalidValueError) string {
	_, isNumber := errors.AsType[*strconv.NumError](e)
	switch kind := e.GetFlag().Value.Type(); {
	case isNumber && (kind == "int64" || kind == "int"):
		return "not a whole number"
	case kind == "duration":
		return "not a duration such as 90s, 5m or 1h"
	case kind == "bool":
		return "must be true or false"
	}
	return e.Unwrap().Error()
}

const helpColumns = 80 // width of help

// printHelp prints the help of a command. It breaks lines that cobra's template and wrap leave too
// long, such as list items, within their column.
func printHelp(c *cobra.Command, _ []string) {
	text := strings.TrimRight(cmp.Or(wrap(c.Long, helpColumns), c.Short), " \n") + "\n\n" +
		c.UsageString()
	for line := range strings.Lines(text) {
		io.WriteString(c.OutOrStdout(), hang(strings.TrimSuffix(line, "\n"), helpColumns)+"\n")
	}
}

// wrap fills every paragraph and every list item: an indented line, and the following lines that
// begin in its last column.
func wrap(text string, width int) string {
	var lines []string
	column := -1 // column in which a continued line begins
	for line := range strings.SplitSeq(text, "\n") {
		words := strings.TrimLeft(line, " ")
		if indent := len(line) - len(words); words != "" && indent == column {
			lines[len(lines)-1] += " " + words
			continue
		}
		lines = append(lines, line)
		if column = columnOf(line); words == "" {
			column = -1
		}
	}
	for i, line := range lines {
		lines[i] = hang(line, width)
	}
	return strings.Join(lines, "\n")
}

// columnOf returns where the text of a line begins: after "name  ", or after its indentation.
func columnOf(line string) int {
	indent := len(line) - len(strings.TrimLeft(line, " "))
	if gap := strings.LastIndex(line[:min(len(line), maxColumn)], "  "); indent > 0 && gap >= indent {
		return gap + 2
	}
	return indent
}

// maxColumn bounds the last column of a list.
const maxColumn = 50

// hang folds a line that is too wide, and indents the rest to its last column.
func hang(line string, width int) string {
	if Width(line) <= width {
		return line
	}
	column := columnOf(line)
	folded := fold(line[column:], width-column)
	return line[:column] + strings.ReplaceAll(folded, "\n", "\n"+strings.Repeat(" ", column))
}
