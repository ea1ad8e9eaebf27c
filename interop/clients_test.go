//go:build interop

package interop

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// snippet is the examples of a page in a language, with the address of this test's server in place
// of the documented one.
func snippet(t *testing.T, page, language, documented, address string) string {
	t.Helper()
	block := regexp.MustCompile("(?s)```" + language + "\n(.*?)```")
	var all []string
	for _, match := range block.FindAllStringSubmatch(read(t, filepath.Join(root, page)), -1) {
		if !strings.Contains(match[1], documented) {
			t.Fatalf("%s: an example in %s is not of a server at %s", page, language, documented)
		}
		all = append(all, strings.ReplaceAll(match[1], documented, address))
	}
	if len(all) == 0 {
		t.Fatalf("%s has no example in %s", page, language)
	}
	return strings.Join(all, "")
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	must(t, err)
	return string(text)
}

// write writes a file into a folder or one of its subfolders, and returns the file's path.
func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	must(t, os.MkdirAll(filepath.Dir(path), 0o755))
	must(t, os.WriteFile(path, []byte(text), 0o600))
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

// manual describes the proxy for YouTube's clients.
const manual = "docs/proxy.md"

// python is the system's: another one that is first in PATH does not have the system's packages.
const python = "/usr/bin/python3"

func runPython(t *testing.T, proxy, media string) []byte {
	dir := t.TempDir()
	program := write(t, dir, "client.py",
		snippet(t, manual, "python", documented, proxy)+read(t, "testdata/client.py"))
	need(t, dir, python, "-c", "import googleapiclient")
	// The document that describes the API is the Go client's: the real one is not asked.
	api := run(t, root, "go", "list", "-m", "-f", "{{.Dir}}", "google.golang.org/api")
	write(t, dir, "youtube.json",
		read(t, filepath.Join(strings.TrimSpace(string(api)), "youtube/v3/youtube-api.json")))
	return run(t, dir, python, program, media)
}

// modules lets programs of Node in a folder import what npm has installed.
func modules(t *testing.T, dir string) {
	t.Helper()
	installed, err := filepath.Abs("node/node_modules")
	must(t, err)
	must(t, os.Symlink(installed, filepath.Join(dir, "node_modules")))
}

func runNode(t *testing.T, proxy, media string) []byte {
	dir := t.TempDir()
	program := write(t, dir, "client.js",
		snippet(t, manual, "js", documented, proxy)+read(t, "testdata/client.js"))
	modules(t, dir)
	need(t, dir, "node", "-e", "require('@googleapis/youtube')")
	return run(t, dir, "node", program, media)
}

func runGo(t *testing.T, proxy, media string) []byte {
	connect := write(t, t.TempDir(), "connect.go", `package main

import (
	"context"

	"google.golang.org/api/option"
	"google.golang.org/api/youtube/v3"
)

func connect(ctx context.Context) (*youtube.Service, error) {
`+snippet(t, manual, "go", documented, proxy)+`
	return service, err
}
`)
	program := write(t, filepath.Dir(connect), "client.go", read(t, "testdata/client.go"))
	return run(t, root, "go", "run", connect, program, media)
}

func runCurl(t *testing.T, proxy, media string) []byte {
	program := write(t, t.TempDir(), "client.sh", read(t, "testdata/client.sh"))
	need(t, root, "curl", "--version")
	return run(t, filepath.Dir(program), "sh", program, proxy, media)
}
