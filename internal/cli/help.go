package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
)

const helpColumns = 80 // width of help

func usageTemplate(root *cobra.Command) string {
	return strings.ReplaceAll(root.UsageTemplate(), ".FlagUsages ",
		fmt.Sprintf(".FlagUsagesWrapped %d ", helpColumns))
}

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
