package cli

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"regexp"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Print writes v in the chosen format: as JSON, as YAML with the same keys, or with table.
func (c *Common) Print(v any, table func() error) error {
	var data []byte
	var err error
	switch c.Output {
	case "json":
		data, err = toJSON(v)
		data = escaped(data, inJSON)
	case "yaml":
		data, err = toYAML(v)
	default:
		return table()
	}
	if err == nil {
		_, err = c.Stdout.Write(data)
	}
	return err
}

// PrintEach prints a list that may be too long for memory, as an object whose only key is key. each
// calls do with every item.
func (c *Common) PrintEach(key string, each func(do func(item any) error) error,
	table func() error) error {
	if c.Output != "json" && c.Output != "yaml" {
		return table()
	}
	out := bufio.NewWriter(c.Stdout)
	n := 0
	err := each(func(item any) error {
		n++
		data, err := listed(c.Output, key, item, n == 1)
		out.Write(data) // Flush returns the error
		return err
	})
	switch {
	case err != nil:
		return errors.Join(err, out.Flush())
	case n == 0:
		return c.Print(map[string][]any{key: {}}, table)
	case c.Output == "json":
		out.WriteString("]}\n")
	}
	return out.Flush()
}

// listed returns the next item of a list, with the text before it.
func listed(form, key string, item any, first bool) ([]byte, error) {
	if form == "yaml" {
		data, err := toYAML(map[string][]any{key: {item}})
		if !first {
			_, data, _ = bytes.Cut(data, []byte("\n"))
		}
		return data, err
	}
	data, err := toJSON(item)
	before := ","
	if first {
		before = `{"` + key + `":[`
	}
	return append([]byte(before), bytes.TrimSuffix(escaped(data, inJSON), []byte("\n"))...), err
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

// unfold removes braces and quotes that no YAML reader needs.
func unfold(n *yaml.Node) {
	n.Style = 0
	if n.Kind == yaml.ScalarNode && n.Tag == "!!str" && (olderForm.MatchString(n.Value) ||
		strings.ContainsFunc(n.Value, acts)) {
		n.Style = yaml.DoubleQuotedStyle
	}
	for _, below := range n.Content {
		unfold(below)
	}
}

// olderForm matches strings that the many YAML 1.1 readers take for another type: NO for a
// boolean, 1:30 for ninety. The encoder follows YAML 1.2 and would not quote them.
var olderForm = regexp.MustCompile(`^(?:` + strings.Join([]string{
	`(?i:y|n|yes|no|on|off|true|false)`,
	`~|(?i:null)|=|<<`,
	`[-+]?0[bB][01_]+`,
	`[-+]?0[xX][0-9a-fA-F_]+`,
	`[-+]?[0-9][0-9_,]*(?::[0-5]?[0-9])*(?:\.[0-9_]*)?(?:[eE][-+]?[0-9]+)?`,
	`[-+]?\.[0-9_.]+(?:[eE][-+]?[0-9]+)?`,
	`[-+]?\.(?i:inf|nan)`,
	`[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}(?:[Tt \t].*)?`,
}, `|`) + `)$`)
