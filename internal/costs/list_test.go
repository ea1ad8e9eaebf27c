package costs_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"quotabudget/internal/costs"
)

// read is a file of testdata.
func read(t testing.TB, name string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join("testdata", name))
	must(t, err)
	return string(data)
}

func TestShippedLists(t *testing.T) {
	list := costs.Shipped()
	for _, name := range list.Upstreams() {
		table, err := list.Upstream(name)
		must(t, err)
		if table.Upstream != name || !strings.HasSuffix(table.Endpoint, "/") ||
			len(table.Methods()) == 0 {
			t.Errorf("%s: %+v", name, table)
		}
		for _, m := range table.Methods() {
			if m.Source.Text == "" || len(m.Terms) == 0 {
				t.Errorf("%s has no source or no price", m.ID)
			}
			if owner, _, err := list.Lookup(m.ID); err != nil || owner.Upstream != name {
				t.Errorf("%s is of %s, and found in %v, %v", m.ID, name, owner, err)
			}
		}
	}
	if _, err := list.Upstream("antropic"); err == nil ||
		!strings.Contains(err.Error(), "(did you mean anthropic?)") {
		t.Error(err)
	}
}

func TestFrontDoor(t *testing.T) {
	const front = "default: one\nupstreams:\n  one: costs/one.yaml\n  two: costs/two.yaml\n"
	files := fstest.MapFS{"costs/one.yaml": {Data: []byte(small)},
		"costs/two.yaml": {Data: []byte(read(t, "all-keys.yaml"))}}
	l, err := costs.ParseList("costs.yaml", []byte(front), files)
	must(t, err)
	if got := l.Upstreams(); !slices.Equal(got, []string{"one", "two"}) ||
		l.Usual().Upstream != "one" {
		t.Errorf("%v, %s by default", got, l.Usual().Upstream)
	}
	wrong := strings.NewReplacer("x.chat:", "chat:", "in * price", "on * prise")
	files["costs/two.yaml"].Data = []byte(wrong.Replace(read(t, "all-keys.yaml")))
	for text, want := range map[string]string{
		front: "costs/two.yaml:36: methods.chat: \"chat\" is not the ID of a method, such as " +
			"messages.create\n" +
			"costs/two.yaml:46: settle.money: unknown name prise (1:12)",
		strings.Replace(front, "default: one", "default: ona", 1) + "  four: {}\n": "line 5: ",
		strings.Replace(front, "costs/two", "costs/no", 1): "line 4: upstreams.two: " +
			"costs/no.yaml: file does not exist",
		strings.Replace(front, "costs/two.yaml", "../costs.yaml", 1): `line 4: upstreams.two: ` +
			`"../costs.yaml" is not a file in the folder of this one, such as costs/example.yaml`,
		strings.Replace(front, "costs/two.yaml", "/etc/passwd", 1): "is not a file in the folder",
		strings.Replace(front, "costs/two.yaml", "costs", 1):       "costs: not a plain file",
		strings.Replace(front, "costs/two.yaml", "[a]", 1): "upstreams.two: write the path of a " +
			"list, or the list itself",
		strings.Replace(front, "  two:", "  Two:", 1):      `line 4: upstreams.Two: "Two" is not a name: use up to 63 lower-case`,
		strings.Replace(front, "upstreams", "upstream", 1): "unknown key",
		front + "more: 1\n":                                `line 5: unknown key "more"`,
		"upstreams: {}\n":                                  "default is missing",
	} {
		_, err := costs.ParseList("costs.yaml", []byte(text), files)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot  %v\nwant %s", text, err, want)
		}
	}
	files["costs/two.yaml"] = files["costs/one.yaml"]
	text := strings.Replace(front, "default: one", "default: ona", 1)
	if _, err := costs.ParseList("costs.yaml", []byte(text), files); err == nil ||
		err.Error() != `line 1: default: no upstream "ona" (did you mean one?)` {
		t.Error(err)
	}
}

// TestFilesOfAList: a list reads plain files in its own folder, whatever links say.
func TestFilesOfAList(t *testing.T) {
	dir := t.TempDir()
	outside := filepath.Join(t.TempDir(), "outside.yaml")
	must(t, os.WriteFile(outside, []byte(small), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "inside.yaml"), []byte(small), 0o600))
	must(t, os.Symlink(outside, filepath.Join(dir, "link.yaml")))
	must(t, os.Symlink("inside.yaml", filepath.Join(dir, "near.yaml")))
	must(t, syscall.Mkfifo(filepath.Join(dir, "pipe.yaml"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "large.yaml"), make([]byte, costs.MaxFile+1), 0o600))
	root, err := os.OpenRoot(dir)
	must(t, err)
	defer root.Close()
	for name, want := range map[string]string{
		"inside.yaml": "", "near.yaml": "", "link.yaml": "escapes", "pipe.yaml": "not a plain file",
		"large.yaml": "at most", "none.yaml": "no such file",
	} {
		text := "default: a\nupstreams: {a: " + name + "}\n"
		_, err := costs.ParseList("costs.yaml", []byte(text), root.FS())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", name, err, want)
		}
	}
}

