package quotabudget_test

import (
	"encoding/json"
	"fmt"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/standin"
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
	for name, help := range fullManual(t) {
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

// jsonConfig has something in each part; %s is a zone in which it is about noon, so that there is a
// day ahead.
const jsonConfig = `credentials:
  - name: key1
    api_key: {env: YOUTUBE_API_KEY}
    service_account: {file: reader.json, endpoint: "%[3]s"}
    project: p1
    limits:
      - {bucket: default, units: 60, headroom: 5, window: 24h}
      - {bucket: default, units: 60, headroom: 5, window: day, timezone: %[1]s}
      - {bucket: default, units: 600, window: 120h}
      - {bucket: search_list, units: 20, window: 1h, mode: observe}
    pace: {curve: even, slack: 100%%}
    when_unreachable: {open: [youtube.videos.list]}
  - name: key2
    api_key: {file: key}
    service_account: {file: reader.json}
    limits: [{bucket: default, units: 1, window: 1h},
      {bucket: default, per: label:team, units: 1, window: 1h}]
    mode: observe
  - name: key3
    upstream: anthropic
    api_key: {file: key}
    admin_key: {file: key}
    limits: [{bucket: output, units: 8000, window: 1m, across: all}]
upstreams: {anthropic: {endpoint: "%[4]s"}}
ingest:
  credential: key1
  regions: [US, GB, DE]
  pages: 4
  schedule: "* * * * *"
  weights: {US: 3}
  priorities: {GB: 1}
  floors: {DE: 4}
  jobs:
    - {name: asia, regions: [IN], schedule: "30 */6 * * *", timezone: Asia/Kolkata, pages: 2}
jobs:
  - {name: backfill, command: [sh, -c, "exit 0"], schedule: "@daily", credential: key2, pace: none,
     cost: {bucket: default, units: 1}, directory: /srv, user: nobody, environment: {A: b}}
  - {name: ping, url: "http://127.0.0.1:9000/", success: [200], schedule: "@daily", credential: key1, jitter: 1s,
     cost: {method: videos.list, count: 3}}
  - {name: nightly, elsewhere: /etc/crontab, schedule: "@daily", credential: key1, settle: report,
     cost: {bucket: default, units: 3}}
  - {name: capped, command: [sh], schedule: "@daily", credential: key1, max: 9,
     cost: {bucket: default, units: 3}}
notify: {command: [/bin/cat], at: [50%%]}
serve:
  hosts: [board.lan]
  trusted_proxies: [10.0.0.0/8]
  keys: [{name: acme-1, organisation: acme, tier: gold, hash: "sha256:%[2]s"}]
  limits:
    - {name: a, per: client, route: GET /v1/search, requests: 6, window: 1m, tiers: {gold: 60}}
  policies: [{name: b, requests: 5, window: 10s}]
`

// jsonStory has each command print all that it can. $id is the newest reservation.
var jsonStory = strings.Fields(strings.ReplaceAll(strings.TrimSpace(`
quotactl version
quotactl notify test
ingestor version
quotactl config check
quotactl config init
quotactl costs
quotactl costs anthropic.messages.create
quotactl costs check list.yaml
quotactl costs import feed.json --into prices.yaml
quotactl costs test list.yaml --request request.http
quotactl costs test list.yaml --request request.http --response response.http
quotactl costs test list.yaml --request request.http --response refused.http
ingestor once --region US,GB
ingestor once --region US
ingestor report freshness
ingestor jobs
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
quotactl settle $id default=8
quotactl settle $id default=8
quotactl reserve 6 --ttl 1h
quotactl release $id
quotactl explain --units 50
quotactl adjust --bucket default --units 1 --reason x --by me --id adjusted
quotactl adjust --bucket default --units 1 --reason x --by me --id adjusted
quotactl adjust --bucket default --units -1 --reason x --by me --dry-run
quotactl reconcile --lag 0s
quotactl reconcile --lag 0s --credential key3
quotactl limits import --credential key1
quotactl log
quotactl log --by job
quotactl spend --units 55 --label job=x
quotactl log --denied
quotactl report observe --credential key2
quotactl report chargeback --by job --month $month
quotactl status
quotactl prove
quotactl forecast
ingestor plan --from 2026-11-01 --days 2 --fail-over 10%
ingestor plan --from 2026-11-01 --days 2 --regions US --pages 1 --schedule @daily --suggest
ingestor plan --from 2026-11-01 --days 1 --stagger 0s
ingestor plan --from 2026-11-01 --days 1 --credential key2
quotactl spend --units 1 --label job=nightly --label run=a
quotactl spend --units 1 --label job=nightly --label run=b
quotactl spend --units 1 --label job=nightly --label run=c
ingestor plan --days 1
quotactl import crontab crontab --timezone UTC --credential key1
quotactl suspend --bucket default --reason x --by me
quotactl status
quotactl forecast
ingestor once --region FR
quotactl resume --bucket default
ingestor once
ingestor purge --older-than 30d
sqlite3 UPDATE sums SET units = units + 7
quotactl ledger check
quotactl doctor
sqlite3 DELETE FROM entries WHERE total = units
quotactl status
`), " ", "\x00"))

// playJSON runs the story and gathers what is printed, by the sections of the page.
func playJSON(t *testing.T, page map[string]fieldsOf) map[string]fieldsOf {
	t.Helper()
	dir := t.TempDir()
	upstream := httptest.NewServer(cloud(t, dir))
	t.Cleanup(upstream.Close)
	noon := fmt.Sprintf("Etc/GMT%+d", time.Now().UTC().Hour()-12)
	file := filepath.Join(dir, "config.yaml")
	must(t, os.WriteFile(file, fmt.Appendf(nil, jsonConfig, noon,
		strings.Repeat("0f", 32), upstream.URL, billed(t, dir)), 0o600))
	jsonCall(t, dir)
	env := []string{"HOME=" + dir, "QUOTA_STATE_DIR=" + dir, "QUOTA_CONFIG=" + file,
		"YOUTUBE_API_KEY=any", "YOUTUBE_ENDPOINT=" + upstream.URL + "/"}
	seen, id := make(map[string]fieldsOf), ""
	for _, line := range jsonStory {
		words := strings.Split(strings.NewReplacer("$id", id,
			"$month", time.Now().UTC().Format("2006-01")).Replace(line), "\x00")
		if words[0] == "sqlite3" {
			cmd := exec.CommandContext(t.Context(), "sqlite3", filepath.Join(dir, "ledger.db"),
				strings.Join(words[1:], " "))
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Fatalf("%s: %v\n%s", line, err, out)
			}
			continue
		}
		printed := runJSON(t, words, dir, env)
		title := titleOf(page, strings.Join(words, " "))
		if seen[title] == nil {
			seen[title] = make(fieldsOf)
		}
		seen[title].gather("", printed, page[title])
		if words[1] == "reserve" {
			id, _ = printed["reservation"].(string)
		}
	}
	return seen
}

// cloud is a stand-in that tells what others have used, to the service account whose key is in
// reader.json.
func cloud(t *testing.T, dir string) *standin.YouTube {
	t.Helper()
	account, key, err := standin.NewAccountKey("p1", "https://oauth2.googleapis.com/token")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "reader.json"), key, 0o600))
	s := &standin.YouTube{Cloud: standin.Cloud{
		Accounts: []*standin.ServiceAccount{account}}}
	s.Use(s.Yesterday(), "default", 7)
	return s
}

