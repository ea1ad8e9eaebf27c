//go:build linux

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/cli/clitest"
	"quotabudget/internal/ledger/redistest"
)

// hostileText contains codes that a terminal obeys: it clears the screen, writes to the clipboard,
// links to another site, reverses the writing direction, and hides.
const hostileText = "\x1b[2J\x1b]52;c;AAAA\x07\x1b]8;;http://evil\x1b\\x" +
	"\u009b31m\u202egnp\u2066\u2028\u200b\ufeff\r\n\x00\x7fend"

const wideTitle = "東京の夜景を四時間かけて歩いてみた【公式ミュージックビデオ】👩‍👩‍👧‍👦🇯🇵❤️ שלום سلام नमस्ते e\u0301 " +
	"and a good deal more than fits into any cell of a table"

// hostile is an environment in which every text of the upstream is hostile or wide.
type hostile struct {
	env []string
	dir string
}

func (h hostile) command(t *testing.T, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(t.Context(), args[0], args[1:]...)
	cmd.Env, cmd.Dir = h.env, h.dir
	return cmd
}

// hostileUpstream serves a chart of US with hostile or wide texts, and refuses GB with a hostile
// reason.
func hostileUpstream(t *testing.T) hostile {
	t.Helper()
	video := func(id, title string, views int) map[string]any {
		return map[string]any{"id": id, "snippet": map[string]any{"title": title,
			"channelId": "UC" + title, "channelTitle": title, "categoryId": title,
			"publishedAt": "2026-11-01T00:00:00Z", "tags": []string{title}, "description": title},
			"contentDetails": map[string]any{"duration": "PT1M"},
			"statistics":     map[string]any{"viewCount": fmt.Sprint(views)}}
	}
	endpoint := listening(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.URL.Query().Get("regionCode") != "US" {
			w.WriteHeader(http.StatusForbidden)
			json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"code": 403,
				"message": "no: " + hostileText, "errors": []any{map[string]any{"reason": "odd" +
					hostileText, "message": hostileText, "domain": "youtube.video"}}}})
			return
		}
		json.NewEncoder(w).Encode(map[string]any{"items": []any{
			video("hostile"+hostileText, "lofi "+hostileText, 1),
			video("abcdefghijk", "lofi "+wideTitle, 1234567),
		}})
	}))
	return hostile{[]string{"YOUTUBE_ENDPOINT=" + endpoint, "YOUTUBE_API_KEY=any",
		"QUOTA_STATE_DIR=" + filepath.Join(t.TempDir(), "state"), "PATH=" + os.Getenv("PATH"),
		"HOME=" + t.TempDir(), "TERM=dumb", "TZ=Africa/Algiers"}, t.TempDir()}
}

// TestHostileText: no text of the upstream controls the reader's terminal, and every format can be
// parsed.
func TestHostileText(t *testing.T) {
	t.Parallel()
	h := hostileUpstream(t)
	for _, args := range [][]string{
		{"once", "--region", "US,GB", "--pages", "1"},
		{"once", "--region", "GB", "--log-level", "debug"},
		{"once", "--region", "GB", "--log-format", "json"},
		{"chart"}, {"chart", "US"}, {"search", "lofi"}, {"video", "abcdefghijk"},
		{"video", "hostile" + hostileText[:4]},
		{"report", "freshness"}, {"plan", "--days", "1"},
	} {
		for _, format := range []string{"table", "json", "yaml"} {
			cmd := h.command(t, append(append([]string{"ingestor"}, args...), "-o", format)...)
			var stdout, stderr strings.Builder
			cmd.Stdout, cmd.Stderr = &stdout, &stderr
			if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
				t.Fatal(err)
			}
			if line := clitest.Loud(stdout.String() + stderr.String()); line != "" {
				t.Errorf("%q -o %s: %q", args, format, line)
			}
			var v any
			if format != "table" && stdout.Len() > 0 {
				// JSON is also YAML
				if err := yaml.Unmarshal([]byte(stdout.String()), &v); err != nil {
					t.Errorf("%q -o %s: %v", args, format, err)
				}
			}
			if format == "table" && args[0] == "once" &&
				!strings.Contains(stdout.String(), "GB: ") {
				t.Errorf("%q: it is not said why GB failed:\n%s", args, stdout.String())
			}
		}
	}
	out, err := h.command(t, "ingestor", "chart", "US", "-o", "json").Output()
	var chart struct{ Videos []struct{ ID, Title string } }
	if err := json.Unmarshal(out, &chart); err != nil || len(chart.Videos) != 2 {
		t.Fatalf("%v\n%s", err, out)
	}
	if got := chart.Videos[0].Title; err != nil || got != "lofi "+hostileText {
		t.Errorf("JSON has the title as %q, %v", got, err)
	}
}

