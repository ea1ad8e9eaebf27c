//go:build interop

package interop

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// guide has the examples that set the clients up.
const guide = "docs/examples-metered.md"

// metered is two proxies with one ledger, in front of three stand-ins.
type metered struct {
	vars           []string
	steady, doomed *process
	standins       map[string]string // by upstream, where it is
	limits         map[string]int64  // of testdata/metered.yaml, by bucket
}

// prices of tokens are those of the lists for models that they do not know.
var standins = map[string][]string{
	"openai": {"--limit", "tokens=100000000/1m", "--limit", "requests=100000/1m",
		"--price", "input=150", "--price", "cached=150", "--price", "output=600"},
	"anthropic": {"--limit", "output=100000000/1m", "--limit", "input=100000000/1m",
		"--limit", "requests=100000/1m", "--price", "input=15", "--price", "output=75"},
	"github": nil,
}

// ttl is how long a hold stays that nobody settles: longer than a stream lasts.
const ttl = "20s"

func newMetered(t *testing.T, ledger string) *metered {
	t.Helper()
	dir := t.TempDir()
	m := &metered{limits: map[string]int64{"tokens": 1400, "output": 800}}
	var upstreams string
	m.standins, upstreams = launchStandins(t, standins, "--pace", "30ms", "--fault", "503/11")
	config := read(t, "testdata/metered.yaml") + upstreams
	lists := "default: openai\nupstreams:\n"
	for name := range standins {
		list := read(t, filepath.Join(root, "costs", name+".yaml"))
		list = regexp.MustCompile(`ttl: \w+`).ReplaceAllString(list, "ttl: "+ttl)
		write(t, dir, name+".yaml", list)
		lists += fmt.Sprintf("  %s: %s.yaml\n", name, name)
	}
	write(t, dir, "costs.yaml", lists)
	m.vars = []string{
		"QUOTA_CONFIG=" + write(t, dir, "quota.yaml", config), "QUOTA_STATE_DIR=" + dir,
		"QUOTA_LEDGER=" + ledger, "OPENAI_API_KEY=any", "ANTHROPIC_API_KEY=any", "GITHUB_TOKEN=any",
	}
	proxy := []string{"proxy", "--listen", "127.0.0.1:0", // holds of the size of a small call
		"--estimate", "openai.chat.completions.create/tokens=44",
		"--estimate", "anthropic.messages.create/output=20"}
	m.steady = launch(t, m.vars, "quotactl", proxy...)
	m.doomed = launch(t, m.vars, "quotactl", proxy...)
	return m
}

// whole is a bucket without its part.
func whole(bucket string) string {
	name, _, _ := strings.Cut(bucket, "/")
	return name
}

// billed is what the stand-ins billed.
func (m *metered) billed(t *testing.T) map[string]int64 {
	t.Helper()
	all := map[string]int64{}
	for name, address := range m.standins {
		var counted struct {
			Units                map[string]int64
			Denied, Failed, Open int64
		}
		counts(t, address, &counted)
		if counted.Denied != 0 || counted.Open != 0 || (counted.Failed == 0) != (name == "github") {
			t.Errorf("%s: %+v", name, counted) // clients retried what failed
		}
		for bucket, units := range counted.Units {
			if bucket == "money" {
				bucket += " of " + name
			}
			all[bucket] += units
		}
	}
	return all
}

func (m *metered) entries(t *testing.T) (all []entry) {
	t.Helper()
	for name := range m.standins {
		for _, e := range entries(t, m.vars, "--credential", name) {
			if e.Bucket == "money" {
				e.Bucket += " of " + name
			}
			all = append(all, e)
		}
	}
	return all
}

// hold is what is set aside of one bucket.
type hold struct {
	Reservation, Bucket string
	Most, Left          int64
}

func (m *metered) held(t *testing.T) (all []hold) {
	t.Helper()
	for name := range m.standins {
		var list struct{ Reservations []hold }
		quotactl(t, m.vars, &list, "reservations", "--credential", name)
		all = append(all, list.Reservations...)
	}
	return all
}

// settled waits until nothing is held any more.
func (m *metered) settled(t *testing.T) {
	t.Helper()
	eventually(t, func() bool { return len(m.held(t)) == 0 }, func() any { return m.held(t) })
}

