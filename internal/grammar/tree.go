package grammar

import (
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/words"
)

// maxItems bounds all lists and mappings together, because aliases can make a small file long.
const maxItems = 200_000

// value converts a node to what a JSON parser returns. It resolves aliases, and drops pairs that a
// JSON object cannot hold. Name is the path for messages.
func (f *File) value(n *yaml.Node, name string) any {
	if f.items++; f.items >= maxItems && !f.broken {
		f.broken = true
		f.at(n, name).refuse("more than %d items in all lists together", maxItems)
	}
	switch {
	case f.broken:
		return nil
	case n.Kind == yaml.ScalarNode:
		return f.scalar(n, name)
	case f.open[n]:
		f.broken = true
		f.at(n, name).refuse("an alias (*) of a list or mapping that contains it")
		return nil
	}
	f.open[n] = true
	defer delete(f.open, n)
	if !slices.Contains([]string{"!!map", "!!seq"}, n.ShortTag()) {
		f.at(n, name).refuse("the tag %s cannot be used", words.Clip(n.Tag))
	}
	if n.Kind == yaml.MappingNode {
		return f.mapping(n, name)
	}
	list := make([]any, len(n.Content))
	for i := range n.Content {
		n.Content[i] = target(n.Content[i])
		list[i] = f.value(n.Content[i], name)
	}
	return list
}

func (f *File) mapping(n *yaml.Node, name string) any {
	values, lines := map[string]any{}, map[string]int{}
	var nodes []*yaml.Node
	for i := 0; i+1 < len(n.Content) && !f.broken; i += 2 {
		key, value := n.Content[i], target(n.Content[i+1])
		line, again := lines[key.Value]
		switch {
		case key.ShortTag() == "!!merge":
			f.at(key, name).refuse("merge keys (<<) are not supported: repeat the keys here")
		case key.Kind != yaml.ScalarNode:
			f.at(key, name).refuse("a key must be a word")
		case again:
			f.at(key, name).refuse("%s is already set on line %d", words.Clip(key.Value), line)
		default:
			lines[key.Value] = key.Line
			key.Tag = "!!str" // 2026 and 2026-01-01 are strings, too
			nodes = append(nodes, key, value)
			values[key.Value] = f.value(value, below(name, key.Value))
		}
	}
	n.Content = nodes
	return values
}

// decimal matches the integers that all YAML parsers read alike. Some read 010 as 8.
var decimal = regexp.MustCompile(`^[-+]?(0|[1-9][0-9_]*)$`)

// scalar returns a number only for decimal digits, and a string for anything else.
func (f *File) scalar(n *yaml.Node, name string) any {
	digits := strings.TrimPrefix(strings.ReplaceAll(n.Value, "_", ""), "+")
	switch n.ShortTag() {
	case "!!null":
		return nil
	case "!!bool":
		return strings.EqualFold(n.Value, "true")
	case "!!int":
		if decimal.MatchString(n.Value) {
			return json.Number(digits)
		}
	case "!!float":
		number, err := strconv.ParseFloat(digits, 64)
		if err == nil && !math.IsInf(number, 0) && !math.IsNaN(number) {
			return number
		}
	case "!!str", "!!timestamp":
	default:
		f.at(n, name).refuse("the tag %s cannot be used", words.Clip(n.Tag))
	}
	return n.Value
}

func (f *File) at(n *yaml.Node, name string) Place { return Place{file: f, node: n, name: name} }

// target returns the node that an alias refers to.
func target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

func isNull(n *yaml.Node) bool { return n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" }