// TestTablesFitTheTerminal: no line is wider than a terminal of 80 or 120 columns, whatever the
// titles.
func TestTablesFitTheTerminal(t *testing.T) {
	t.Parallel()
	h := hostileUpstream(t)
	for _, columns := range []int{80, 120} {
		for _, line := range []string{
			"ingestor once --region US,GB --pages 1", "ingestor chart", "ingestor chart US",
			"ingestor search lofi", "ingestor video abcdefghijk", "ingestor report freshness",
			"ingestor plan", "ingestor plan --from 2026-11-01 --days 30 --schedule */1_*_*_*_*",
			"quotactl status", "quotactl log", "quotactl log --by region", "quotactl forecast",
			"quotactl costs", "quotactl costs youtube.search.list",
			"quotactl costs anthropic.messages.create", "quotactl costs --upstream openai",
			"quotactl explain --units 20000",
			"quotactl spend --units 9400 --label job=x", "quotactl spend --units 9300",
			"quotactl spend --units 9300 --manual",
			"quotactl explain --units 700", "quotactl reservations", "quotactl status --utc",
		} {
			words := strings.Fields(line)
			for i := range words {
				words[i] = strings.ReplaceAll(words[i], "_", " ")
			}
			cmd := h.command(t, words...)
			if strings.Contains(line, "spend") { // its denial is on standard error
				cmd.Stderr = os.Stdout
			}
			seen, _ := clitest.Seen(t, columns, cmd)
			clitest.Fits(t, columns, seen)
			if loud := clitest.Loud(seen); loud != "" {
				t.Errorf("%s: %q", line, loud)
			}
			hint := "hint: quotactl explain --bucket default --units 9300"
			if strings.HasSuffix(line, "--manual") {
				hint += " --manual"
			}
			if strings.Contains(line, "9300") && !strings.Contains(seen, hint) {
				t.Errorf("%s: no %q", line, hint)
			}
			if t.Failed() {
				t.Logf("%s\n%s", line, seen)
			}
		}
	}
}

// TestTimesAndColors: only a terminal shows the reader's zone and colours, unless flags say
// otherwise.
func TestTimesAndColors(t *testing.T) {
	t.Parallel()
	h := hostileUpstream(t)
	once := h.command(t, "ingestor", "once", "--region", "US", "--pages", "1")
	if out, err := once.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, c := range []struct {
		args, env        string
		terminal         bool
		zone, color, any bool
	}{
		{"chart", "TERM=xterm", true, true, true, true},
		{"chart --utc", "TERM=xterm", true, false, true, true},
		{"chart", "TERM=xterm TZ=UTC", true, false, true, true},
		{"chart", "TERM=xterm NO_COLOR=1", true, true, false, true},
		{"chart --color always", "TERM=xterm NO_COLOR=1", true, true, true, true},
		{"chart --color never", "TERM=xterm", true, true, false, true},
		{"chart", "TERM=dumb", true, true, false, true},
		{"chart -o json", "TERM=xterm", true, false, false, false},
		{"chart -o yaml --color always", "TERM=xterm", true, false, false, false},
		{"chart", "TERM=xterm", false, false, false, true},
		{"chart --color always", "TERM=xterm", false, false, true, true},
	} {
		cmd := h.command(t, strings.Fields("ingestor "+c.args)...)
		cmd.Env = slices.Concat(h.env, strings.Fields(c.env))
		var seen string
		if c.terminal {
			seen, _ = clitest.Seen(t, 100, cmd)
		} else {
			out, _ := cmd.Output()
			seen = string(out)
		}
		for mark, want := range map[string]bool{" CET)": c.zone, "\x1b[2mREGION": c.color,
			"REGION  ": c.any && !c.color} {
			if strings.Contains(seen, mark) != want {
				t.Errorf("%s, %s, on a terminal %v: %q must be there: %v\n%s", c.args, c.env,
					c.terminal, mark, want, seen)
			}
		}
	}
}