func TestParseOfMeteredMethods(t *testing.T) {
	all := read(t, "all-keys.yaml")
	table := parsed(t, all)
	chat, err := table.Lookup("x.chat")
	must(t, err)
	var terms []string
	for _, term := range chat.Terms {
		terms = append(terms, term.Bucket+": "+term.Take+"|"+term.Hold+"|"+term.Settle)
	}
	want := []string{"calls: 1||", "input: |len(body) / 4|usage.in",
		"output: |min(body.max ?? 4096, p95, 1000)|usage.out",
		"money: |min((body.max ?? 4096) * price(exact), p95)|" +
			"usage.in * price(exact) + usage.out * 2 * price(exact)"}
	if chat.Known() || !slices.Equal(terms, want) {
		t.Errorf("chat takes\n%s", strings.Join(terms, "\n"))
	}
	if put, _ := table.Lookup("x.put"); !put.Known() || quoted(put.Costs) != "daily 2" {
		t.Errorf("put %+v", put)
	}
	if got := table.DefaultLimits(); len(got) != 2 || got[0].Units != 100 ||
		got[0].Headroom != 5 || got[1].Window.ZoneName() != "UTC" {
		t.Errorf("limits %v", got)
	}
	for target, want := range map[string]string{
		"POST /v1/chat": "x.chat", "POST /v1/t/acme/chat": "x.chat",
		"POST /v1/models/small-2:chat": "x.chat", "POST /v1/models/small:2:chat": "x.chat",
		"POST /v1/models/small-2%3Achat": "x.chat", "POST /v1/models/:chat": "",
		"POST /v1/models/small-2": "", "GET /v2/a": "x.rest", "GET /v2/a/b/c": "x.rest",
		"GET /v2": "", "GET /v2/a/../c": "", "PUT /upload/v1/put": "x.put",
	} {
		verb, path, _ := strings.Cut(target, " ")
		if got, err := table.Method(request(t, verb, path)); got != want {
			t.Errorf("%s is %q, %v; want %q", target, got, err, want)
		}
	}
}

