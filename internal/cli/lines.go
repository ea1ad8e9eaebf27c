package cli

import (
	"bufio"
	"encoding/csv"
	"errors"
	"strings"

	"quotabudget/internal/words"
)

// InLines reports whether the output format is one of lines.
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
		l.csv.Write(columns) // Flush returns the error
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

// Flush writes the buffered lines.
func (l *Lines) Flush() error {
	l.csv.Flush()
	return errors.Join(l.csv.Error(), l.out.Flush())
}

// inSheet makes text safe for CSV: without terminal sequences, and with an apostrophe before
// anything that a spreadsheet would evaluate as a formula.
func inSheet(text string) string {
	text = words.Plain(text)
	if text != "" && strings.ContainsRune("=+-@", rune(text[0])) &&
		strings.Trim(text, "-0123456789") != "" {
		return "'" + text
	}
	return text
}
