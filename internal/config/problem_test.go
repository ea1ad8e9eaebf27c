package config

import (
	"errors"
	"os"
	"slices"
	"strings"
	"testing"
)

// oneLimit returns a file with one limit.
func oneLimit(text string) string {
	return "credentials:\n  - name: a\n    limits:\n      - {" + text + "}\n"
}

var problems = []struct{ file, want string }{
	{"igest: {}", `1: unknown key "igest" (did you mean ingest?)`},
	{"ledger: sqlite:a\nledger: sqlite:b", "2: ledger is already set on line 1"},
	{"- a", "1: must be key: value pairs"},
	{"a", "1: must be key: value pairs"},
	{"? [a]\n: b", "1: a key must be a word"},
	{"ledger: 7", "1: ledger: malformed: the ledger's URL: write sqlite:"},
	{"ledger:", "1: ledger: is empty: write text"},
	{"ledger: ''", "1: ledger: malformed: the ledger's URL: write sqlite:///path/ledger.db,"},
	{"ledger: {a: b}", "1: ledger: must be text (in quotes)"},
	{"\nledger: mysql://u:hunter2@h/d", "2: ledger: malformed"},
	{"ledger: 'redis://u:hunter2@h:x y/d'", "1: ledger: malformed"},
	{"catalog: redis://h:1", "1: catalog: write sqlite:///path/catalog.db"},
	{"costs: nope.yaml", "nope.yaml: no such file"},
	{"costs: /dev/zero", "1: costs: /dev/zero: is a device, not a file"},
	{"costs: {file: '.'}", "1: costs: "},
	{"costs: {profile: singel-pool}", `1: costs.profile: no profile "singel-pool" in the price list: it has`},
	{"youtube: {endpoint: 'ftp://h/'}", "1: youtube.endpoint: write https://HOST/, or"},
	{"youtube: {endpoint: 'https://h/?key=hunter2'}",
		"1: youtube.endpoint: write scheme, host and path alone: a key is never"},
	{"youtube: {endpoint: 'https://u:hunter2@h/'}",
		"1: youtube.endpoint: write scheme, host and path alone: a key is never"},
	{"credentials: [{name: a, upstream: antropic}]",
		`1: credentials.upstream: no upstream "antropic" in the price list (did`},
	{"credentials: [{name: a, upstream: anthropic, limits: [{bucket: default, units: 1, window: 1h}]}]",
		`1: limits.bucket: no method draws on "default"`},
	{"credentials: [{name: a, upstream: anthropic, when_unreachable: {open: [youtube.videos.list]}}]",
		`1: when_unreachable.open: method has no price: "youtube.videos.list"`},
	{"credentials: [{name: a, upstream: anthropic, limits: [{bucket: output, units: 1, window: 1h, " +
		"across: some}]}]", "1: limits.across: must be all, for the sum of a bucket's parts"},
	{"credentials: [{name: a, upstream: anthropic, limits: [{bucket: output/Opus, units: 1, " +
		"window: 1h}]}]", `1: limits.bucket: "output/Opus" is not a bucket: after the / come up to`},
	{"credentials: [{name: a, upstream: anthropic, limits: [{bucket: money/opus-4, units: 1, " +
		"window: 1h}]}]", "1: limits.bucket: money has no parts: write money"},
	{"credentials: [{name: a, upstream: anthropic, limits: [{bucket: output/opus-4, units: 1, " +
		"window: 1h, across: all}]}]", "1: limits.across: bucket output/opus-4 has no parts: leave it out"},
	{"credentials: [{name: a, upstream: anthropic, limits: [{bucket: output/a, units: 1, " +
		"window: 1h}, {bucket: output/a, units: 2, window: 1h}]}]", "output/a 1h is limited twice"},
	{oneLimit("bucket: default, units: 1, window: 1h, across: all"),
		"4: limits.across: bucket default has no parts: leave it out"},
	{"notify: {at: [80%]}", "1: notify: url, mail or command is missing"},
	{"notify: {url: 'https://u:hunter2@h/'}", "1: notify.url: write http:// or https:// and a host"},
	{"notify: {url: 'https://h/', at: [80, 0%]}", "1: notify.at: write a percentage from 1% to 100%"},
	{"notify: {url: 'https://h/', on: [dry]}", "1: notify.on: "},
	{"notify: {mail: -odf@h}", "1: notify.mail: write only the address, such as ops@example.org"},
	{"notify: {mail: a@h, secret: {env: A}}", "1: notify.secret: needs url, which is missing"},
	{"notify: {url: 'https://h/', secret: whsec_hunter2}", "1: notify.secret: "},
	{"notify: {command: ['', a]}", "1: notify.command: name a program"},
	{"upstreams: {antropic: {endpoint: 'https://h/'}}", `1: upstreams.antropic: no upstream "antropic" in the price list (did`},
	{"upstreams: {anthropic: {}}", "1: upstreams.anthropic: endpoint is missing"},
	{"upstreams: {anthropic: {endpoint: 'http://h/'}}", "http:// would send the API key"},
	{"upstreams: [anthropic]", "1: upstreams: must be key: value pairs"},
	{"credentials: a", "1: credentials: must be a list, such as [a, b]"},
	{"credentials: [a]", "1: credentials: must be key: value pairs"},
	{"credentials: [{mode: enforce}]", "1: credentials: name is missing"},
	{"credentials: [{name: A B}]", `1: credentials.name: "A B" is not a name: use up to 63 lower-case`},
	{"credentials:\n- name: a\n- name: a", "3: credentials.name: two credentials are named a"},
	{"credentials: [{name: a, mode: enforced}]",
		"1: credentials.mode: must be enforce or observe (did you mean enforce?)"},
	{"credentials: [{name: a, when_unreachable: open}]",
		"1: credentials.when_unreachable: must be key: value pairs"},
	{"credentials: [{name: a, when_unreachable: {open: [videos.list]}}]",
		"did you mean youtube.videos.list?"},
	{"credentials: [{name: a, when_unreachable: {open: youtube.videos.list}}]",
		"1: when_unreachable.open: must be a list, such as [a, b]"},
	{"credentials: [{name: a, limits: []}]", "1: credentials.limits: must be a list of at least one limit: leave it"},
	{oneLimit("units: 1, window: 24h"), "4: credentials.limits: bucket is missing"},
	{oneLimit("bucket: default, window: 24h"), "4: credentials.limits: units is missing"},
	{oneLimit("bucket: default, units: 1"), "4: credentials.limits: window is missing"},
	{oneLimit("bucket: serch_list, units: 1, window: 1h"),
		`4: limits.bucket: no method draws on "serch_list" (did you mean`},
	{oneLimit("bucket: default, units: 1, window: 0"), "4: limits.window: a window of 0 is out of range: 1ms to 8784h"},
	{oneLimit("bucket: default, units: 1, window: year"), `4: limits.window: "year" is not a window: write minute, hour, day,`},
	{oneLimit("bucket: default, units: 1, window: 24"), `4: limits.window: "24" is not a window: write minute, hour, day, week,`},
	{oneLimit("bucket: default, units: 1, window: 24h, timezone: UTC"),
		"4: limits.window: a window of 24h has no timezone: only minute, hour,"},
	{oneLimit("bucket: default, units: 1, window: day, timezone: Mars/X"),
		`4: limits.timezone: "Mars/X" is not an IANA time zone such as`},
	{oneLimit("bucket: default, units: 1, window: day, timezone: Local"),
		`4: limits.timezone: "Local" is not an IANA time zone such as`},
	{oneLimit("bucket: default, units: -1, window: 1h"), "4: limits.units: must be 0 to 1000000000000"},
	{oneLimit("bucket: default, units: 1.5, window: 1h"), "4: limits.units: must be a whole number"},
	{oneLimit("bucket: default, units: '1', window: 1h"), "4: limits.units: must be a whole number in decimal digits, without"},
	{oneLimit("bucket: default, units: 99999999999999, window: 1h"),
		"4: limits.units: must be 0 to 1000000000000"},
	{oneLimit("bucket: default, units: 5, headroom: 6, window: 1h"),
		"4: limits.headroom: 6 is more than the 5 units of the limit"},
	{oneLimit("bucket: default, units: 9000000, window: restoring 1/1h"),
		"4: limits.window: default restoring 1/1h of 9000000 units cannot be"},
	{oneLimit("bucket: default, units: 5, window: 1h, headrom: 1"),
		`unknown key "headrom" (did you mean headroom?)`},
	{oneLimit(
		"bucket: default, units: 5, window: 60m}\n      - {bucket: default, units: 6, window: 1h"),
		"5: credentials.limits: default 1h is limited twice"},
	{"ingest: {credential: key1}", `1: ingest.credential: no credential "key1"`},
	{"ingest: {jobs: [{name: a, regions: []}]}", "1: jobs.regions: must list at least one region"},
	{"ingest: {regions: [US, UK]}", `1: ingest.regions: "UK" is not a region: did you mean GB?`},
	{"ingest: {regions: [US, us]}", "1: ingest.regions: US is listed twice"},
	{"ingest: {regions: US}", "1: ingest.regions: must be a list, such as [a, b]"},
	{"ingest: {pages: 0}", "1: ingest.pages: must be 1 to 1000"},
	{"ingest: {parallel: 0}", "1: ingest.parallel: must be 1 to 64"},
	{"ingest: {parallel: 65}", "1: ingest.parallel: must be 1 to 64"},
	{"ingest: {pages: four}", "1: ingest.pages: must be a whole number in decimal digits, without"},
	{"ingest: {regions: [US, '']}", `1: ingest.regions: "" is not a region: write an ISO 3166-1 code of two`},
	{"ingest: {timezone: Berlin}", `1: ingest.timezone: "Berlin" is not an IANA time zone such as`},
	{"ingest: {stagger: 5}", `1: ingest.stagger: "5" is not a duration from 0s to 24h, such as 2m`},
	{"ingest: {schedule: '* * * *'}",
		`1: ingest.schedule: "* * * *" is not a schedule: has 4 fields, not 5:`},
	{"ingest: {schedule: '61 * * * *'}",
		`1: ingest.schedule: "61 * * * *" is not a schedule: minute "61": write`},
	{"ingest: {schedule: '@every 1x'}",
		`1: ingest.schedule: "@every 1x" is not a schedule: after @every write a`},
	{"ingest: {schedule: 'CRON_TZ=Asia/Tokio 0 9 * * *'}", `"Asia/Tokio" is not an IANA time zone`},
	{"ledger: sqlite:a\ncredentials:\n\t- name: a", "3: a tab: YAML is indented with spaces"},
	{"ledger: sqlite:a\ncredentials: [{name: a",
		"2: did not find expected ',' or '}': is a bracket or a quote not closed"},
	{"ledger: \"sqlite:a\n", "found unexpected end of stream: is a bracket or a quote not closed"},
	{"{\"ledger\": \"sqlite:a\", \"inge",
		"is a bracket or a quote not closed, or the file cut short?"},
	{"ledger: sqlite:a\n---\nledger: sqlite:b", "a second YAML document"},
	{"ingest: &a {pages: *a}", "1: ingest.pages: an alias (*) of a list or mapping that contains it"},
	{"a: \x01", "control characters are not allowed"},
	{"ingest: {jitter: -1s}", "jitter:"},
	{"\ningest: {jitter: 0}", "2: ingest.jitter: must have a unit: write 0s"},
	{"ingest: {catch_up: perhaps}", "catch_up: must be true or false"},
	{"ingest: {weights: {XX: 3}}", `"XX" is not a region`},
	{"ingest: {weights: {JP: 3}}", "1: weights.JP: is not among the regions"},
	{"ingest: {priorities: {JP: 1}}", "1: priorities.JP: is not among the regions"},
	{"ingest: {priorities: {US: 1001}}", "1: priorities.US: must be 0 to 1000"},
	{"ingest: {floors: {US: -1}}", "1: floors.US: must be 0 to 1000000000000"},
	{"ingest: {floors: [US]}", "1: ingest.floors: write numbers by region, such as {US: 3}"},
	{"ingest: {lease: 10ms}", "lease: \"10ms\" is not a duration from 1s to 1h"},
	{"ingest: {grace: 2h}", "grace:"},
	{"ingest: {listen: nowhere}", "listen: \"nowhere\": write host:port"},
	{"ingest: {jobs: [{name: asia}]}", "1: ingest.jobs: regions is missing"},
	{"ingest: {jobs: [{name: trending, regions: [US]}]}",
		"trending is the default job, for regions in no other job"},
	{"ingest: {jobs: [{name: Asia, regions: [US]}]}", "is not a name"},
	{"ingest: {jobs: [{name: a, regions: [US]}, {name: b, regions: [US]}]}",
		"US is already in job a"},
	{"credentials: [{name: k, pace: quick}]", "1: credentials.pace: must be even, or {curve: even, slack: 10%}"},
	{"credentials: [{name: k, pace: {curve: [1, 2]}}]", "1: pace.curve: must be 24 weights, one for each hour of the day, not"},
	{"credentials: [{name: k, pace: {slack: 10}}]", "1: pace.slack: must be 0% to 100%"},
	{"credentials: [{name: k, pace: {slack: 101%}}]", "1: pace.slack: must be 0% to 100%"},
	{"credentials: [{name: k, pace: even, limits: [{bucket: default, units: 9, window: 24h}]}]",
		"no limit has window: day"},
}

