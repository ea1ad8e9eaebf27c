package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"quotabudget/internal/ledger/redistest"
)

// agent is a client of quotactl mcp, which runs in its own process.
type agent struct {
	*shell
	session *mcp.ClientSession
}

func newAgent(t *testing.T, ledger string, args ...string) *agent {
	t.Helper()
	a := &agent{shell: newShell(t, ledger, "credentials:\n"+
		"  - {name: a1, limits: [{bucket: default, units: 100, window: 24h, headroom: 10}]}\n"+
		"  - {name: b1, limits: [{bucket: default, units: 9, window: 24h}]}\n")}
	client := mcp.NewClient(&mcp.Implementation{Name: "agent"}, nil)
	var err error
	a.session, err = client.Connect(t.Context(), &mcp.CommandTransport{Command: a.mcp(args...)}, nil)
	must(t, err)
	t.Cleanup(func() { must(t, a.session.Close()) })
	return a
}

func (a *agent) mcp(args ...string) *exec.Cmd {
	c := a.command(append([]string{"mcp"}, args...)...)
	c.Stderr = os.Stderr
	return c
}

func (a *agent) tools() (names []string) {
	a.Helper()
	list, err := a.session.ListTools(a.Context(), nil)
	must(a.T, err)
	for _, tool := range list.Tools {
		names = append(names, tool.Name)
	}
	slices.Sort(names)
	return names
}

// call calls a tool. Its text must be the JSON of its structured content, if any.
func (a *agent) call(tool, arguments string) (text string, failed bool) {
	a.Helper()
	result, err := a.session.CallTool(a.Context(), &mcp.CallToolParams{Name: tool,
		Arguments: json.RawMessage(arguments)})
	if err != nil {
		return err.Error(), true
	}
	text = result.Content[0].(*mcp.TextContent).Text
	if result.StructuredContent != nil {
		structured, err := json.Marshal(result.StructuredContent)
		must(a.T, err)
		var same any
		must(a.T, json.Unmarshal([]byte(text), &same))
		if again, err := json.Marshal(same); err != nil || !bytes.Equal(again, structured) {
			a.Errorf("%s: the text is %s, the content %s", tool, again, structured)
		}
	}
	return text, result.IsError
}

// TestAgent compares each response of the tools with its expected words.
func TestAgent(t *testing.T) {
	t.Parallel()
	server := redistest.Start(t, redistest.Options{AOF: true})
	a := newAgent(t, server.URL(), "--allow-spend")
	if got := fmt.Sprint(a.tools()); got != "[explain forecast hold settle status]" {
		t.Errorf("the tools are %s", got)
	}
	hold := ""
	calls := func(failed bool, rows ...[3]string) {
		t.Helper()
		for _, row := range rows {
			text, got := a.call(row[0], strings.ReplaceAll(row[1], "HOLD", hold))
			if got != failed || !strings.Contains(text, row[2]) {
				t.Errorf("%s %s: %s\nfailed: %v, want %s", row[0], row[1], text, got, row[2])
			}
			if after, ok := strings.CutPrefix(text, `{"hold":"`); ok {
				hold, _, _ = strings.Cut(after, `"`)
			}
		}
	}
	calls(false, [][3]string{
		{"hold", `{"credential":"a1","units":40,"ttl":"1h","id":"x","note":"n"}`, `"default":40`},
		{"hold", `{"credential":"a1","units":40,"ttl":"1h","id":"x","note":"n"}`, `"default":50`},
		{"explain", `{"credential":"a1","units":60}`, `"by":[{"labels":{"note":"n","reservation"`},
		{"settle", `{"hold":"HOLD","costs":{"default":70}}`, `{"units":{"default":70}`},
		{"settle", `{"hold":"HOLD","costs":{"default":70}}`, `"remaining":{"default":20}`},
		{"explain", `{"credential":"b1"}`, `"allowed":true,"units":{"default":1}`},
		{"explain", `{"credential":"a1","units":101}`, `"never":true`},
		{"forecast", `{"bucket":"default"}`, `"credential":"b1"`},
	}...)
	calls(true, [][3]string{
		{"hold", `{"credential":"a1","units":21,"ttl":"1h"}`, `"retry_at":"20`},
		{"hold", `{"credential":"a1","units":99,"ttl":"1h"}`, `"never":true`},
		{"hold", `{"credential":"a1","units":1,"ttl":"1h","manual":true}`, "manual"},
		{"hold", `{"credential":"a1","units":1,"ttl":"soon"}`, "must be a duration"},
		{"hold", `{"credential":"a1","units":1}`, "ttl"},
		{"hold", `{"units":1,"ttl":"1h"}`, "several credentials"},
		{"settle", `{"hold":"HOLD","costs":{"default":3}}`, "already settled with"},
		{"settle", `{"hold":"default.06fmjq2kx4a9bc/../x","costs":{"default":3}}`, "not a reservation"},
		{"settle", `{"hold":"","costs":{"default":3}}`, `"" is not a reservation ID`},
		{"settle", `{"hold":"..","costs":{"default":3}}`, `".." is not a reservation ID`},
		{"explain", `{"units":1}`, "several credentials"},
		{"explain", `{"credential":"a1","units":-1}`, "units"},
		{"explain", `{"credential":"a1","bucket":"nope"}`, "nope"},
		{"forecast", `{"bucket":"nope"}`, "nope"},
		{"spend", `{}`, "unknown tool"},
	}...)
	status, _ := a.call("status", `{}`)
	printed, err := a.command("status", "-o", "json").Output()
	must(t, err)
	if status != strings.TrimSpace(string(printed)) {
		t.Errorf("the tool returns %s\nthe command %s", status, printed)
	}

	server.Kill()
	calls(true, [][3]string{
		{"status", `{}`, "cannot be reached"},
		{"explain", `{"credential":"a1"}`, "cannot be reached"},
		{"hold", `{"credential":"a1","units":1,"ttl":"1h"}`, `"status":503`},
	}...)
	server.Restart(t)
	for failed := true; failed && t.Context().Err() == nil; { // until the client dials again
		_, failed = a.call("hold", `{"credential":"a1","units":20,"ttl":"1h"}`)
	}
}

