package grammar

import "go.yaml.in/yaml/v3"

// DecodeEither decodes a scalar into short, and a list or mapping into long.
func DecodeEither(n *yaml.Node, short, long any) error {
	if n.Kind == yaml.ScalarNode {
		return n.Decode(short)
	}
	return n.Decode(long)
}

// List is a list of values, or one value in place of a list.
type List[T any] []T

// UnmarshalYAML decodes the list or the value.
func (l *List[T]) UnmarshalYAML(n *yaml.Node) error {
	if n.Kind == yaml.SequenceNode {
		return n.Decode((*[]T)(l))
	}
	*l = make([]T, 1)
	return n.Decode(&(*l)[0])
}
