package quotabudget_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/youtube/youtubetest"
)

// The page on JSON has every field that a command prints, with its type, and no other.
func TestEveryJSONFieldIsDocumented(t *testing.T) {
	t.Parallel()
	page := parseJSONPage(t)
	seen := playJSON(t, page)
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
	for _, span := range codeSpan.FindAllString(read(t, "docs/json.md"), -1) {
		for _, name := range regexp.MustCompile(`\w+`).FindAllString(span, -1) {
			named[name] = true
		}
	}
	for _, pattern := range []string{"cmd/*/*.go", "internal/cli/*.go"} {
		for _, file := range glob(t, pattern) {
			if strings.HasSuffix(file, "_test.go") {
				continue
			}
			for _, tag := range regexp.MustCompile(`json:"([a-z_]+)`).FindAllStringSubmatch(read(t, file), -1) {
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
		leaf := strings.Contains(name, " ") && section(help) == "" && !strings.Contains(name, " completion")
		if leaf && !strings.HasSuffix(name, " help") && !strings.Contains(text, name) {
			t.Errorf("docs/json.md does not name %s", name)
		}
	}
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
	jsonRow   = regexp.MustCompile("(?m)^\\| (`[^|]+`) \\| ([^|]+) \\|")
	codeSpan  = regexp.MustCompile("`([^`]+)`")
	reference = regexp.MustCompile("^as `([^`]+)`$")
)

// parseJSONPage reads the tables below each heading. A heading may name several commands, and a
// type may be that of another field: "as `windows[]`".
func parseJSONPage(t *testing.T) map[string]fieldsOf {
	t.Helper()
	page := make(map[string]fieldsOf)
	for _, part := range strings.Split(read(t, "docs/json.md"), "\n## ")[1:] {
		title, body, _ := strings.Cut(part, "\n")
		fields := make(fieldsOf)
		for _, row := range jsonRow.FindAllStringSubmatch(body, -1) {
			parent := ""
			for _, span := range codeSpan.FindAllStringSubmatch(row[1], -1) {
				name, beside := strings.CutPrefix(span[1], ".")
				if beside {
					name = parent + name
				}
				parent = name[:strings.LastIndexByte(name, '.')+1]
				fields[name] = row[2]
			}
		}
		for field, kind := range fields {
			like := reference.FindStringSubmatch(kind)
			if like == nil {
				continue
			}
			delete(fields, field)
			for other, kind := range maps.Clone(fields) {
				if rest, ok := strings.CutPrefix(other, like[1]+"."); ok {
					fields[field+"."+rest] = kind
				} else if other == like[1] {
					fields[field] = kind
				}
			}
		}
		if len(fields) > 0 {
			page[title] = fields
		}
	}
	return page
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
		if kinds[path] != "map" {
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

// jsonConfig has something in each part; %s is a zone in which it is about noon, so that there is a
// day ahead.
const jsonConfig = `credentials:
  - name: key1
    api_key: {env: YOUTUBE_API_KEY}
    limits:
      - {bucket: default, units: 60, headroom: 5, window: 24h}
      - {bucket: default, units: 60, headroom: 5, window: day, timezone: %[1]s}
      - {bucket: search_list, units: 20, window: 1h}
    pace: {curve: even, slack: 100%%}
    when_unreachable: {open: [youtube.videos.list]}
  - name: key2
    api_key: {file: key}
    limits: [{bucket: default, units: 1, window: 1h}]
    mode: observe
ingest:
  credential: key1
  regions: [US, GB, DE]
  pages: 4
  schedule: "*/10 * * * *"
  weights: {US: 3}
  priorities: {GB: 1}
  floors: {DE: 4}
  jobs:
    - {name: asia, regions: [IN], schedule: "30 */6 * * *", timezone: Asia/Kolkata, pages: 2}
`

// jsonStory has each command print all that it can. $id is the newest reservation.
var jsonStory = strings.Fields(strings.ReplaceAll(strings.TrimSpace(`
quotactl version
ingestor version
quotactl config check
quotactl config init
quotactl costs
ingestor once --region US,GB
ingestor once --region US
ingestor report freshness
ingestor chart
ingestor chart US
ingestor search robot
ingestor video -- --MfRhtyafY
quotactl spend --units 1 --label job=x --id once
quotactl spend --units 1 --label job=x --id once
quotactl spend --units 1 --dry-run
quotactl spend --units 2 --credential key2
quotactl spend --method youtube.videos.list ledger=redis://127.0.0.1:1/0
quotactl reserve 6 --ttl 1h --note x
quotactl reservations
quotactl draw $id 2
quotactl commit $id --units 1
quotactl reserve 6 --ttl 1h
quotactl release $id
quotactl explain --units 50
quotactl log
quotactl log --by job
quotactl status
quotactl forecast
ingestor plan --from 2026-11-01 --days 2 --fail-over 10%
ingestor plan --from 2026-11-01 --days 2 --regions US --pages 1 --schedule @daily --suggest
ingestor plan --from 2026-11-01 --days 1 --stagger 0s
quotactl suspend --bucket default
quotactl forecast
ingestor once --region FR
quotactl resume --bucket default
ingestor once
ingestor purge --older-than 30d
damage
quotactl ledger check
`), " ", "\x00"))

// playJSON runs the story and gathers what is printed, by the sections of the page.
func playJSON(t *testing.T, page map[string]fieldsOf) map[string]fieldsOf {
	t.Helper()
	upstream := httptest.NewServer(&youtubetest.Server{})
	t.Cleanup(upstream.Close)
	dir := t.TempDir()
	noon := fmt.Sprintf("Etc/GMT%+d", time.Now().UTC().Hour()-12)
	if err := os.WriteFile(filepath.Join(dir, "config.yaml"), fmt.Appendf(nil, jsonConfig, noon), 0o600); err != nil {
		t.Fatal(err)
	}
	seen, id := make(map[string]fieldsOf), ""
	for _, line := range jsonStory {
		words := strings.Split(strings.ReplaceAll(line, "$id", id), "\x00")
		if words[0] == "damage" {
			sql := "UPDATE buckets SET total = total + 7"
			if out, err := exec.CommandContext(t.Context(), "sqlite3", filepath.Join(dir, "ledger.db"), sql).CombinedOutput(); err != nil {
				t.Fatalf("sqlite3: %v\n%s", err, out)
			}
			continue
		}
		env := []string{"HOME=" + dir, "QUOTA_STATE_DIR=" + dir, "QUOTA_CONFIG=" + filepath.Join(dir, "config.yaml"),
			"YOUTUBE_API_KEY=any", "YOUTUBE_ENDPOINT=" + upstream.URL + "/"}
		if ledger, ok := strings.CutPrefix(words[len(words)-1], "ledger="); ok {
			words, env = words[:len(words)-1], append(env, "QUOTA_LEDGER="+ledger)
		}
		if words[0] == "quotactl" && !slices.Contains(words, "--credential") && !several[words[1]] {
			words = append(words, "--credential", "key1")
		}
		args := append([]string{words[1], "-o", "json"}, words[2:]...)
		cmd := exec.CommandContext(t.Context(), program(t, words[0]), args...)
		cmd.Dir, cmd.Env = dir, env
		out, _ := cmd.Output()
		var printed any
		if err := json.Unmarshal(out, &printed); err != nil {
			t.Fatalf("%v: %v: %s", words, err, out)
		}
		title := titleOf(page, strings.Join(words, " "))
		if seen[title] == nil {
			seen[title] = make(fieldsOf)
		}
		seen[title].gather("", printed, page[title])
		if object, ok := printed.(map[string]any); ok && words[1] == "reserve" {
			id, _ = object["reservation"].(string)
		}
	}
	return seen
}

// several are the commands that show all credentials.
var several = map[string]bool{"status": true, "forecast": true, "ledger": true, "config": true, "version": true, "costs": true}

// titleOf is the heading that names a command.
func titleOf(page map[string]fieldsOf, command string) string {
	for title := range page {
		for name := range strings.SplitSeq(title, ", ") {
			if command == name || strings.HasPrefix(command, name+" ") {
				return title
			}
		}
	}
	return command
}
