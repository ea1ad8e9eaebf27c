package cli

import (
	"bytes"
	"encoding/json"
	"io"

	"go.yaml.in/yaml/v3"
)

// Print writes v to stdout as the flags say: as JSON, as YAML with the same keys, or by table.
func (c *Common) Print(stdout io.Writer, v any, table func() error) error {
	switch c.Output {
	case "json":
		data, err := toJSON(v)
		if err != nil {
			return err
		}
		_, err = stdout.Write(data)
		return err
	case "yaml":
		data, err := toYAML(v)
		if err != nil {
			return err
		}
		_, err = stdout.Write(data)
		return err
	}
	return table()
}

func toJSON(v any) ([]byte, error) {
	var text bytes.Buffer
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	err := out.Encode(v)
	return text.Bytes(), err
}

// toYAML goes by way of JSON, so that the keys and their order are the same.
func toYAML(v any) ([]byte, error) {
	data, err := toJSON(v)
	if err != nil {
		return nil, err
	}
	var doc yaml.Node
	if err := yaml.Unmarshal(data, &doc); err != nil {
		return nil, err
	}
	unfold(&doc)
	var text bytes.Buffer
	out := yaml.NewEncoder(&text)
	out.SetIndent(2)
	if err := out.Encode(&doc); err != nil {
		return nil, err
	}
	return text.Bytes(), out.Close()
}

// unfold takes the braces and quotes of JSON away where YAML needs none.
func unfold(n *yaml.Node) {
	n.Style = 0
	for _, below := range n.Content {
		unfold(below)
	}
}