// billed returns the address of a stand-in that has billed another program's tokens.
func billed(t *testing.T, dir string) string {
	t.Helper()
	must(t, os.WriteFile(filepath.Join(dir, "key"), []byte("any"), 0o600))
	s, err := standin.New("anthropic")
	must(t, err)
	yesterday := time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly)
	s.Use(yesterday, "claude-sonnet-4-5", "output_tokens", 5)
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	return server.URL
}

// jsonCall writes a price list, and a call with two answers.
func jsonCall(t *testing.T, dir string) {
	t.Helper()
	list := strings.Replace(read(t, "costs/anthropic.yaml"), "output: min(body.max_tokens, p95)",
		"output: {estimate: 100, most: body.max_tokens}", 1)
	for name, text := range map[string]string{
		"list.yaml": list, "prices.yaml": pricesText, "feed.json": feedText,
		"crontab": "@daily quotactl exec --units 3 -- nightly\n" +
			"@daily quotactl exec --method youtube.videos.list --count 2 -- list.sh\n",
		"request.http": "POST /v1/messages HTTP/1.1\nHost: api.anthropic.com\n\n" +
			`{"model":"claude-next","max_tokens":200}`,
		"response.http": "HTTP/1.1 200 OK\nanthropic-ratelimit-output-tokens-limit: 8000\n" +
			"anthropic-ratelimit-requests-remaining: many\n" +
			"anthropic-ratelimit-output-tokens-remaining: 812\n" +
			"anthropic-ratelimit-output-tokens-reset: 2026-11-22T15:04:05Z\n\n{}",
		"refused.http": "HTTP/1.1 429 Too Many Requests\nretry-after: 30\n\n" +
			`{"error":{"type":"rate_limit_error","message":"slow down"}}`,
	} {
		must(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
}

// runJSON is what a command prints. It may end with any exit code. A last word such as ledger=URL
// is another ledger.
func runJSON(t *testing.T, words []string, dir string, env []string) (printed map[string]any) {
	t.Helper()
	if ledger, ok := strings.CutPrefix(words[len(words)-1], "ledger="); ok {
		words, env = words[:len(words)-1], append(slices.Clone(env), "QUOTA_LEDGER="+ledger)
	}
	args := append([]string{words[1], "-o", "json"}, words[2:]...)
	one := words[0] == "quotactl" && !slices.Contains(several, words[1])
	if one && !slices.Contains(words, "--credential") {
		args = append(args, "--credential", "key1")
	}
	cmd := exec.CommandContext(t.Context(), program(t, words[0]), args...)
	cmd.Dir, cmd.Env = dir, env
	out, _ := cmd.Output()
	if err := json.Unmarshal(out, &printed); err != nil {
		t.Fatalf("%v: %v: %s", words, err, out)
	}
	return printed
}

// several are the commands that show all credentials.
var several = []string{"status", "forecast", "ledger", "config", "version", "costs"}

// pricesText and feedText are a price list and a data set that changes, adds and drops a row of it.
const (
	pricesText = `hosts: [api.example.test]
credential: bearer
sources: {page: {status: official, date: 2026-06, text: the price page}}
split: {model: body.model}
tables:
  price:
    source: page
    columns: [output, input]
    rows:
      a: {input: 1, output: 4}
      b: {input: 1, output: 4}
buckets: {money: {unit: usd/1000000}}
methods:
  x.ask: {route: POST /ask, source: page, take: {money: "price(model, {input: len(body)})"}}
`
	feedText = `[{"id":"prices","models":[
{"id":"a","prices":[{"constraint":{"start_date":"2026-01-01"},"prices":{"input_mtok":2,"output_mtok":8}}]},
{"id":"c","prices":{"input_mtok":2,"output_mtok":8}}]}]`
)
