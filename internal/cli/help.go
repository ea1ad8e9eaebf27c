package cli

import (
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// helpColumns is how wide help is written.
const helpColumns = 100

// help makes the help of a command and of those below it fit into helpColumns, and keeps the shell
// from offering file names where none are taken.
func help(c *cobra.Command) {
	for _, sub := range c.Commands() {
		help(sub)
	}
	c.Long = wrap(c.Long, helpColumns)
	if c.ValidArgsFunction == nil && !c.HasSubCommands() {
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
}

// usageTemplate is cobra's, with flags that are wrapped.
func usageTemplate(root *cobra.Command) string {
	return strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages ", ".FlagUsagesWrapped 100 ")
}

// wrap breaks the lines of every paragraph anew that has one of more than width columns. A
// paragraph with indented lines is left as it is.
func wrap(text string, width int) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if strings.HasPrefix(p, " ") || strings.Contains(p, "\n ") {
			continue
		}
		for line := range strings.Lines(p) {
			if utf8.RuneCountInString(line) > width {
				paragraphs[i] = fill(strings.Fields(p), width)
				break
			}
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// fill writes the words in lines as long as they may be.
func fill(words []string, width int) string {
	var out strings.Builder
	used := 0
	for i, w := range words {
		n := utf8.RuneCountInString(w)
		switch {
		case i == 0:
		case used+1+n > width:
			out.WriteByte('\n')
			used = 0
		default:
			out.WriteByte(' ')
			used++
		}
		out.WriteString(w)
		used += n
	}
	return out.String()
}
