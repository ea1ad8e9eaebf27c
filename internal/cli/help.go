package cli

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

const helpColumns = 100

// help wraps the help of a command and of its subcommands at helpColumns, and keeps the shell from
// completing file names where none are taken.
func help(c *cobra.Command) {
	for _, sub := range c.Commands() {
		help(sub)
	}
	c.Long = wrap(c.Long, helpColumns)
	if c.ValidArgsFunction == nil && !c.HasSubCommands() {
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
}

func usageTemplate(root *cobra.Command) string {
	return strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages ", ".FlagUsagesWrapped 100 ")
}

// wrap fills every paragraph that has a line of more than width columns. A paragraph with indented
// lines is left as it is.
func wrap(text string, width int) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		wide := func(line string) bool { return utf8.RuneCountInString(line) > width }
		if !strings.HasPrefix(p, " ") && !strings.Contains(p, "\n ") &&
			slices.ContainsFunc(strings.Split(p, "\n"), wide) {
			paragraphs[i] = fold(strings.Join(strings.Fields(p), " "), width)
		}
	}
	return strings.Join(paragraphs, "\n\n")
}
