package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"github.com/spf13/pflag"

	"quotabudget/internal/cli/clitest"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/standin"
)

// testEnv returns the environment of a program: PATH, home if that is not "", and more.
func testEnv(home string, more ...string) []string {
	return append([]string{"PATH=" + os.Getenv("PATH"), home}, more...)
}

func TestMain(m *testing.M) {
	testscript.Main(clitest.Main{M: m, Packages: []string{"quotabudget/cmd/..."}},
		map[string]func(){"ingestor": main})
}

func TestScripts(t *testing.T) {
	t.Parallel()
	dirs := []string{"testdata"}
	data := standin.SharedData(os.Getenv("QUOTA_SHARED_DATA"))
	if data == "" {
		t.Log("no shared data: the real charts are not swept")
	} else {
		dirs = append(dirs, filepath.Join("testdata", "shared"))
	}
	for _, dir := range dirs {
		testscript.Run(t, testscript.Params{
			Dir:                dir,
			RequireUniqueNames: true,
			Setup: func(e *testscript.Env) error {
				e.Setenv("QUOTA_STATE_DIR", filepath.Join(e.WorkDir, "state"))
				e.Setenv("YOUTUBE_API_KEY", "any")
				e.Setenv("CHARTS", filepath.Join(data, "trending"))
				e.Values[daemonKey{}] = new(*process)
				return nil
			},
			Cmds: map[string]func(*testscript.TestScript, bool, []string){
				"standin": standinCmd, "set": setCmd, "counts": countsCmd, "agree": agreeCmd,
				"exits": clitest.Exit, "field": fieldCmd, "shape": shapeCmd, "gzip": gzipCmd,
				"lint": lintCmd, "daemon": daemonCmd, "fetch": fetchCmd, "await": awaitCmd,
				"signal": signalCmd,
				"redis": func(ts *testscript.TestScript, _ bool, args []string) {
					ts.Setenv("QUOTA_LEDGER", redisAhead(ts, t, args).URL())
				},
			},
		})
	}
}

// lintCmd requires that promtool finds no fault in the metrics of a file or of stdout: lint FILE.
func lintCmd(ts *testscript.TestScript, _ bool, args []string) {
	cmd := exec.Command("promtool", "check", "metrics")
	cmd.Stdin = strings.NewReader(ts.ReadFile(args[0]))
	if out, err := cmd.CombinedOutput(); err != nil || len(out) > 0 {
		ts.Fatalf("promtool check metrics: %v\n%s", err, out)
	}
}

// redisAhead starts a server: redis, or redis DURATION for one whose stopped clock is ahead of this
// machine's by that much.
func redisAhead(ts *testscript.TestScript, t *testing.T, args []string) *redistest.Server {
	if len(args) == 0 {
		return redistest.Start(t, redistest.Options{})
	}
	ahead, err := time.ParseDuration(args[0])
	ts.Check(err)
	server := redistest.Start(t, redistest.Options{Clock: true})
	server.SetNow(t, time.Now().Add(ahead))
	return server
}

// must ends a test after an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// standinCmd starts a stand-in on a free port and points the programs at it: standin [FLAG…], as
// for ingestor standin. A second one takes the place of the first.
func standinCmd(ts *testscript.TestScript, _ bool, args []string) {
	var f standinFlags
	flags := pflag.NewFlagSet("standin", pflag.ContinueOnError)
	server := new(standin.YouTube)
	f.bind(flags, server)
	ts.Check(flags.Parse(args))
	f.listen = "127.0.0.1:0"
	if f.data != "" {
		f.data = ts.MkAbs(f.data)
	}
	ts.Check(f.apply(server, flags.Changed("units")))
	web := httptest.NewServer(server)
	ts.Defer(func() {
		web.CloseClientConnections()
		web.Close()
	})
	ts.Setenv("YOUTUBE_ENDPOINT", web.URL+"/")
}

// setCmd changes the running stand-in: set JSON, as in POST /standin/settings.
func setCmd(ts *testscript.TestScript, _ bool, args []string) {
	resp, err := http.Post(ts.Getenv("YOUTUBE_ENDPOINT")+"standin/settings", "application/json",
		strings.NewReader(args[0]))
	ts.Check(err)
	defer resp.Body.Close()
	if text, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != http.StatusOK {
		ts.Fatalf("%d %s %v", resp.StatusCode, text, err)
	}
}

// countsCmd requires counts of the stand-in: counts NAME=NUMBER…, such as counts requests=9
// units.default=9.
func countsCmd(ts *testscript.TestScript, _ bool, args []string) {
	counts := countsOf(ts)
	for _, arg := range args {
		name, want, _ := strings.Cut(arg, "=")
		if got := textOf(find(counts, name)); got != want && !(got == "absent" && want == "0") {
			ts.Fatalf("%s is %s, want %s: %v", name, got, want, counts)
		}
	}
}

