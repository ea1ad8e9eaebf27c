package quotabudget_test

import (
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var keyItem = regexp.MustCompile("(?m)^- (`[a-z_.\\[\\]]+`(?:,\\s+`[a-z_.\\[\\]]+`)*)")

// configurationKeys returns the keys in the lists of the page on configuration. An item may have
// several: after `jobs[].floor`, `.weight` means `jobs[].weight`.
func configurationKeys(t *testing.T) (keys []string) {
	t.Helper()
	for _, item := range keyItem.FindAllStringSubmatch(read(t, "docs/configuration.md"), -1) {
		parent := ""
		for _, span := range codeSpan.FindAllStringSubmatch(item[1], -1) {
			key := span[1]
			if strings.HasPrefix(key, ".") {
				key = parent + key
			}
			parent = key[:max(0, strings.LastIndexByte(key, '.'))]
			keys = append(keys, strings.TrimSuffix(key, "[]"))
		}
	}
	return keys
}

// TestEveryKeyIsDocumented: the page on configuration has the keys of the schema, and no others,
// and the example has each of them.
func TestEveryKeyIsDocumented(t *testing.T) {
	var root map[string]any
	must(t, json.Unmarshal([]byte(read(t, "quota.schema.json")), &root))
	known := map[string]bool{}
	schemaKeys(root["$defs"].(map[string]any), root, "", known)
	documented, example := map[string]bool{}, read(t, "quota.example.yaml")
	for _, key := range configurationKeys(t) {
		documented[key] = true
		if name := key[strings.LastIndexByte(key, '.')+1:]; !strings.Contains(example, name+":") {
			t.Errorf("quota.example.yaml has no %s", key)
		}
	}
	got, want := slices.Sorted(maps.Keys(documented)), slices.Sorted(maps.Keys(known))
	for _, key := range append(got, want...) {
		if documented[key] != known[key] {
			t.Errorf("%s: in the schema %v, on the page %v", key, known[key], documented[key])
		}
	}
}

// schemaKeys collects the keys that a schema allows, such as credentials[].limits[].bucket.
func schemaKeys(defs, schema map[string]any, path string, keys map[string]bool) {
	if ref, ok := schema["$ref"].(string); ok {
		schemaKeys(defs, defs[strings.TrimPrefix(ref, "#/$defs/")].(map[string]any), path, keys)
	}
	alternatives, _ := schema["oneOf"].([]any)
	for _, alternative := range alternatives {
		part := alternative.(map[string]any)
		if items, ok := part["items"].(map[string]any); ok { // a list of them has the same keys
			part = items
		}
		schemaKeys(defs, part, path, keys)
	}
	if items, ok := schema["items"].(map[string]any); ok {
		schemaKeys(defs, items, path+"[]", keys)
	}
	properties, _ := schema["properties"].(map[string]any)
	for name, property := range properties {
		key := strings.TrimPrefix(path+"."+name, ".")
		keys[key] = true
		schemaKeys(defs, property.(map[string]any), key, keys)
	}
}

// The page has every environment variable that the programs read, and no other.
func TestEveryVariableIsDocumented(t *testing.T) {
	variable := regexp.MustCompile(
		"[\"`]((?:QUOTA|YOUTUBE|XDG)_[A-Z_]+|NO_COLOR|TERM|HOME|TZ)[\"`]")
	want := make(map[string]bool)
	for _, v := range variable.FindAllStringSubmatch(sources(t), -1) {
		want[v[1]] = true
	}
	_, table, _ := strings.Cut(read(t, "docs/configuration.md"), "\n## Environment\n")
	table, _, _ = strings.Cut(table, "\n## ")
	named := make(map[string]bool)
	for _, item := range jsonItem.FindAllString(table, -1) {
		names, _, _ := strings.Cut(item, ": ")
		for _, v := range variable.FindAllStringSubmatch(names, -1) {
			named[v[1]] = true
		}
	}
	if !maps.Equal(want, named) {
		t.Errorf("the programs read %v, the page has %v",
			slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(named)))
	}
}
