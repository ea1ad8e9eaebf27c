package grammar

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"github.com/santhosh-tekuri/jsonschema/v6/kind"
	"go.yaml.in/yaml/v3"

	"quotabudget/internal/words"
)

// Schema is a JSON Schema with messages for people. Its keyword errorMessage, which editors show
// too, states the rule for a value.
type Schema struct {
	compiled *jsonschema.Schema
	source   any // the parsed JSON
}

// Formats maps the names used by the schema's keyword format to functions that check a string.
// Their errors state the rule.
type Formats map[string]func(string) error

// NewSchema compiles a schema, or the part of it that a pointer such as #/$defs/list names. It
// panics if the schema is invalid, because schemas are embedded.
func NewSchema(data []byte, pointer string, formats Formats) *Schema {
	source, err := jsonschema.UnmarshalJSON(bytes.NewReader(data))
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	for name, check := range formats {
		c.RegisterFormat(&jsonschema.Format{Name: name, Validate: func(v any) error {
			switch v.(type) {
			case nil, []any, map[string]any: // the schema reports the wrong type
				return nil
			}
			return check(fmt.Sprint(v))
		}})
	}
	const name = "schema.json"
	if err = cmp.Or(err, c.AddResource(name, source)); err != nil {
		panic(err)
	}
	return &Schema{c.MustCompile(name + pointer), source}
}

// check adds the schema's errors to the problems of a file.
func (s *Schema) check(f *File, value any) {
	invalid, ok := errors.AsType[*jsonschema.ValidationError](s.compiled.Validate(value))
	if !ok {
		return
	}
	all := leaves(invalid)
	// The library visits keys in random order. For an empty string, other problems come before the
	// format.
	order := func(e *jsonschema.ValidationError) (formatLast int, dependent string) {
		switch k := e.ErrorKind.(type) {
		case *kind.Format:
			return 1, ""
		case *kind.DependentRequired:
			return 0, k.Prop // the key that requires another one
		}
		return 0, ""
	}
	slices.SortStableFunc(all, func(a, b *jsonschema.ValidationError) int {
		lastA, keyA := order(a)
		lastB, keyB := order(b)
		return cmp.Or(lastA-lastB, slices.Compare(a.InstanceLocation, b.InstanceLocation),
			cmp.Compare(keyA, keyB))
	})
	for _, e := range all {
		at := f.Top()
		for _, step := range e.InstanceLocation {
			if at.node.Kind != yaml.SequenceNode {
				at = at.Key(step)
			} else if i, err := strconv.Atoi(step); err == nil {
				at = at.Item(i)
			}
		}
		s.report(at, e)
	}
}

// leaves returns the innermost errors. Among alternatives it follows the one that matches the
// value's type. If none does, the choice itself is the error.
func leaves(e *jsonschema.ValidationError) (all []*jsonschema.ValidationError) {
	causes := e.Causes
	switch e.ErrorKind.(type) {
	case *kind.OneOf, *kind.AnyOf:
		causes = slices.DeleteFunc(slices.Clone(causes), func(c *jsonschema.ValidationError) bool {
			return mistyped(c, len(e.InstanceLocation))
		})
		if len(causes) != 1 {
			return append(all, e)
		}
	}
	if len(causes) == 0 {
		return append(all, e)
	}
	for _, c := range causes {
		all = append(all, leaves(c)...)
	}
	return all
}

// mistyped reports whether an alternative refuses the value at that depth itself, and not a value
// below it.
func mistyped(e *jsonschema.ValidationError, depth int) bool {
	for _, leaf := range leaves(e) {
		if len(leaf.InstanceLocation) > depth {
			continue
		}
		switch leaf.ErrorKind.(type) {
		case *kind.Type, *kind.Enum, *kind.Const:
			return true
		}
	}
	return false
}

// report adds an error to the problems.
func (s *Schema) report(at Place, e *jsonschema.ValidationError) {
	rule := s.rule(e.SchemaURL)
	switch k := e.ErrorKind.(type) {
	case *kind.AdditionalProperties:
		keys := slices.Collect(maps.Keys(rule.object("properties")))
		for _, name := range slices.Sorted(slices.Values(k.Properties)) {
			key := at.Key(name)
			key.name, key.node = at.name, key.key
			if len(keys) > 0 {
				key.refuse("unknown key %q%s", words.Clip(name), words.DidYouMean(name, keys))
			} else { // the keys have a pattern
				key.refuse("%q: %s", words.Clip(name), rule.message("is not a valid key"))
			}
		}
	case *kind.Required:
		for _, name := range k.Missing {
			missing := Place{file: at.file, node: at.node, name: at.name, missing: name}
			text := name + " is missing"
			property, _ := rule.object("properties")[name].(map[string]any)
			if must := property["errorMessage"]; must != nil {
				text = fmt.Sprintf("%s: %v", text, must)
			}
			missing.refuse("%s", text)
		}
	case *kind.DependentRequired:
		at.Key(k.Prop).refuse("needs %s, which is missing", strings.Join(k.Missing, " and "))
	case *kind.Type:
		at.refuse("%s", rule.wrongType(k))
		at.blank(k.Want)
	case *kind.OneOf, *kind.AnyOf:
		at.refuse("%s", rule.message("is not valid"))
		var empty []string
		if at.node.Kind == yaml.MappingNode { // decoding a list skips null, and later items would move up
			empty = []string{"object"}
		}
		at.blank(empty)
	default:
		at.refuse("%s", rule.broken(k))
	}
}

