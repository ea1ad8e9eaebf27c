package grammar

import (
	"cmp"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Place is a place in a file where a check can report a problem.
type Place struct {
	file    *File
	node    *yaml.Node // the value; its parent if the value is missing
	key     *yaml.Node // the key of the value; nil for the items of a list
	name    string     // the last two keys, such as limits.units
	missing string     // the key, if there is no value
}

// Key returns the place of a key's value.
func (p Place) Key(name string) Place {
	if p.missing != "" || p.node == nil {
		return p
	}
	for i := 0; p.node.Kind == yaml.MappingNode && i+1 < len(p.node.Content); i += 2 {
		if p.node.Content[i].Value == name {
			return p.Pair(i / 2)
		}
	}
	return Place{file: p.file, node: p.node, name: below(p.name, name), missing: name}
}

// below returns the last key of a path and a key below it.
func below(path, key string) string {
	return strings.TrimPrefix(path[strings.LastIndexByte(path, '.')+1:]+"."+key, ".")
}

// Item returns the place of an item of a list. A single value in place of a list is its only item.
func (p Place) Item(i int) Place {
	if p.missing != "" || p.node == nil || p.node.Kind != yaml.SequenceNode ||
		i >= len(p.node.Content) {
		return p
	}
	return Place{file: p.file, node: p.node.Content[i], name: p.name}
}

// Pair returns the place of the value of a mapping's i-th pair.
func (p Place) Pair(i int) Place {
	if p.missing != "" || p.node == nil || 2*i+1 >= len(p.node.Content) {
		return p
	}
	key := p.node.Content[2*i]
	return Place{file: p.file, node: p.node.Content[2*i+1], key: key,
		name: below(p.name, key.Value)}
}

// Keys returns the keys of a mapping in the order of the file.
func (p Place) Keys() (names []string) {
	if p.missing == "" && p.node != nil && p.node.Kind == yaml.MappingNode {
		for i := 0; i+1 < len(p.node.Content); i += 2 {
			names = append(names, p.node.Content[i].Value)
		}
	}
	return names
}

// Has reports whether a mapping has a value for the key.
func (p Place) Has(name string) bool {
	value := p.Key(name)
	return value.missing == "" && value.node != nil && !isNull(value.node)
}

// Add reports a problem, unless the schema has already refused the value.
func (p Place) Add(format string, args ...any) {
	if !p.Refused() && !p.file.Full() {
		p.file.add(p.line(), "%s", p.message(format, args...))
	}
}

// refuse adds a schema problem. It has no bound, because schema problems come in no order.
func (p Place) refuse(format string, args ...any) {
	if !p.Refused() {
		p.file.add(p.line(), "%s", p.message(format, args...))
	}
	p.file.reported[spot{p.node, p.missing}] = true
}

// Refused reports whether the schema has refused the value.
func (p Place) Refused() bool { return p.file.reported[spot{p.node, p.missing}] }

func (p Place) line() int {
	if at := cmp.Or(p.key, p.node); at != nil {
		return at.Line
	}
	return 0
}

func (p Place) message(format string, args ...any) string {
	text := fmt.Sprintf(format, args...)
	if p.name == "" {
		return text
	}
	return p.name + ": " + text
}
