package quotabudget_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// The page on JSON has every field that a command prints, with its type, and no other. Keys of the
// configuration are on their own page.
func TestEveryJSONFieldIsDocumented(t *testing.T) {
	t.Parallel()
	page := parseJSONPage(t)
	seen := playJSON(t, page)
	keys := make(map[string]bool) // of the configuration, which config check prints
	for _, key := range configurationKeys(t) {
		keys[strings.ReplaceAll(key, "[]", "")] = true
	}
	for command, fields := range page {
		if seen[command] == nil {
			t.Errorf("%s: never run", command)
		}
		for field, kind := range fields {
			if _, ok := seen[command][field]; !ok && !strings.HasPrefix(kind, "object") {
				t.Errorf("%s: no output has %s", command, field)
			}
		}
		for field, example := range seen[command] {
			kind, ok := fields[field]
			if !ok && command == "quotactl config check" && keys[strings.ReplaceAll(field, "[]", "")] {
				continue
			}
			if !ok {
				t.Errorf("%s: the page has no %s, which is %s", command, field, example)
			} else if !fits(example, kind) {
				t.Errorf("%s: %s is %s, and not %s", command, field, example, kind)
			}
		}
	}
}

// A field that no test has seen, such as one that is left out when empty, must be on the page, too.
func TestEveryJSONTagIsDocumented(t *testing.T) {
	named := make(map[string]bool)
	text := read(t, "docs/json.md") + " `" + strings.Join(configurationKeys(t), " ") + "`"
	for _, span := range codeSpan.FindAllString(text, -1) {
		for _, name := range regexp.MustCompile(`\w+`).FindAllString(span, -1) {
			named[name] = true
		}
	}
	for _, pattern := range strings.Fields("cmd/*/*.go internal/cli/*.go internal/config/*.go " +
		"internal/plan/*.go internal/share/*.go") {
		for _, file := range glob(t, pattern) {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, tag := range jsonTag.FindAllStringSubmatch(read(t, file), -1) {
				if !named[tag[1]] {
					t.Errorf("docs/json.md has no field %s of %s", tag[1], file)
				}
			}
		}
	}
}

// Every command that prints a result has a section.
func TestEveryCommandHasItsJSON(t *testing.T) {
	t.Parallel()
	text := read(t, "docs/json.md")
	for name, help := range learned(t) {
		if does(name, help) && !strings.Contains(text, name) {
			t.Errorf("docs/json.md does not name %s", name)
		}
	}
}

// does reports whether a command does something of its own: it has none below it, and no shell or
// reader of help asks for it.
func does(name, help string) bool {
	return strings.Contains(name, " ") && section(help) == "" &&
		!strings.Contains(name, " completion") && !strings.HasSuffix(name, " help")
}

func glob(t *testing.T, pattern string) []string {
	t.Helper()
	files, err := filepath.Glob(pattern)
	if err != nil || len(files) == 0 {
		t.Fatalf("no files %s: %v", pattern, err)
	}
	return files
}

// fieldsOf are the types of fields by their paths, or examples of their values.
type fieldsOf map[string]string

var (
	jsonTag  = regexp.MustCompile(`json:"([a-z_]+)`)
	jsonItem = regexp.MustCompile(`(?m)^- (?:.*\n)(?:  .*\n)*`)
	remark   = regexp.MustCompile(`\([^()]*\)`)
	ofType   = regexp.MustCompile("^((?:string|number|boolean|time|map|object)(?: or null)?) `")
	codeSpan = regexp.MustCompile("`([^`]+)`")
	sameAs   = regexp.MustCompile(" as (?:in the whole plan|`([^`]+)`)$")
)

// parseJSONPage reads the items below each heading. A heading may name several commands. An item is
// an object with its fields, by type, or those of the whole output; remarks are in brackets.
func parseJSONPage(t *testing.T) map[string]fieldsOf {
	t.Helper()
	page := make(map[string]fieldsOf)
	for _, part := range strings.Split(read(t, "docs/json.md"), "\n## ")[1:] {
		title, body, _ := strings.Cut(part, "\n")
		fields := make(fieldsOf)
		for _, item := range jsonItem.FindAllString(body+"\n", -1) {
			fields.item(t, strings.Join(strings.Fields(item[2:]), " "))
		}
		fields.resolve()
		if len(fields) > 0 {
			page[title] = fields
		}
	}
	return page
}

// item adds the fields of one item: "`limits[]`: string `bucket`, `window`; number `units`".
func (f fieldsOf) item(t *testing.T, text string) {
	for remark.MatchString(text) {
		text = strings.TrimSpace(remark.ReplaceAllString(text, ""))
	}
	parent := ""
	if name, rest, found := strings.Cut(text, ":"); found && strings.HasPrefix(name, "`") {
		parent, text = strings.Trim(name, "` ")+".", rest
	}
	for part := range strings.SplitSeq(text, ";") {
		part = strings.TrimSpace(part)
		kind, same := ofType.FindStringSubmatch(part), sameAs.FindStringSubmatch(part)
		if kind == nil && same == nil {
			t.Errorf("docs/json.md: no type in %q", part)
			continue
		}
		if same != nil {
			part = strings.TrimSuffix(part, same[0])
		}
		for _, span := range codeSpan.FindAllStringSubmatch(part, -1) {
			if same == nil {
				f[parent+span[1]] = kind[1]
			} else {
				f[parent+span[1]] = "as " + cmp.Or(same[1], span[1])
			}
		}
	}
}

// resolve replaces a field that is "as" another one by that one's fields.
func (f fieldsOf) resolve() {
	for field, kind := range maps.Clone(f) {
		like, is := strings.CutPrefix(kind, "as ")
		if !is {
			continue
		}
		delete(f, field)
		for other, kind := range maps.Clone(f) {
			if rest, ok := strings.CutPrefix(other, like+"."); ok {
				f[field+"."+rest] = kind
			} else if other == like {
				f[field] = kind
			}
		}
	}
}

// fits reports whether a value is of a type.
func fits(value, kind string) bool {
	_, err := time.Parse(`"`+time.RFC3339+`"`, value)
	switch kind, null := strings.CutSuffix(kind, " or null"); {
	case value == "null":
		return null
	case kind == "time":
		return err == nil && len(value) == len(`"2026-11-22T08:00:00.000000Z"`)
	case kind == "string":
		return err != nil && value[0] == '"'
	case kind == "boolean":
		return value == "true" || value == "false"
	case kind == "number":
		return strings.Trim(value, "-+.0123456789e") == ""
	case kind == "map":
		return value[0] == '{'
	}
	return false
}

// gather adds an example for each path below a value: not null, if there is one.
func (f fieldsOf) gather(path string, value any, kinds fieldsOf) {
	switch value := value.(type) {
	case map[string]any:
		if !strings.HasPrefix(kinds[path], "map") {
			for key, below := range value {
				f.gather(strings.TrimPrefix(path+"."+key, "."), below, kinds)
			}
			return
		}
	case []any:
		for _, item := range value {
			f.gather(path+"[]", item, kinds)
		}
		return
	}
	if text, _ := json.Marshal(value); f[path] == "" || f[path] == "null" {
		f[path] = string(text)
	}
}
