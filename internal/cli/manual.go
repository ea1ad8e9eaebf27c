package cli

import (
	"regexp"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v3"
)

// Manual is the help of a program, by the words of each command, such as "costs check". The page of
// the program itself has the program's name.
type Manual map[string]*Page

// Page is the help of a command and of its flags, and the names of its arguments. A name in
// brackets is optional.
type Page struct {
	Use, Short, Long, Example string
	Args                      []string
	Flags                     map[string]string
}

// ReadManual parses the manual that a program embeds.
func ReadManual(text []byte) Manual {
	var m Manual
	if err := yaml.Unmarshal(text, &m); err != nil {
		panic(err) // the text is part of the program
	}
	return m
}

// Fill replaces placeholders on a page, given in pairs with their values.
func (m Manual) Fill(path string, pairs ...string) {
	page, fill := m[path], strings.NewReplacer(pairs...)
	page.Long = fill.Replace(page.Long)
	for name, help := range page.Flags {
		page.Flags[name] = fill.Replace(help)
	}
}

// Command returns the command that a page describes, above other commands.
func (c *Common) Command(path string, run func(*cobra.Command, []string) error,
	below ...*cobra.Command) *cobra.Command {
	page := c.Manual[path]
	command := &cobra.Command{Use: page.Use, Short: page.Short, Long: page.Long, RunE: run}
	if page.Example != "" {
		command.Example = "  " + strings.ReplaceAll(page.Example, "\n", "\n  ")
	}
	if run != nil {
		command.Args = Args(page.Args...)
	}
	if takesFiles.MatchString(page.Use) {
		command.ValidArgsFunction = completeFiles
	}
	command.AddCommand(below...)
	return command
}

// helpFlags sets the help of the flags of a command and of those below it.
func (m Manual) helpFlags(c *cobra.Command) {
	path := strings.TrimPrefix(c.CommandPath(), c.Root().Name()+" ")
	if page := m[path]; page != nil && c.Flags().HasFlags() { // one that is not run may lack them
		for name, help := range page.Flags {
			c.Flags().Lookup(name).Usage = help
			if strings.Contains(help, "`FILE`") {
				Bound(c.RegisterFlagCompletionFunc(name, completeFiles))
			}
		}
	}
	for _, below := range c.Commands() {
		m.helpFlags(below)
	}
}

// takesFiles matches the usage of commands that take files, or a command to run.
var takesFiles = regexp.MustCompile(`[ \[](FILE|COMMAND)`)

// completeFiles lets the shell complete the names of files.
func completeFiles(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	return nil, cobra.ShellCompDirectiveDefault
}

// Flags adds flags, each given as a name and a pointer to its field, or a pflag.Value. A shorthand
// follows the name after a comma: "quiet,q". The value of the field is the default. The manual has
// the help.
func Flags(flags *pflag.FlagSet, pairs ...any) {
	for i := 0; i < len(pairs); i += 2 {
		name, short, _ := strings.Cut(pairs[i].(string), ",")
		switch field := pairs[i+1].(type) {
		case *string:
			flags.StringVarP(field, name, short, *field, "")
		case *bool:
			flags.BoolVarP(field, name, short, *field, "")
		case *int:
			flags.IntVarP(field, name, short, *field, "")
		case *int64:
			flags.Int64VarP(field, name, short, *field, "")
		case *uint64:
			flags.Uint64VarP(field, name, short, *field, "")
		case *time.Duration:
			flags.DurationVarP(field, name, short, *field, "")
		case *[]string:
			flags.StringArrayVarP(field, name, short, *field, "")
		default:
			flags.VarP(field.(pflag.Value), name, short, "")
		}
	}
}