// TestProblems: each mistake is reported with its line and key, and no message repeats a possible
// secret.
func TestProblems(t *testing.T) {
	for _, p := range problems {
		text := expectProblem(t, p.file, p.want)
		if strings.Contains(text, "\n") && !strings.Contains(p.want, "cut") {
			t.Errorf("%q: more than one problem:\n%v", p.file, text)
		}
	}
}

// expectProblem checks that a file is refused, and returns the message.
func expectProblem(t *testing.T, file, want string) string {
	t.Helper()
	path := write(t, file)
	cfg, err := Load(t.Context(), path, env("HOME", "/h"))
	var problem *Error
	if !errors.As(err, &problem) || cfg != nil {
		t.Errorf("%q: %v, %v", file, cfg, err)
		return ""
	}
	text := err.Error()
	if !strings.Contains(text, want) || !strings.Contains(text, path) ||
		strings.Contains(text, "hunter2") {
		t.Errorf("%q:\n%v\nwant: %s", file, err, want)
	}
	return text
}

// TestAllAtOnce: all problems are reported together, first those of the environment and then those
// of the file, in its order.
func TestAllAtOnce(t *testing.T) {
	path := write(t, "ingest: {pages: 0, regions: [XX]}\nledger: x\n"+
		"credentials: [{name: a, mode: x, nmae: b}]\ncosts: {profil: x}\n")
	_, err := Load(t.Context(), path, env("QUOTA_CATALOG", "x", "YOUTUBE_ENDPOINT", "y"))
	var got []int
	var problem *Error
	if !errors.As(err, &problem) {
		t.Fatal(err)
	}
	for _, p := range problem.Problems {
		got = append(got, p.Line)
	}
	if want := []int{0, 0, 1, 1, 2, 3, 3, 4}; !slices.Equal(got, want) {
		t.Fatalf("lines %v, want %v:\n%v", got, want, err)
	}
}

func TestNoSuchFile(t *testing.T) {
	t.Chdir(t.TempDir())
	must(t, os.WriteFile("big.yaml", make([]byte, maxFileBytes+1), 0o600))
	for _, c := range []struct{ flag, variable, want string }{
		{"nope.yaml", "", "nope.yaml: no such file"},
		{"", "nope.yaml", "nope.yaml: no such file"},
		{"", "",
			"environment: neither QUOTA_STATE_DIR nor HOME names a folder for the ledger and " +
				"the catalogue"},
		{"big.yaml", "", "big.yaml: longer than 1048576 bytes"},
		{".", "", ".: is a directory"},
		{"/dev/zero", "", "/dev/zero: is a device, not a file"},
	} {
		_, err := Search{Path: c.flag, System: "none.yaml",
			Getenv: env("QUOTA_CONFIG", c.variable)}.Load(t.Context())
		var problem *Error
		if !errors.As(err, &problem) || err.Error() != c.want {
			t.Errorf("%+v: %v", c, err)
		}
	}
}
