package cli

import (
	"bytes"
	"encoding/json"
	"strings"

	"go.yaml.in/yaml/v3"
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
