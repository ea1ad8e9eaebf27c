package quotabudget_test

import (
	"cmp"
	"encoding/json"
	"maps"
	"regexp"
	"strings"
	"testing"
	"time"
)

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
	if name, fields, found := strings.Cut(text, ":"); found && strings.HasPrefix(name, "`") {
		parent, text = strings.Trim(name, "` ")+".", fields
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
		like, isLike := strings.CutPrefix(kind, "as ")
		if !isLike {
			continue
		}
		delete(f, field)
		for other, kind := range maps.Clone(f) {
			if member, ok := strings.CutPrefix(other, like+"."); ok {
				f[field+"."+member] = kind
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

// titleOf is the heading that names a command.
func titleOf(page map[string]fieldsOf, command string) string {
	found, longest := command, 0
	for title := range page {
		for name := range strings.SplitSeq(title, ", ") {
			begins := command == name || strings.HasPrefix(command, name+" ")
			if begins && len(name) > longest { // costs test, and not costs
				found, longest = title, len(name)
			}
		}
	}
	return found
}