// blank replaces a value of a wrong type with an empty value of a right type, so that decoding
// succeeds.
func (p Place) blank(types []string) {
	empty := yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null", Line: p.node.Line}
	switch {
	case slices.Contains(types, "object"):
		empty.Kind, empty.Tag = yaml.MappingNode, "!!map"
	case slices.Contains(types, "array"):
		empty.Kind, empty.Tag = yaml.SequenceNode, "!!seq"
	case slices.Contains(types, "string"):
		empty.Tag = "!!str"
	}
	*p.node = empty
}

// rule is an object of a schema.
type rule map[string]any

// rule returns the part of the schema that a location such as schema.json#/$defs/limit names.
func (s *Schema) rule(location string) rule {
	_, pointer, _ := strings.Cut(location, "#")
	value := s.source
	for step := range strings.SplitSeq(strings.TrimPrefix(pointer, "/"), "/") {
		if unescaped, err := url.PathUnescape(step); err == nil {
			step = unescaped
		}
		switch v := value.(type) {
		case map[string]any:
			if step != "" {
				value = v[step]
			}
		case []any:
			if i, err := strconv.Atoi(step); err == nil && i < len(v) {
				value = v[i]
			}
		}
	}
	object, _ := value.(map[string]any)
	return object
}

func (r rule) object(key string) map[string]any {
	object, _ := r[key].(map[string]any)
	return object
}

// message returns the rule in the schema's own words, or the usual ones.
func (r rule) message(usual string) string {
	if text, ok := r["errorMessage"].(string); ok {
		return text
	}
	return usual
}

var typeNames = map[string]string{"string": "text (in quotes)", "integer": "a whole number",
	"number": "a number", "boolean": "true or false", "array": "a list, such as [a, b]",
	"object": "key: value pairs"}

func (r rule) wrongType(k *kind.Type) string {
	var names []string
	for _, t := range k.Want {
		// a string may look like a number or a boolean
		if t != "null" && (t == "string" || !slices.Contains(k.Want, "string") ||
			t == "object" || t == "array") {
			names = append(names, typeNames[t])
		}
	}
	if k.Got == "null" {
		return "is empty: write " + either(names)
	}
	must := "must be " + either(names)
	if k.Got == "string" && (slices.Contains(k.Want, "integer") || slices.Contains(k.Want, "number")) {
		must += " in decimal digits, without quotes, such as 10000"
	}
	return r.message(must)
}

// broken returns the rule that a value of the right type breaks.
func (r rule) broken(k jsonschema.ErrorKind) string {
	switch k := k.(type) {
	case *kind.Enum:
		values := make([]string, len(k.Want))
		for i, word := range k.Want {
			values[i] = fmt.Sprint(word)
		}
		return r.message("must be " + either(values) + words.DidYouMean(fmt.Sprint(k.Got), values))
	case *kind.Const:
		return r.message(fmt.Sprintf("must be %v", k.Want))
	case *kind.Format:
		return k.Err.Error()
	case *kind.Minimum, *kind.Maximum:
		if r["maximum"] == nil {
			return fmt.Sprintf("must be at least %v", r["minimum"])
		}
		return fmt.Sprintf("must be %v to %v", r["minimum"], r["maximum"])
	case *kind.MinLength:
		return r.message("is empty: write text")
	case *kind.MinItems:
		return r.message("the list is empty")
	case *kind.MaxItems:
		return r.message(fmt.Sprintf("must have at most %d items", k.Want))
	case *kind.MinProperties:
		return r.message("write at least one")
	case *kind.MaxProperties:
		return r.message(fmt.Sprintf("must have at most %d", k.Want))
	}
	return r.message("is not valid")
}

// either joins names: a, b or c.
func either(names []string) string {
	if last := len(names) - 1; last > 0 {
		return strings.Join(names[:last], ", ") + " or " + names[last]
	}
	return strings.Join(names, "")
}
