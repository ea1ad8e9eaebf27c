package cli

import (
	"bytes"
	"encoding/json"
	"io"
	"regexp"
	"strings"

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
		_, err = stdout.Write(escaped(data, inJSON))
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

// unfold takes the braces and quotes of JSON away where no reader of YAML needs them.
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

// olderForm is what readers of YAML 1.1, of which there are many, take for something else than a
// string: NO for a boolean, 1:30 for ninety. The writer here is of YAML 1.2 and would leave it
// bare.
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
