package cli

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode"
	"unicode/utf16"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/words"
)

// Print writes v in the chosen format: as JSON, as YAML with the same keys, or as show draws it.
func (c *Common) Print(v any, show func(Screen)) error {
	var data []byte
	var err error
	switch c.Output {
	case "json":
		data, err = toJSON(v)
		data = escaped(data, inJSON)
	case "yaml":
		data, err = toYAML(v)
	default:
		return c.Draw(c.Stdout, show)
	}
	if err == nil {
		_, err = c.Stdout.Write(data)
	}
	return err
}

// Object is a JSON object: keys and values alternate.
type Object []any

// MarshalJSON implements json.Marshaler.
func (o Object) MarshalJSON() ([]byte, error) {
	out := []byte{'{'}
	for i, part := range o {
		if i > 0 {
			out = append(out, ",:"[i%2])
		}
		data, err := toJSON(part)
		if err != nil {
			return nil, err
		}
		out = append(out, data...)
	}
	return append(out, '}'), nil
}

// With adds a key and its value if has is set.
func (o Object) With(key string, value any, has bool) Object {
	if has {
		return append(o, key, value)
	}
	return o
}

// NonEmpty adds pairs of a key and a value, except those with an empty value.
func (o Object) NonEmpty(pairs ...any) Object {
	for i := 0; i < len(pairs); i += 2 {
		v := reflect.ValueOf(pairs[i+1])
		isList := v.Kind() == reflect.Slice || v.Kind() == reflect.Map
		o = o.With(pairs[i].(string), pairs[i+1], !v.IsZero() && !(isList && v.Len() == 0))
	}
	return o
}

// Each returns the results of show for all items. The slice is never nil, which would be null in
// JSON.
func Each[T, U any](items []T, show func(T) U) []U {
	shown := []U{}
	for _, item := range items {
		shown = append(shown, show(item))
	}
	return shown
}

// NonNil returns m, or an empty map if m is nil, because JSON writes nil as null.
func NonNil[K comparable, V any](m map[K]V) map[K]V {
	if m == nil {
		m = map[K]V{}
	}
	return m
}

func toJSON(v any) ([]byte, error) {
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	err := out.Encode(v)
	return text.Bytes(), err
}

// toYAML converts via JSON, so that keys and order are the same.
func toYAML(v any) ([]byte, error) {
	data, err := toJSON(v)
	if err != nil {
		return nil, err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(escaped(data, inYAML), &doc); err != nil {
		return nil, err
	}
	unfold(&doc)
	var text bytes.Buffer
	out := yaml.NewEncoder(&text)
	out.SetIndent(2)
	if err := out.Encode(&doc); err != nil {
		return nil, err
	}
	err = out.Close()
	return escaped(text.Bytes(), inYAML), err
}

// unfold removes braces and quotes that no YAML reader needs. The encoder quotes strings that YAML
// 1.1 reads as another type, such as NO, except "=" and numbers with commas.
func unfold(n *yaml.Node) {
	if n.Style = 0; n.Kind == yaml.ScalarNode && n.Tag == "!!str" {
		text := n.Value
		n.Encode(text)
		if strings.ContainsFunc(text, acts) || strings.Trim(text, "=,0123456789") == "" {
			n.Style = yaml.DoubleQuotedStyle
		}
	}
	for _, below := range n.Content {
		unfold(below)
	}
}

// escaped escapes, in JSON or double-quoted YAML, the characters that a terminal may obey and
// encoding/json does not escape. The value stays the same. spell formats one character.
func escaped(data []byte, spell func(rune) string) []byte {
	if bytes.IndexFunc(data, acts) < 0 {
		return data
	}
	var out bytes.Buffer
	for _, r := range string(data) {
		if acts(r) {
			out.WriteString(spell(r))
		} else {
			out.WriteRune(r)
		}
	}
	return out.Bytes()
}

// acts reports whether encoding/json leaves a character unescaped that a terminal may obey.
func acts(r rune) bool {
	return r >= '\u007f' && (unicode.IsControl(r) || words.Hidden(r) && !words.Joins(r))
}

func inJSON(r rune) string {
	if r > 0xffff {
		high, low := utf16.EncodeRune(r)
		return fmt.Sprintf(`\u%04x\u%04x`, high, low)
	}
	return fmt.Sprintf(`\u%04x`, r)
}

func inYAML(r rune) string {
	if r > 0xffff {
		return fmt.Sprintf(`\U%08X`, r)
	}
	return fmt.Sprintf(`\u%04X`, r)
}

// escaper escapes log lines on their way to w. Each Write must be whole lines, as log/slog's are.
type escaper struct{ w io.Writer }

func (e escaper) Write(data []byte) (int, error) {
	if _, err := e.w.Write(escaped(data, inJSON)); err != nil {
		return 0, err
	}
	return len(data), nil
}

// InLines reports whether the output format is one of lines.
func (c *Common) InLines() bool { return c.Output == "jsonl" || c.Output == "csv" }

// PrintLines prints the rows of a table in CSV, after a heading in the first call, or their items
// as lines of JSON.
func (c *Common) PrintLines(t *Table) error {
	buffer := bufio.NewWriter(c.Stdout)
	sheet := csv.NewWriter(buffer)
	if c.Output == "csv" && !t.headed {
		var names []string
		for _, column := range t.columns {
			names = append(names, column.Name)
		}
		sheet.Write(names)
	}
	var failed error
	for _, l := range t.lines {
		if c.Output == "csv" {
			row := make([]string, len(l.cells))
			for i, value := range l.cells {
				row[i] = inSheet(fmt.Sprint(value))
			}
			sheet.Write(row)
			continue
		}
		data, err := toJSON(l.item)
		buffer.Write(escaped(data, inJSON))
		failed = cmp.Or(failed, err)
	}
	t.lines, t.headed = nil, true
	sheet.Flush()
	return cmp.Or(failed, sheet.Error(), buffer.Flush())
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
