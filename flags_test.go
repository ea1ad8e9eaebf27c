package quotabudget_test

import (
	"encoding/json"
	"errors"
	"maps"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

var flagLine = regexp.MustCompile(`(?m)^ {2,6}(?:-\w, )?(--[a-z-]+)`)

// The page on commands has every flag of every command. (That it has no other, and every command,
// is in TestDocumentsNameRealCommands.) The help of every command has examples.
func TestEveryFlagIsDocumented(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/commands.md")
	items := jsonItem.FindAllString(page, -1)
	for name, help := range fullManual(t) {
		own, global, _ := strings.Cut(help, "\nGlobal Flags:")
		_, own, _ = strings.Cut(own, "\nFlags:")
		named := regexp.MustCompile("^- (?:`[^`]*`, )?`" + name + "[\\s`]")
		at := slices.IndexFunc(items, named.MatchString)
		if !does(name, help) {
			continue
		}
		if at < 0 {
			t.Errorf("docs/commands.md has no item for %s", name)
			continue
		}
		if !strings.Contains(help, "\nExamples:\n") {
			t.Errorf("%s --help has no examples", name)
		}
		for _, f := range flagLine.FindAllStringSubmatch(own, -1) {
			if f[1] != "--help" && !strings.Contains(items[at], f[1]) {
				t.Errorf("docs/commands.md: %s has a flag %s", name, f[1])
			}
		}
		for _, f := range flagLine.FindAllStringSubmatch(global, -1) {
			if !strings.Contains(page, "`"+f[1]) {
				t.Errorf("docs/commands.md: every command has a flag %s", f[1])
			}
		}
	}
}

// expectSame checks that a page lists exactly the known names.
func expectSame(t *testing.T, page string, listed, known map[string]bool) {
	t.Helper()
	for _, name := range append(slices.Sorted(maps.Keys(listed)), slices.Sorted(maps.Keys(known))...) {
		if listed[name] != known[name] {
			t.Errorf("%s: %s: is on the page: %v, is in the programs: %v", page, name, listed[name],
				known[name])
		}
	}
}

// groups returns the texts that the first group of a pattern matches.
func groups(pattern, text string) map[string]bool {
	all := map[string]bool{}
	for _, match := range regexp.MustCompile(pattern).FindAllStringSubmatch(text, -1) {
		all[match[1]] = true
	}
	return all
}

// TestEveryExitCodeIsDocumented checks that the page on commands lists exactly the exit codes of
// the programs.
func TestEveryExitCodeIsDocumented(t *testing.T) {
	known := groups(`\bExit[A-Z]\w* *= (\d+)`, sources(t))
	known["0"] = true
	expectSame(t, "docs/commands.md", groups(`(?m)^- (\d+): `, read(t, "docs/commands.md")), known)
}

// TestManualHasNoGaps checks that each page of a program's manual belongs to a command, that each
// flag has help, and that the help fits a terminal of 80 columns.
func TestManualHasNoGaps(t *testing.T) {
	t.Parallel()
	all := fullManual(t)
	for _, program := range []string{"quotactl", "ingestor"} {
		var pages map[string]any
		must(t, yaml.Unmarshal([]byte(read(t, "cmd/"+program+"/manual.yaml")), &pages))
		for page := range pages {
			if all[program+" "+page] == "" && page != program {
				t.Errorf("the manual of %s has a page of no command: %s", program, page)
			}
		}
	}
	bare := regexp.MustCompile(`(?m)^ {2,6}(?:-\w, )?--[a-z-]+(?: \S+)?$`)
	for name, help := range all {
		_, list, _ := strings.Cut(help, "\nFlags:")
		if flags := bare.FindAllString(list, -1); flags != nil {
			t.Errorf("%s --help does not explain%s", name, strings.Join(flags, ","))
		}
		for line := range strings.Lines(help) {
			if line = strings.TrimSuffix(line, "\n"); utf8.RuneCountInString(line) > 80 {
				t.Errorf("%s --help is wider than 80 columns: %s", name, line)
			}
		}
	}
}

// TestOtherProgram: a command that only the other program has is refused with that program's name.
func TestOtherProgram(t *testing.T) {
	t.Parallel()
	programs := map[string]string{"quotactl": "ingestor", "ingestor": "quotactl"}
	all := fullManual(t)
	for name := range all {
		words := strings.Fields(name)
		if len(words) != 2 {
			continue
		}
		other := programs[words[0]]
		if _, both := all[other+" "+words[1]]; both {
			continue
		}
		out, err := exec.CommandContext(t.Context(), program(t, other), words[1]).CombinedOutput()
		ended, ok := errors.AsType[*exec.ExitError](err)
		if !ok || ended.ExitCode() != 64 || !strings.Contains(string(out), "it is "+name+"\n") {
			t.Errorf("%s %s: %v, %s", other, words[1], err, out)
		}
	}
}

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
	expectSame(t, "docs/configuration.md", documented, known)
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
	const variable = "[\"`]((?:QUOTA|YOUTUBE|XDG)_[A-Z_]+|NO_COLOR|TERM|HOME|TZ)[\"`]"
	_, table, _ := strings.Cut(read(t, "docs/configuration.md"), "\n## Environment\n")
	table, _, _ = strings.Cut(table, "\n## ")
	named := make(map[string]bool)
	for _, item := range jsonItem.FindAllString(table, -1) {
		names, _, _ := strings.Cut(item, ": ")
		maps.Copy(named, groups(variable, names))
	}
	expectSame(t, "docs/configuration.md", named, groups(variable, sources(t)))
}

var (
	messageItem = regexp.MustCompile("(?m)^- ((?:`[^`]*`|[^`:])*):")
	varies      = regexp.MustCompile(`…|: |\bdefault\b.*|\bkey1\b|YOUTUBE_API_KEY|\bGB\b|\bpace\b`)
	concat      = regexp.MustCompile("[\"`]\\s*\\+\\s*[\"`]")
)

// foreign are messages of others that the programs pass on.
var foreign = map[string]bool{"file is not a database": true, "address already in use": true}

// What the page on troubleshooting quotes is what the programs say.
func TestMessagesAreReal(t *testing.T) {
	said := sources(t)
	rows := messageItem.FindAllStringSubmatch(read(t, "docs/troubleshooting.md"), -1)
	if len(rows) < 30 {
		t.Fatalf("%d rows", len(rows))
	}
	for _, row := range rows {
		for _, message := range codeSpan.FindAllStringSubmatch(row[1], -1) {
			for _, part := range varies.Split(message[1], -1) {
				part = strings.Join(strings.Fields(part), " ")
				if !foreign[part] && !strings.Contains(said, part) {
					t.Errorf("docs/troubleshooting.md: no program says %q, of %q", part, message[1])
				}
			}
		}
	}
}

// sources is the text of the programs, with strings that are put together in one piece.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	for _, path := range append(files(t, "cmd/", ".go"), files(t, "internal/", ".go")...) {
		if !strings.HasSuffix(path, "_test.go") {
			all.WriteString(read(t, path))
		}
	}
	return concat.ReplaceAllString(all.String(), "")
}
