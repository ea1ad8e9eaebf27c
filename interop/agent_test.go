//go:build interop

package interop

import (
	"os/exec"
	"strings"
	"testing"
)

// TestAgent has the official client of the Model Context Protocol use quotactl mcp.
func TestAgent(t *testing.T) {
	s := startLedger(t, "", hourly, "")
	dir := t.TempDir()
	modules(t, dir)
	need(t, dir, "node", "-e", "import('@modelcontextprotocol/sdk/client/index.js')")
	c := exec.Command("node", write(t, dir, "agent.mjs", read(t, "testdata/agent.mjs")), "quotactl")
	c.Dir, c.Env = dir, append(c.Environ(), s.vars...)
	out, err := c.CombinedOutput()
	const want = `{"tools":"explain forecast hold settle status",` +
		`"denied":true,"remaining":93,"used":7}`
	if got := strings.TrimSpace(string(out)); err != nil || got != want {
		t.Errorf("%v: %s\nwant %s", err, got, want)
	}
}
