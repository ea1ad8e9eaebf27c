package cli

import (
	"strings"

	"github.com/spf13/cobra"
)

const helpColumns = 100

// help wraps the help of a command and its subcommands at helpColumns, and keeps the shell from
// completing file names.
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

// wrap fills every paragraph, except one with indented lines.
func wrap(text string, width int) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if !strings.HasPrefix(p, " ") && !strings.Contains(p, "\n ") {
			paragraphs[i] = fold(strings.Join(strings.Fields(p), " "), width)
		}
	}
	return strings.Join(paragraphs, "\n\n")
}
