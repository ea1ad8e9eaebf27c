package grammar

import (
	"fmt"
	"time"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/words"
)

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

// ParseDuration parses a duration within bounds, both included.
func ParseDuration(text string, least, most time.Duration) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d < least || d > most {
		return least, fmt.Errorf("%q is not a duration from %gs to %gh, such as 2m",
			words.Clip(text), least.Seconds(), most.Hours())
	}
	return d, nil
}

// Duration is a format of durations within bounds.
func Duration(least, most time.Duration) func(string) error {
	return func(text string) error {
		_, err := ParseDuration(text, least, most)
		return err
	}
}
