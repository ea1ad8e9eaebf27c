package cli

import (
	"bytes"
	"encoding/json"
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