func TestProgressOnATerminal(t *testing.T) {
	t.Parallel()
	_, env := holding(t, 0)
	for _, test := range []struct {
		name  string
		env   []string
		flags []string
		shows string
		hides string
	}{
		{"lines", []string{"TERM=xterm"}, nil, "GB: complete, 2 pages\r\n",
			"level=INFO"},
		{"no colour", []string{"TERM=xterm", "NO_COLOR=1"}, nil, "page 1 of 2", "[2m"},
		{"a ledger that is none", []string{"TERM=xterm", "QUOTA_LEDGER=sqlite:/dev/null/x"}, nil,
			"cannot be reached", "goroutine"},
		{"a dumb one", []string{"TERM=dumb"}, nil, "level=INFO", "page 1"},
		{"logs as JSON", []string{"TERM=xterm"}, []string{"--log-format", "json"},
			`"msg":"region done"`, "page 1"},
	} {
		t.Run(test.name, func(t *testing.T) {
			cmd := exec.CommandContext(t.Context(), "ingestor",
				append([]string{"once", "--region", "US,GB", "--pages", "2"}, test.flags...)...)
			cmd.Env = testEnv("HOME="+t.TempDir(), append(env, test.env...)...)
			cmd.Dir, cmd.Stderr = t.TempDir(), os.Stdout // the terminal
			text, _ := clitest.Seen(t, 120, cmd)
			if !strings.Contains(text, test.shows) || strings.Contains(text, test.hides) {
				t.Errorf("%q must be there, %q must not:\n%q", test.shows, test.hides, text)
			}
		})
	}
}

// fileSize limits the size of the process's files, like a full disk.
func (p *process) fileSize(t *testing.T, most uint64) {
	t.Helper()
	const unlimited = ^uint64(0)
	limit := syscall.Rlimit{Cur: most, Max: unlimited}
	if _, _, errno := syscall.RawSyscall6(syscall.SYS_PRLIMIT64, uintptr(p.Process.Pid),
		syscall.RLIMIT_FSIZE, uintptr(unsafe.Pointer(&limit)), 0, 0, 0); errno != 0 {
		t.Fatal(errno)
	}
}

// TestDaemonOnAFullDisk: the daemon buys nothing that it cannot store, reports that once and on
// /readyz, and continues when there is room.
func TestDaemonOnAFullDisk(t *testing.T) {
	t.Parallel()
	h, env := holding(t, 0)
	env = append(env, "QUOTA_LEDGER="+redistest.Start(t, redistest.Options{}).URL())
	p := begin(t, env, "ingestor", "run", "--config", configFile(t, daemonConfig))
	p.await(t, "tick done")
	ready := func(want int) (body string) {
		t.Helper()
		for end := time.Now().Add(time.Minute); ; time.Sleep(20 * time.Millisecond) {
			resp, err := http.Get(p.url() + "readyz")
			must(t, err)
			text, err := io.ReadAll(resp.Body)
			resp.Body.Close()
			switch {
			case err == nil && resp.StatusCode == want:
				return string(text)
			case time.Now().After(end):
				t.Fatalf("%d %s, %v: %s", resp.StatusCode, text, err, p.stderr.String())
			}
		}
	}
	ready(http.StatusOK)
	p.fileSize(t, 300<<10) // less than the catalogue has
	p.await(t, "the catalogue cannot store pages")
	bought := h.Counts().Requests
	if body := ready(http.StatusServiceUnavailable); !strings.Contains(body, "catalogue: ") {
		t.Errorf("not ready because of %q", body)
	}
	time.Sleep(2 * time.Second) // more ticks are due
	if n := h.Counts().Requests; n > bought {
		t.Errorf("%d pages bought while nothing could be stored", n-bought)
	}
	p.fileSize(t, ^uint64(0))
	ready(http.StatusOK)
	p.await(t, "the catalogue stores pages again")
	ticks := func() int { return strings.Count(p.stderr.String(), "tick done") }
	before, end := ticks(), time.Now().Add(time.Minute)
	for ; ticks() == before; time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatalf("no tick any more: %s", p.stderr.String())
		}
	}
	p.signal(t, syscall.SIGTERM)
	if code := p.code(); code != 0 || strings.Count(p.stderr.String(), "level=ERROR") != 1 {
		t.Errorf("%v: %s", p.ProcessState, p.stderr.String())
	}
}
