//go:build interop

package interop

import (
	"fmt"
	"maps"
	"path/filepath"
	"strings"
	"testing"
)

// TestMoreClients sends two calls by each API's own client through the proxy, and one beyond a
// limit: the ledger has what the stand-in billed.
func TestMoreClients(t *testing.T) {
	dir := t.TempDir()
	modules(t, dir)
	program := write(t, dir, "more.mjs", read(t, "testdata/more.mjs"))
	apis := []struct{ name, limit string }{
		{"azure-openai", "requests"}, {"bedrock", "requests"}, {"gemini", "requests"},
		{"mistral", "requests"}, {"notion", "requests"}, {"openrouter", "requests"},
		{"reddit", "requests"}, {"slack", "messages"},
	}
	credentials, args := "credentials:\n", map[string][]string{}
	for _, a := range apis {
		args[a.name] = nil
		credentials += fmt.Sprintf("  - {name: %s, upstream: %[1]s, api_key: {env: KEY}, limits: ["+
			"{bucket: %s, units: 2, window: 24h}]}\n", a.name, a.limit)
	}
	standins, config := launchStandins(t, args)
	vars := []string{"QUOTA_CONFIG=" + write(t, dir, "quota.yaml", credentials+config), "KEY=any",
		"QUOTA_STATE_DIR=" + dir, "QUOTA_LEDGER=sqlite://" + filepath.Join(dir, "ledger.db")}
	proxy := launch(t, vars, "quotactl", "proxy", "--listen", "127.0.0.1:0")
	root := launch(t, vars, "quotactl", "proxy", "--listen", "127.0.0.1:0", "--credential", "reddit")
	for _, a := range apis {
		t.Run(a.name, func(t *testing.T) {
			client := []string{"node", program, a.name, proxy.address}
			if a.name == "reddit" {
				client = []string{python, "testdata/reddit.py", root.address}
			}
			if denied := string(run(t, ".", client[0], client[1:]...)); denied == "" {
				t.Error("no call was denied")
			}
			var counted struct {
				Units  map[string]int64
				Denied int64
			}
			counts(t, standins[a.name], &counted)
			ledger := map[string]int64{}
			for _, e := range entries(t, vars, "--credential", a.name) {
				if !strings.HasPrefix(e.Bucket, "money") { // the stand-in has no prices
					ledger[e.Bucket] += e.Units
				}
			}
			delete(counted.Units, "money")
			if !maps.Equal(ledger, counted.Units) || len(ledger) == 0 || counted.Denied > 0 {
				t.Errorf("the ledger has %v, the stand-in billed %v", ledger, counted)
			}
		})
	}
}
