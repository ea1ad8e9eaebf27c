package quotabudget_test

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"quotabudget/internal/config"
)

var (
	keyRow  = regexp.MustCompile("(?m)^\\| `([a-z_.\\[\\]]+)` \\|")
	word    = regexp.MustCompile(`"([a-z][a-z_]*)"`)
	unknown = regexp.MustCompile(`unknown key "([a-z_]+)"`)
)

// The page on configuration has every key that the programs know, and no other.
func TestEveryKeyIsDocumented(t *testing.T) {
	documented, example := make(map[string]bool), read(t, "quota.example.yaml")
	sections := map[string]bool{"": true}
	for _, row := range keyRow.FindAllStringSubmatch(read(t, "docs/configuration.md"), -1) {
		key := strings.TrimSuffix(row[1], "[]")
		documented[key] = true
		if at := strings.LastIndexByte(row[1], '.'); at >= 0 {
			sections[row[1][:at]] = true
		}
	}
	var words []string // in quotes in the sources: the keys are among them
	sources := slices.Concat(glob(t, "internal/config/*.go"), glob(t, "internal/limit/rules/*.go"))
	for _, file := range sources {
		for _, w := range word.FindAllStringSubmatch(read(t, file), -1) {
			words = append(words, w[1])
		}
	}
	slices.Sort(words)
	words = slices.Compact(words)
	for _, section := range slices.Sorted(maps.Keys(sections)) {
		if !slices.Contains(refused(t, section, []string{"nonsense"}), "nonsense") {
			continue // any key is taken there, or read in a way of its own
		}
		no := refused(t, section, words)
		for _, name := range words {
			key := strings.TrimPrefix(section+"."+name, ".")
			if known := !slices.Contains(no, name); known != documented[key] {
				t.Errorf("%s: known to the programs %v, on the page %v",
					key, known, documented[key])
			}
			if documented[key] && !strings.Contains(example, name+":") {
				t.Errorf("quota.example.yaml has no %s", key)
			}
			delete(documented, key)
		}
	}
	for key := range documented {
		if !strings.HasPrefix(key, "credentials[].api_key.") {
			t.Errorf("the page has a key %s, which no program knows", key)
		}
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
	for row := range strings.Lines(table) {
		first, _, _ := strings.Cut(strings.TrimPrefix(row, "|"), "|")
		for _, v := range variable.FindAllStringSubmatch(first, -1) {
			named[v[1]] = true
		}
	}
	if !maps.Equal(want, named) {
		t.Errorf("the programs read %v, the page has %v",
			slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(named)))
	}
}

// refused are those of some words that are no keys of a section such as credentials[].pace.
func refused(t *testing.T, section string, words []string) (no []string) {
	t.Helper()
	for some := range slices.Chunk(words, 90) { // no more problems are reported at once than 100
		text, indent := "", ""
		for _, name := range strings.Split(section, ".") {
			if name == "" {
				continue
			}
			if list, isList := strings.CutSuffix(name, "[]"); isList {
				text += indent + list + ":\n" + indent + "  -\n"
				indent += "    "
			} else {
				text += indent + name + ":\n"
				indent += "  "
			}
		}
		for _, name := range some {
			text += indent + name + ":\n"
		}
		file := filepath.Join(t.TempDir(), "quota.yaml")
		must(t, os.WriteFile(file, []byte(text), 0o600))
		_, err := config.Load(t.Context(), file, func(string) string { return "" })
		if err == nil {
			continue
		}
		for _, m := range unknown.FindAllStringSubmatch(err.Error(), -1) {
			no = append(no, m[1])
		}
	}
	return no
}
