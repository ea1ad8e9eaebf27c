package costs_test

import (
	"encoding/json"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"quotabudget"
	"quotabudget/internal/costs"
)

// schema is what editors know of the form.
func schema(t *testing.T) (text map[string]any, compiled *jsonschema.Schema) {
	t.Helper()
	data, err := os.ReadFile("../../costs/schema.json")
	must(t, err)
	must(t, json.Unmarshal(data, &text))
	c := jsonschema.NewCompiler()
	must(t, c.AddResource("schema.json", text))
	compiled, err = c.Compile("schema.json")
	must(t, err)
	return text, compiled
}

// TestSchemaHasEveryKey: the schema for editors has the keys that the parser knows, and no others.
func TestSchemaHasEveryKey(t *testing.T) {
	known := map[string]map[string]bool{}
	files := os.DirFS("testdata")
	for _, text := range []string{read(t, "all-keys.yaml"), read(t, "columns.yaml"),
		read(t, "one-upstream.yaml"),
		"default: a\nupstreams: {a: all-keys.yaml}"} {
		for section, keys := range costs.Keys(t, text, files) {
			if known[section] == nil {
				known[section] = map[string]bool{}
			}
			maps.Copy(known[section], keys)
		}
	}
	text, _ := schema(t)
	defs := text["$defs"].(map[string]any)
	for section, keys := range known {
		def, _ := defs[section].(map[string]any)
		props, _ := def["properties"].(map[string]any)
		got, want := slices.Sorted(maps.Keys(props)), slices.Sorted(maps.Keys(keys))
		if !slices.Equal(got, want) {
			t.Errorf("%s: the schema has %v, the parser %v", section, got, want)
		}
	}
	for name, def := range defs {
		if def.(map[string]any)["properties"] != nil && known[name] == nil {
			t.Errorf("the schema has a section %s, which the parser never read", name)
		}
	}
}

// decoded is YAML as a validator of JSON takes it.
func decoded(t *testing.T, data []byte) (value any) {
	t.Helper()
	var root yaml.Node
	must(t, yaml.Unmarshal(data, &root))
	plain(&root)
	var doc any
	must(t, root.Decode(&doc))
	text, err := json.Marshal(doc)
	must(t, err)
	value, err = jsonschema.UnmarshalJSON(strings.NewReader(string(text)))
	must(t, err)
	return value
}

// plain makes texts of days and of keys, as they are to editors.
func plain(n *yaml.Node) {
	if n.Tag == "!!timestamp" {
		n.Tag = "!!str"
	}
	for i, below := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			below.Tag = "!!str"
		}
		plain(below)
	}
}

// TestSchemaTakesEveryList: what ships is valid, and what the parser refuses for its form is not.
func TestSchemaTakesEveryList(t *testing.T) {
	_, form := schema(t)
	names, err := fs.Glob(quotabudget.Costs(), "costs/*.yaml")
	must(t, err)
	for _, name := range append(names, "costs.yaml") {
		data, err := fs.ReadFile(quotabudget.Costs(), name)
		must(t, err)
		if err := form.Validate(decoded(t, data)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
	if err := form.Validate(decoded(t, []byte(read(t, "columns.yaml")))); err != nil {
		t.Error(err)
	}
	all := read(t, "all-keys.yaml")
	for _, text := range []string{all, read(t, "one-upstream.yaml")} {
		if err := form.Validate(decoded(t, []byte(text))); err != nil {
			t.Error(err)
		}
	}
	for _, c := range [][2]string{{"take: {calls: 1}", "taken: {calls: 1}"},
		{"unit: requests", "unit: request"}, {"lapse: charge", "lapse: keep"},
		{"kind: throttled", "kind: slow"}, {"cost: {daily: 2}", "cost: {daily: -2}"},
		{"as: seconds", "as: minutes"}, {"status: official", "status: sure"},
		{"PUT /v1/put", "put /v1/put"}} {
		text := strings.Replace(all, c[0], c[1], 1)
		if text == all || form.Validate(decoded(t, []byte(text))) == nil {
			t.Errorf("the schema takes %s", c[1])
		}
	}
}

// TestNoAPIIsSpecial: what an API is like is said by its list, and not in Go.
func TestNoAPIIsSpecial(t *testing.T) {
	for _, dir := range strings.Fields(". answer formula graphql") {
		files, err := filepath.Glob(filepath.Join(dir, "*.go"))
		must(t, err)
		for _, file := range files {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			data, err := os.ReadFile(file)
			must(t, err)
			for _, name := range strings.Fields("youtube anthropic openai shopify") {
				if strings.Contains(strings.ToLower(string(data)), name) {
					t.Errorf("%s speaks of %s", file, name)
				}
			}
		}
	}
}