func TestParseOfMeteredMethodsReportsEachProblem(t *testing.T) {
	all := read(t, "all-keys.yaml")
	problemsOf(t, all, []replaced{
		{"take: {calls: 1}", "take: {cals: 1}",
			`line 38: take.cals: bucket "cals" is not among the buckets (did you mean`},
		{"take: {calls: 1}", "take: {calls: -1}",
			"line 38: take.calls: -1 gives -1: units cannot be negative"},
		{"take: {calls: 1}", "take: {calls: 0}", "line 38: take.calls: 0 is no cost: leave it out"},
		{"take: {calls: 1}", "take: {calls: one}", "line 38: take.calls: unknown name one (1:1)"},
		{"take: {calls: 1}", "take: {calls: 1e13}", "at most 1000000000000 units"},
		{"take: {calls: 1}", "take: {calls: p95}", "line 38: take.calls: unknown name p95 (1:1)"},
		{"take: {calls: 1}", "take: {calls: 1, input: 1}",
			"line 40: hold.input: bucket input is in take and in hold"},
		{"take: {calls: 1}", "take: {calls: 1}\n    cost: {daily: 1}",
			"line 38: chat.take: a method with a cost takes no more than that: write"},
		{"input: usage.in\n", "input: body.in\n", "line 44: settle.input: unknown name body (1:1)"},
		{"input: usage.in\n", "daily: usage.in\n",
			"line 44: settle.daily: the method neither takes nor holds it"},
		{`most: "body.max ?? 4096"`, "most: p95", "line 41: output.most: unknown name p95 (1:1)"},
		{`, most: "body.max ?? 4096"`, "", "line 41: hold.output: most is missing"},
		{"free: status == 304", "free: 5 #", "line 50: chat.free: expected bool, but got int"},
		{"lapse: charge", "lapse: keep", "line 51: chat.lapse: must be charge or release"},
		{"ttl: 5m", "ttl: 5", "line 52: chat.ttl: must be a duration from 1s to 24h"},
		{"    source: page\n    note: a chat", "    note: a chat",
			"line 37: methods.x.chat: source is missing"},
		{"    hold: {daily: 100}\n    settle: {daily: 'count(\"data\") + " +
			"(count(\"includes.*\") ?? 0)'}\n", "", "line 58: methods.x.posts: write cost, take or hold"},
		{"unit: tokens, split: [model]}\n  output", "unit: token, split: [model]}\n  output",
			"line 30: input.unit: must be units, requests, tokens, points, bytes or"},
		{"split: [method, tenant]", "split: [method, tenants]",
			`line 25: calls.split: "tenants" is neither a fact in split nor method (did you mean ` +
				`tenant?)`},
		{"    limits: [{units: 100, window: 1m, headroom: 5}, {units: 1000, window: day, " +
			"timezone: UTC}]\n", "",
			"line 23: buckets.calls: it is required, and has no limits: write daily or"},
		{"    source: page\n    note: the calls", "", "line 27: calls.limits: needs source, which is missing"},
		{"reset: day, timezone", "reset: 24h, timezone", `reset: "24h" is not a calendar window`},
		{"tenant: path.tenant", "tenant: path.tenant\n  body: path.tenant",
			`line 19: split.body: "body" cannot be used as a name, or is in use`},
		{"tenant: path.tenant", "tenant: path.tenant\n  class: path.tenant",
			`"class" cannot be used as a name`},
		{"rows: {small-2: 0.25", "warn: modle, rows: {small-2: 0.25",
			`line 21: price.warn: "modle" is not a fact, which split lists`},
		{"small-2: 0.25", "small-2: -1", "line 21: rows.small-2: must be 0 to 1000000000000"},
		{"small-2: 0.25", "small-2: cheap", "line 21: price.rows: rows must be all numbers or all words"},
		{"key: admin_key", "key: secret", "key: must be api_key, admin_key or service_account"},
		{"https://admin.example.com", "http://admin.example.com",
			"get: must be a path such as /v1/usage, or begin with https://"},
		{"post: /v1/limits", "note: none", "write get or post, one of them"},
		{"usage: {calls: {figure: used", "usage: {cals: {figure: used",
			`usage.cals: bucket "cals" is not among the buckets (did you mean calls?)`},
		{"window: anchored 1h, end", "window: 1h, end", "calls.window: must be anchored, such as anchored 1h: it has an end"},
		{"lag: 1h", "lag: 100h", `lag: "100h" is not a duration from 0s to 72h`},
		{"rate: rate, unit", "unit", "window or rate is missing"},
		{"status: 429, where", "status: 42, where", "line 120: refusals.status: must be 100 to 599"},
		{"kind: exhausted, bucket", "kind: exhaust, bucket",
			"line 120: refusals.kind: must be permanent, transient, throttled,"},
		{"until: window", "until: friday", "until: write window, a time such as 1m, {header: NAME, "},
		{", as: seconds", "",
			"refusals.until: as is missing: must be rfc3339, epoch, duration, seconds, millis or date"},
		{"as: seconds", "as: number",
			"until.as: must be rfc3339, epoch, duration, seconds, millis or date"},
		{"as: seconds", "as: minutes", "line 123: until.as: must be number, rfc3339, epoch, duration, seconds,"},
		{"remaining: {header: x-remaining}", "remaining: {}", "remaining: write header or path"},
		{"remaining: {path: left.money}, reset: {path: left.until, as: rfc3339}", "limit: x",
			"learn: write remaining or used, or reset"},
		{", limit: {header: ratelimit-policy, policy: hour}", "", "learn.used: needs limit, which is missing"},
		{"until: 1m30s", "until: 1ms", "until: write window, a time such as 1m"},
		{"- {status: 503, kind", "- {status: 529, kind", "line 125: refusals: never applies: a rule before it is for the same"},
		{"zeros: [left.money", "zeros: [$.left.money", `zeros: path "$.left.money" can never match`},
		{"{path: left.money}", "{path: left..money}", `path "left..money" can never match: it has an empty step`},
		{`count("data")`, `count("data[]")`, `path "data[]" can never match: write indexes`},
		{"where: item.metadata.unit != nil", "where: answer.x != nil", "unknown name answer"},
		{"header: x-api-key, prefix", "heading: x-api-key, prefix",
			`line 9: credential: unknown key "heading" (did you mean header`},
		{"header: x-api-key, prefix", "query: key, header: x, prefix",
			"line 9: credential: write header or query, one of them"},
		{"endpoint: https://api.example.test/base", "endpoint: ftp://x",
			"line 8: endpoint: must be an address such as https://api.example.com/"},
		{"EXAMPLE_BASE_URL: /v1", "LD_PRELOAD: /v1", `line 127: environment: "LD_PRELOAD": write paths by variables with an`},
		{"EXAMPLE_BASE_URL: /v1", "EXAMPLE_BASE_URL: v1", "line 127: environment.EXAMPLE_BASE_URL: must be a path such as / or /v1"},
		{`"POST /v1/t/{tenant}/chat"`, `"POST /v1/t/{tenant..}/chat"`, "write a verb and a path"},
		{`"GET /v2/{rest...}"`, `"GET /v2/{rest...}/x"`, "write a verb and a path"},
		{"GET /v1/posts", "GET /v1/list", "methods x.list and x.posts share the route GET /v1/list"},
		{"cheap: {note: as once, methods: {x.put: {cost: {daily: 1}, source: page}}}",
			"cheap: {methods: {x.posts: {cost: {daily: 1}, source: page}}}",
			"profile cheap prices x.posts, whose price depends on the call"},
	})
}
