package cli

import (
	"bufio"
	"encoding/csv"
	"errors"
	"strings"

	"github.com/spf13/cobra"
)

// PrintsLines lets a command print its result in lines, too: as JSON, an object in each (jsonl), or
// as CSV.
func (c *Common) PrintsLines(command *cobra.Command) {
	words := []string{"table", "json", "yaml", "jsonl", "csv"}
	command.Flags().VarP(&choice{&c.Output, words}, "output", "o", "format of results")
	complete := cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp)
	if err := command.RegisterFlagCompletionFunc("output", complete); err != nil {
		panic(err) // the flag is bound above
	}
}

// InLines reports whether the result is to be printed in lines.
func (c *Common) InLines() bool { return c.Output == "jsonl" || c.Output == "csv" }

// Lines prints a result in lines.
type Lines struct {
	form string
	out  *bufio.Writer
	csv  *csv.Writer
}

// Lines begins a result, in CSV with the names of the columns.
func (c *Common) Lines(columns ...string) *Lines {
	out := bufio.NewWriter(c.Stdout)
	l := &Lines{c.Output, out, csv.NewWriter(out)}
	if l.form == "csv" {
		l.csv.Write(columns) // an error is that of Flush
	}
	return l
}

// Add writes a line: item as JSON, or the cells of its row.
func (l *Lines) Add(item any, cells ...string) error {
	if l.form == "csv" {
		for i, text := range cells {
			cells[i] = inSheet(text)
		}
		return l.csv.Write(cells)
	}
	data, err := toJSON(item)
	if err == nil {
		_, err = l.out.Write(escaped(data, inJSON))
	}
	return err
}

// Flush writes what has been added.
func (l *Lines) Flush() error {
	l.csv.Flush()
	return errors.Join(l.csv.Error(), l.out.Flush())
}

// inSheet is a text for CSV. Besides what a terminal would obey, it has nothing that a spreadsheet
// would take for a formula: an apostrophe goes before that.
func inSheet(text string) string {
	text = Plain(text)
	if text != "" && strings.ContainsRune("=+-@", rune(text[0])) &&
		strings.Trim(text, "-0123456789") != "" {
		return "'" + text
	}
	return text
}