// plan is what testdata/metered.mjs is to do, and seen what it saw of it.
type plan struct {
	Models  map[string]string `json:"models"`
	Warm    int               `json:"warm"`
	Streams int               `json:"streams"`
	Queries int               `json:"queries"`
	Short   int               `json:"short"`
	Long    int               `json:"long"`
	Most    int               `json:"most"`
}

type seen struct {
	Calls, Whole, Cut, Denied, Broken, Queries int
	Errors                                     []string
}

// What a model writes in a small call and in a stream, and how much it may.
const warm, short, long, most = 25, 20, 200, 300

// client is a run of testdata/metered.mjs.
type client struct {
	cmd *exec.Cmd
	in  io.Writer
	out *bufio.Reader
	err *strings.Builder
}

func (m *metered) node(t *testing.T, proxy *process, p plan) *client {
	t.Helper()
	p.Warm, p.Short, p.Long, p.Most = warm, short, long, most
	task, err := json.Marshal(p)
	must(t, err)
	dir := t.TempDir()
	modules(t, dir)
	need(t, dir, "node", "-e", "import('openai')")
	program := write(t, dir, "client.mjs",
		snippet(t, guide, "js", documented, proxy.address)+read(t, "testdata/metered.mjs"))
	c := &client{cmd: exec.CommandContext(t.Context(), "node", program, string(task)),
		err: &strings.Builder{}}
	c.cmd.Dir, c.cmd.Stderr = dir, c.err
	c.in, err = c.cmd.StdinPipe()
	must(t, err)
	out, err := c.cmd.StdoutPipe()
	must(t, err)
	c.out = bufio.NewReader(out)
	must(t, c.cmd.Start())
	return c
}

// await reads a line that the client prints when it has come so far.
func (c *client) await(t *testing.T, want string) {
	t.Helper()
	line, err := c.out.ReadString('\n')
	if err != nil || strings.TrimSpace(line) != want {
		rest, _ := io.ReadAll(c.out)
		t.Fatalf("the client prints %q instead of %q: %v\n%s%v\n%s", line, want, err, rest,
			c.cmd.Wait(), c.err)
	}
}

func (c *client) proceed(t *testing.T) {
	t.Helper()
	_, err := io.WriteString(c.in, "go\n")
	must(t, err)
}

func (c *client) end(t *testing.T) (s seen) {
	t.Helper()
	text, err := io.ReadAll(c.out)
	must(t, err)
	if err := c.cmd.Wait(); err != nil {
		t.Fatalf("the client: %v\n%s%s", err, text, c.err)
	}
	must(t, json.Unmarshal(text, &s))
	return s
}

// curl is a call of a small answer by curl, of a model that nobody else uses.
func (m *metered) curl(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	body := fmt.Sprintf(`{"model":"gpt-d","max_tokens":%d,"messages":[{"role":"user",`+
		`"content":"[[output:%d]]"}]}`, most, short)
	args = append([]string{"-sS", "--fail", "-o", "/dev/null",
		"-H", "Content-Type: application/json", "-d", body,
		m.steady.address + "openai/v1/chat/completions"}, args...)
	return exec.CommandContext(t.Context(), "curl", args...)
}

// curlStream reads a stream by curl, or only the beginning of each third.
func (m *metered) curlStream(t *testing.T, i int, begun chan<- string) {
	body := fmt.Sprintf(`{"model":"gpt-c","max_tokens":%d,"stream":true,"stream_options":`+
		`{"include_usage":true},"messages":[{"role":"user","content":"%04d [[output:%d]]"}]}`,
		most, i, long)
	cmd := exec.CommandContext(t.Context(), "curl", "-sSN", "-H", "Content-Type: application/json",
		"-d", body, m.steady.address+"openai/v1/chat/completions")
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Error(err)
		begun <- ""
		return
	}
	lines := bufio.NewReader(out)
	first, _ := lines.ReadString('\n')
	begun <- first
	if i%3 == 0 {
		for range 9 {
			_, _ = lines.ReadString('\n')
		}
		cmd.Process.Kill()
	}
	_, _ = io.Copy(io.Discard, lines)
	_ = cmd.Wait() // it may have been cut
}
