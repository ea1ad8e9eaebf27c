package untrusted

import (
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
)

// Find returns the value at a path of keys and indexes, such as data.0.usage. It returns false if
// the path does not exist.
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

// Values returns the values at a path in which * matches every key or index, in the order of the
// indexes or of the sorted keys.
func Values(value any, path string) (all []any) {
	step, rest, more := strings.Cut(path, ".")
	each := []any{}
	if step != "*" {
		if next, ok := Find(value, step); ok {
			each = append(each, next)
		}
	} else if object, ok := value.(map[string]any); ok {
		for _, key := range slices.Sorted(maps.Keys(object)) {
			each = append(each, object[key])
		}
	} else {
		each, _ = value.([]any)
	}
	if !more {
		return append(all, each...)
	}
	for _, next := range each {
		all = append(all, Values(next, rest)...)
	}
	return all
}

// Count returns how many resources there are at a path: see Items.
func Count(value any, path string) int { return len(Items(value, path)) }

// Items returns the resources at a path, in which * matches every key or index: the items of a
// list, or any other value as the only item. It returns none for null and for a missing path.
func Items(value any, path string) (all []any) {
	for _, item := range Values(value, path) {
		switch v := item.(type) {
		case nil:
		case []any:
			all = append(all, v...)
		default:
			all = append(all, v)
		}
	}
	return all
}

// FirstText returns the first non-empty text at a path, in which * matches every key or index.
func FirstText(value any, path string) string {
	for _, item := range Values(value, path) {
		if text, _ := item.(string); text != "" {
			return text
		}
	}
	return ""
}

// FindText returns the first text or number at a path. It returns false if there is none, or if the
// number is too large to be exact.
func FindText(value any, path string) (string, bool) {
	for _, item := range Values(value, path) {
		switch v := item.(type) {
		case string:
			return v, true
		case float64:
			if math.Abs(v) >= 1<<53 {
				return "", false
			}
			return strconv.FormatFloat(v, 'f', -1, 64), true
		}
	}
	return "", false
}

// FillZero sets a path to 0 if only its last key is missing: some upstreams omit numbers that are
// 0. In the path, * matches every key or index.
func FillZero(value any, path string) {
	objects, key := []any{value}, path
	if end := strings.LastIndexByte(path, '.'); end >= 0 {
		objects, key = Values(value, path[:end]), path[end+1:]
	}
	for _, object := range objects {
		if object, ok := object.(map[string]any); ok {
			if _, has := object[key]; !has {
				object[key] = float64(0)
			}
		}
	}
}