func countsOf(ts *testscript.TestScript) map[string]any {
	resp, err := http.Get(ts.Getenv("YOUTUBE_ENDPOINT") + "standin/counts")
	ts.Check(err)
	defer resp.Body.Close()
	var counts map[string]any
	ts.Check(json.NewDecoder(resp.Body).Decode(&counts))
	return counts
}

// agreeCmd requires that quotactl status and log print, for every bucket, the units that the
// stand-in has counted.
func agreeCmd(ts *testscript.TestScript, _ bool, _ []string) {
	units, _ := countsOf(ts)["units"].(map[string]any)
	ts.Check(ts.Exec("quotactl", "status", "-o", "json"))
	buckets, _ := find(decode(ts, "stdout"), "credentials.0.buckets").([]any)
	if len(buckets) == 0 {
		ts.Fatalf("status has no buckets")
	}
	for i := range buckets {
		name := textOf(find(buckets[i], "bucket"))
		counted := textOf(units[name])
		if units[name] == nil {
			counted = "0"
		}
		limits, _ := find(buckets[i], "limits").([]any)
		for _, limit := range limits {
			if used := textOf(find(limit, "used")); used != counted {
				ts.Fatalf("bucket %s: status says %s units in %v, the stand-in counted %s", name,
					used, find(limit, "window"), counted)
			}
		}
		ts.Check(ts.Exec("quotactl", "log", "--bucket", name, "--by", "method", "-o", "json"))
		rows, _ := find(decode(ts, "stdout"), "rows").([]any)
		sum := 0.0
		for _, row := range rows {
			sum += find(row, "units").(float64)
		}
		if textOf(sum) != counted {
			ts.Fatalf("bucket %s: the log holds %v units, the stand-in counted %s", name, sum,
				counted)
		}
	}
}

// fieldCmd requires fields of the JSON in a file: field FILE PATH=VALUE…, such as field stdout
// regions.0.outcome=complete. len is the length of a list.
func fieldCmd(ts *testscript.TestScript, neg bool, args []string) {
	doc := decode(ts, args[0])
	for _, arg := range args[1:] {
		path, want, _ := strings.Cut(arg, "=")
		if got := textOf(find(doc, path)); (got == want) == neg {
			ts.Fatalf("%s is %s, want %s", path, got, want)
		}
	}
}

// shapeCmd compares the keys and types of the JSON in a file with those in another: shape FILE
// WANT. A list has the shapes of its elements.
func shapeCmd(ts *testscript.TestScript, _ bool, args []string) {
	got, want := shape(decode(ts, args[0]), ""), strings.TrimSpace(ts.ReadFile(args[1]))
	if strings.TrimSpace(got) != want {
		ts.Fatalf("shape:\n%s\nwant:\n%s", got, want)
	}
}

// gzipCmd compresses a file: gzip FROM TO.
func gzipCmd(ts *testscript.TestScript, _ bool, args []string) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := io.WriteString(z, ts.ReadFile(args[0]))
	ts.Check(err)
	ts.Check(z.Close())
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), packed.Bytes(), 0o600))
}

func decode(ts *testscript.TestScript, file string) (doc any) {
	in := json.NewDecoder(strings.NewReader(ts.ReadFile(file)))
	ts.Check(in.Decode(&doc))
	if _, err := in.Token(); err != io.EOF {
		ts.Fatalf("%s: more than one JSON value", file)
	}
	return doc
}

// find returns the value at the dotted path; nil for none.
func find(doc any, path string) any {
	name, rest, more := strings.Cut(path, ".")
	var below any
	switch d := doc.(type) {
	case map[string]any:
		value, ok := d[name]
		if !ok {
			value = absent{}
		}
		below = value
	case []any:
		if name == "len" {
			return float64(len(d))
		}
		if i, err := strconv.Atoi(name); err == nil && i < len(d) {
			below = d[i]
		}
	}
	if more {
		return find(below, rest)
	}
	return below
}

// absent is the value of a missing key.
type absent struct{}

func textOf(v any) string {
	switch v := v.(type) {
	case nil:
		return "null"
	case absent:
		return "absent"
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

// shape returns the keys of a document with the types of their values, one per line.
func shape(doc any, path string) string {
	lines := make(map[string]bool)
	switch d := doc.(type) {
	case map[string]any:
		for name, value := range d {
			for line := range strings.Lines(shape(value, path+"."+name)) {
				lines[line] = true
			}
		}
	case []any:
		for _, value := range d {
			for line := range strings.Lines(shape(value, path+"[]")) {
				lines[line] = true
			}
		}
	default:
		lines[fmt.Sprintf("%s %s\n", path, map[bool]string{true: "null"}[d == nil]+
			strings.TrimPrefix(fmt.Sprintf("%T", d), "<nil>"))] = true
	}
	var sorted []string
	for line := range lines {
		sorted = append(sorted, line)
	}
	sort.Strings(sorted)
	return strings.Join(sorted, "")
}
