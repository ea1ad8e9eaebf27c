package quotabudget_test

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

var metricsAt = regexp.MustCompile(`(?:health and metrics are served"|msg=serving) address=(\S+)`)

// TestMetricsOut: the daemon, the proxy, the servers and a sweep send their metrics to a collector,
// and those that serve them do so as OpenMetrics to a scraper that asks for it.
func TestMetricsOut(t *testing.T) {
	t.Parallel()
	services := make(chan string, 1000)
	collector := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		services <- serviceName(t, r)
	}))
	t.Cleanup(collector.Close)
	h := newHosts(t, "")
	text := read(t, filepath.Join(h.dir, "quiet.yaml"))
	text = strings.Replace(text, `listen: ""`, `listen: "127.0.0.1:0"`, 1)
	text = strings.Replace(text, "name: key1", "name: key1, api_key: {env: YOUTUBE_API_KEY}", 1)
	must(t, os.WriteFile(filepath.Join(h.dir, "quota.yaml"), []byte(text), 0o600))
	env := []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL, "OTEL_METRIC_EXPORT_INTERVAL=100"}
	for service, args := range map[string][]string{
		"ingestor":    {"ingestor", "run"},
		"quota-proxy": {"quotactl", "proxy", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"},
		"quota-serve": {"quotactl", "serve", "--listen", "127.0.0.1:0"},
	} {
		c := h.command(args[0], args[1:]...)
		c.Env = append(c.Env, env...)
		logs, err := c.StderrPipe()
		must(t, err)
		h.start(c)
		openMetrics(t, bufio.NewScanner(logs))
		for <-services != service {
		}
		c.Process.Kill()
	}
	once := h.command("ingestor", "once", "--region", "US")
	once.Env = append(once.Env, append(env, "YOUTUBE_ENDPOINT="+collector.URL)...)
	once.CombinedOutput() // the collector is no upstream
	for <-services != "ingestor-once" {
	}
}

// openMetrics scrapes the address that a program logs.
func openMetrics(t *testing.T, log *bufio.Scanner) {
	t.Helper()
	var at []string
	for at == nil && log.Scan() {
		at = metricsAt.FindStringSubmatch(log.Text())
	}
	if at == nil {
		t.Fatal("serves no metrics")
	}
	go func() {
		for log.Scan() { // so that the program never waits for a reader
		}
	}()
	if ready, err := http.Get("http://" + at[1] + "/v1/budgets"); err == nil { // to be measured
		ready.Body.Close()
	}
	r, err := http.NewRequest(http.MethodGet, "http://"+at[1]+"/metrics", nil)
	must(t, err)
	r.Header.Set("Accept", "application/openmetrics-text;version=1.0.0")
	response, err := http.DefaultClient.Do(r)
	must(t, err)
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || !strings.HasSuffix(string(body), "# EOF\n") ||
		!strings.HasPrefix(response.Header.Get("Content-Type"), "application/openmetrics-text") {
		t.Errorf("%v: %v %s", err, response.Header, body)
	}
}

// serviceName returns the service of metrics in OTLP; "" for another request.
func serviceName(t *testing.T, r *http.Request) string {
	if r.URL.Path != "/v1/metrics" {
		return ""
	}
	var data struct {
		ResourceMetrics []struct {
			Resource struct {
				Attributes []struct {
					Key   string
					Value struct{ StringValue string }
				}
			}
		}
	}
	must(t, json.NewDecoder(r.Body).Decode(&data))
	return data.ResourceMetrics[0].Resource.Attributes[0].Value.StringValue
}
