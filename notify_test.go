package quotabudget_test

import (
	"bufio"
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"quotabudget/internal/ledger/redistest"
)

const hookSecret = "whsec_dHdlbnR5LWZvdXIgYnl0ZXMgb2Yga2V5"

// hosts are programs that share a Redis ledger with a test clock, each started in one folder.
type hosts struct {
	*testing.T
	dir   string
	redis *redistest.Server
}

// newHosts writes quota.yaml, which notifies a URL, and quiet.yaml, which notifies nobody.
func newHosts(t *testing.T, url string) *hosts {
	h := &hosts{t, t.TempDir(), redistest.Start(t, redistest.Options{Clock: true})}
	h.redis.SetNow(t, time.Now())
	text := fmt.Sprintf("ledger: %s\ncredentials:\n"+
		"  - {name: key1, limits: [{bucket: default, units: 100, window: 24h}]}\n"+
		"ingest: {regions: [], listen: \"\"}\n", h.redis.URL())
	notify := "notify: {url: \"" + url + "services/T012345\", secret: {env: HOOK}, at: [80%, 100%]}\n"
	must(t, os.WriteFile(filepath.Join(h.dir, "quiet.yaml"), []byte(text), 0o600))
	must(t, os.WriteFile(filepath.Join(h.dir, "quota.yaml"), []byte(text+notify), 0o600))
	return h
}

func (h *hosts) command(name string, args ...string) *exec.Cmd {
	c := exec.Command(program(h.T, name), args...)
	c.Dir = h.dir
	c.Env = []string{"HOME=" + h.dir, "PATH=" + os.Getenv("PATH"), "HOOK=" + hookSecret,
		"YOUTUBE_API_KEY=any"}
	return c
}

func (h *hosts) run(name string, args ...string) string {
	h.Helper()
	out, err := h.command(name, args...).CombinedOutput()
	if err != nil {
		h.Errorf("%s %q: %v\n%s", name, args, err, out)
	}
	return string(out)
}

// start starts a program until the test ends, and returns what it prints.
func (h *hosts) start(c *exec.Cmd) *bufio.Reader {
	h.Helper()
	out, err := c.StdoutPipe()
	must(h, err)
	must(h, c.Start())
	h.Cleanup(func() { c.Process.Kill(); c.Wait() })
	return bufio.NewReader(out)
}

func (h *hosts) line(r *bufio.Reader) string {
	h.Helper()
	text, err := r.ReadString('\n')
	must(h, err)
	return strings.TrimSpace(text)
}

// Three daemons send one notification to the receiver of the manual.
func TestNotificationOfThreeDaemons(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, err := exec.Command("go", "build", "-o", dir, "./examples/webhook").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	receiver := exec.Command(filepath.Join(dir, "webhook"), "127.0.0.1:0")
	receiver.Env = []string{"QUOTA_NOTIFY_SECRET=" + hookSecret}
	got := (&hosts{T: t}).start(receiver)
	h := newHosts(t, (&hosts{T: t}).line(got))
	h.run("quotactl", "spend", "--units", "80", "--config", "quiet.yaml")
	var daemons []*exec.Cmd
	var logs []*bufio.Reader
	for range 3 {
		c := h.command("ingestor", "run")
		stderr, err := c.StderrPipe()
		must(t, err)
		must(t, c.Start())
		daemons, logs = append(daemons, c), append(logs, bufio.NewReader(stderr))
	}
	log := ""
	for _, r := range logs { // a program that is still starting exits with 1
		for line := ""; !strings.Contains(line, "lanes run"); log += line + "\n" {
			line = h.line(r)
		}
	}
	if text := h.line(got); !strings.HasPrefix(text, "key1: 80% of default 24h is used") {
		t.Error(text)
	}
	h.run("quotactl", "spend", "--units", "20", "--config", "quiet.yaml")
	if text := h.line(got); !strings.HasPrefix(text, "key1: 100% of default 24h is used") {
		t.Error(text)
	}
	for i, c := range daemons {
		must(t, c.Process.Signal(syscall.SIGTERM))
		body, _ := io.ReadAll(logs[i])
		log += string(body)
		if err := c.Wait(); err != nil {
			t.Errorf("%v: %s", err, body)
		}
	}
	must(t, receiver.Process.Kill())
	if body, _ := io.ReadAll(got); len(body) > 0 {
		t.Errorf("a third notification: %s\n%s", body, log)
	}
}

// holding is a receiver that answers when it is released. It hands on the ID of each request.
func holding(t *testing.T) (url string, ids chan string, release func()) {
	ids = make(chan string, 10)
	released := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		ids <- r.Header.Get("webhook-id")
		select {
		case <-released:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(server.Close)
	return server.URL + "/", ids, func() { close(released) }
}

// A command that is killed while it sends leaves the claim leased: the next one sends when the
// lease is over, with the same ID.
func TestNotificationOfKilledCommand(t *testing.T) {
	t.Parallel()
	url, ids, release := holding(t)
	h := newHosts(t, url)
	c := h.command("quotactl", "spend", "--units", "80")
	printed := h.start(c)
	first := <-ids
	if text := h.line(printed); !strings.HasPrefix(text, "charged 80 units") {
		t.Errorf("printed before it was sent: %s", text)
	}
	must(t, c.Process.Kill())
	release()
	h.run("quotactl", "spend", "--units", "1")
	if len(ids) != 0 {
		t.Error("sent although the claim was leased")
	}
	h.redis.SetNow(t, time.Now().Add(61*time.Second))
	h.run("quotactl", "exec", "--units", "1", "--", "true")
	if len(ids) != 1 || <-ids != first {
		t.Error("not sent again with its ID")
	}
	h.run("quotactl", "exec", "--units", "1", "--", "true")
	if len(ids) != 0 {
		t.Error("sent twice")
	}
}

// While a receiver hangs, the server that notifies it charges.
func TestChargeWaitsForNoNotification(t *testing.T) {
	t.Parallel()
	url, ids, release := holding(t)
	h := newHosts(t, url)
	h.run("quotactl", "spend", "--units", "80", "--config", "quiet.yaml")
	server := h.line(h.start(h.command("quotactl", "serve", "--listen", "127.0.0.1:0")))
	<-ids
	response, err := http.Post(server+"v1/charges", "application/json",
		strings.NewReader(`{"units":1}`))
	must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	must(t, err)
	if response.StatusCode != http.StatusOK || !bytes.Contains(body, []byte(`"default":19`)) {
		t.Errorf("%s: %s", response.Status, body)
	}
	release()
}
