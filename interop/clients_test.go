//go:build interop

package interop

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// snippet is the example of docs/proxy.md in a language, with the address of this test's proxy in
// place of the documented one.
func snippet(t *testing.T, language, proxy string) string {
	t.Helper()
	page, err := os.ReadFile(filepath.Join(root, "docs/proxy.md"))
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?s)```" + language + "\n(.*?)```")
	found := block.FindAllStringSubmatch(string(page), -1)
	if len(found) != 1 || !strings.Contains(found[0][1], documented) {
		t.Fatalf("docs/proxy.md has %d examples in %s, want one with the proxy at %s",
			len(found), language, documented)
	}
	return strings.ReplaceAll(found[0][1], documented, proxy)
}

func testdata(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// write writes a program into a folder of its own and returns its path.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// need fails with what to do when a program cannot run in a folder, or lacks its library.
func need(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), name, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v: scripts/install-interop installs it\n%s", cmd, err, out)
	}
}

// python is the system's: another one that is first in PATH does not have the system's packages.
const python = "/usr/bin/python3"

func runPython(t *testing.T, proxy, media string) []byte {
	program := write(t, "client.py", snippet(t, "python", proxy)+testdata(t, "client.py"))
	dir := filepath.Dir(program)
	need(t, dir, python, "-c", "import googleapiclient")
	if err := os.WriteFile(filepath.Join(dir, "youtube.json"), discovery(t), 0o600); err != nil {
		t.Fatal(err)
	}
	return run(t, dir, python, program, media)
}

// discovery is the document that describes the API, of the Go client: the real one is not asked.
func discovery(t *testing.T) []byte {
	t.Helper()
	var module struct{ Dir string }
	out := run(t, root, "go", "list", "-m", "-json", "google.golang.org/api")
	if err := json.Unmarshal(out, &module); err != nil {
		t.Fatal(err)
	}
	document, err := os.ReadFile(filepath.Join(module.Dir, "youtube/v3/youtube-api.json"))
	if err != nil {
		t.Fatal(err)
	}
	return document
}

func runNode(t *testing.T, proxy, media string) []byte {
	modules, err := filepath.Abs("node/node_modules")
	if err != nil {
		t.Fatal(err)
	}
	program := write(t, "client.js", snippet(t, "js", proxy)+testdata(t, "client.js"))
	dir := filepath.Dir(program)
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	need(t, dir, "node", "-e", "require('@googleapis/youtube')")
	return run(t, dir, "node", program, media)
}

func runGo(t *testing.T, proxy, media string) []byte {
	connect := write(t, "connect.go", `package main

import (
	"context"

	"google.golang.org/api/option"
	"google.golang.org/api/youtube/v3"
)

func connect(ctx context.Context) (*youtube.Service, error) {
`+snippet(t, "go", proxy)+`
	return service, err
}
`)
	program := filepath.Join(filepath.Dir(connect), "client.go")
	if err := os.WriteFile(program, []byte(testdata(t, "client.go")), 0o600); err != nil {
		t.Fatal(err)
	}
	return run(t, root, "go", "run", connect, program, media)
}

func runCurl(t *testing.T, proxy, media string) []byte {
	program := write(t, "client.sh", testdata(t, "client.sh"))
	dir := filepath.Dir(program)
	need(t, dir, "curl", "--version")
	return run(t, dir, "sh", program, proxy, media)
}