// TestAgentReads: without the flag, no tool spends.
func TestAgentReads(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "sqlite://"+filepath.Join(t.TempDir(), "l.db"))
	if got := fmt.Sprint(a.tools()); got != "[explain forecast status]" {
		t.Errorf("the tools are %s", got)
	}
	text, failed := a.call("hold", `{"credential":"a1","units":1,"ttl":"1h"}`)
	if !failed || !strings.Contains(text, "unknown tool") {
		t.Errorf("hold: %s", text)
	}
}

// TestAgentLines: every call before the end of the input is answered, invalid lines are refused,
// and an interrupt ends the program.
func TestAgentLines(t *testing.T) {
	t.Parallel()
	a := newAgent(t, "sqlite://"+filepath.Join(t.TempDir(), "l.db"))
	const hello = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":` +
		`"2025-06-18","capabilities":{},"clientInfo":{"name":"a","version":"1"}}}`
	steps := []struct{ line, reply string }{
		{hello, `"protocolVersion":"2025-06-18"`},
		{`{"jsonrpc":"2.0","method":"notifications/initialized"}`, ""},
		{`{"jsonrpc":`, `"id":null,"error":{"code":-32700`},
		{"\xff\x00", `"id":null,"error":{"code":-32700`},
		{"", ""},
		{`[]`, `"id":null,"error":{"code":-32600`},
		{`{"id":3}`, `"id":null,"error":{"code":-32600`},
		// read as numbers of 53 bits, these would get answers with other ids
		{`{"jsonrpc":"2.0","id":1795359845123456789,"method":"ping"}`,
			`"id":null,"error":{"code":-32600`},
		{`{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, `"id":null,"error":{"code":-32600`},
		{`{"jsonrpc":"2.0","id":9007199254740993,"method":"ping"}`, `"code":-32600`},
		{`{"jsonrpc":"2.0","id":-9007199254740991,"method":"ping"}`,
			`"id":-9007199254740991,"result":{}`},
		{`{"jsonrpc":"2.0","id":4,"result":{}}`, ""},
		{`"` + strings.Repeat("x", 3*maxLine) + `"`, `"id":null,"error":{"code":-32600`},
		{`{"jsonrpc":"2.0","id":5,"method":"none"}`, `"id":5,"error":{"code":-32601`},
		{`{"jsonrpc":"2.0","id":"s","method":"ping"}` + "\r", `"id":"s","result":{}`},
		{`{"jsonrpc":"2.0","id":6,"method":"tools/call","params":{"name":"status"}}`,
			`"id":6,"result":{"content":`},
	}
	var in []string
	for _, s := range steps {
		in = append(in, s.line)
	}
	c := a.mcp()
	c.Stdin = strings.NewReader(strings.Join(in, "\n")) // the last line has no end
	out, err := c.Output()
	must(t, err)
	replies := strings.Split(strings.TrimSpace(string(out)), "\n")
	for _, s := range steps {
		if s.reply == "" {
			continue
		}
		if len(replies) == 0 || !strings.Contains(replies[0], s.reply) {
			t.Fatalf("%.99q: the replies left are %q, want %s", s.line, replies, s.reply)
		}
		replies = replies[1:]
	}
	if len(replies) > 0 {
		t.Errorf("further replies: %q", replies)
	}

	c = a.mcp()
	to, err := c.StdinPipe()
	must(t, err)
	from, err := c.StdoutPipe()
	must(t, err)
	must(t, c.Start())
	fmt.Fprintln(to, hello)
	if _, err := from.Read(make([]byte, 4096)); err != nil {
		t.Error(err)
	}
	must(t, c.Process.Signal(os.Interrupt))
	must(t, c.Wait())
}
