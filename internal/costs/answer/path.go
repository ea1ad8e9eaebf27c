// Package answer reads what an upstream answers, within bounds: values in JSON by their paths,
// events of a stream, typed headers, packed bodies.
package answer

import (
	"math"
	"strconv"
	"strings"
)

// Find is the value at a path of keys and places, such as data.0.usage. It is false where the path
// breaks off.
func Find(value any, path string) (any, bool) {
	for step := range strings.SplitSeq(path, ".") {
		switch v := value.(type) {
		case map[string]any:
			next, ok := v[step]
			if !ok {
				return nil, false
			}
			value = next
		case []any:
			place, err := strconv.Atoi(step)
			if err != nil || place < 0 || place >= len(v) {
				return nil, false
			}
			value = v[place]
		default:
			return nil, false
		}
	}
	return value, true
}

// Count is how many resources there are at a path: see Items.
func Count(value any, path string) int { return len(Items(value, path)) }

// Items are the resources at a path, in which * stands for every key or place: the items of a list,
// an object or another value as the only one, none for null and where the path breaks off.
func Items(value any, path string) []any { return items(nil, value, strings.Split(path, ".")) }

func items(all []any, value any, steps []string) []any {
	if len(steps) == 0 {
		switch v := value.(type) {
		case nil:
			return all
		case []any:
			return append(all, v...)
		}
		return append(all, value)
	}
	if steps[0] != "*" {
		next, ok := Find(value, steps[0])
		if !ok {
			return all
		}
		return items(all, next, steps[1:])
	}
	switch v := value.(type) {
	case []any:
		for _, next := range v {
			all = items(all, next, steps[1:])
		}
	case map[string]any:
		for _, next := range v {
			all = items(all, next, steps[1:])
		}
	}
	return all
}

// First is the first text at a path, in which * stands for every place of a list, that is not
// empty.
func First(value any, path string) string { return first(value, strings.Split(path, ".")) }

func first(value any, steps []string) string {
	if len(steps) == 0 {
		text, _ := value.(string)
		return text
	}
	if steps[0] != "*" {
		next, ok := Find(value, steps[0])
		if !ok {
			return ""
		}
		return first(next, steps[1:])
	}
	list, _ := value.([]any)
	for _, item := range list {
		if text := first(item, steps[1:]); text != "" {
			return text
		}
	}
	return ""
}

// Text writes a text or a number at a path. It is false for anything else, and for a number so
// large that others are read as the same.
func Text(value any, path string) (string, bool) {
	value, _ = Find(value, path)
	switch v := value.(type) {
	case string:
		return v, true
	case float64:
		if math.Abs(v) >= 1<<53 {
			return "", false
		}
		return strconv.FormatFloat(v, 'f', -1, 64), true
	}
	return "", false
}
