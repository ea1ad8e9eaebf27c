package deploy_test

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write THIRD_PARTY_NOTICES")

const noticesFile = "../THIRD_PARTY_NOTICES"

// TestNotices requires that THIRD_PARTY_NOTICES has the licences of all modules that are linked
// into the programs. make notices writes it.
func TestNotices(t *testing.T) {
	t.Parallel()
	want := notices(t)
	if *update {
		must(t, os.WriteFile(noticesFile, []byte(want), 0o644))
	}
	if got := read(t, noticesFile); got != want {
		t.Error("the linked modules have changed: run make notices, and look at what is new")
	}
}

const noticesHead = `Third-party software in quotactl and ingestor

The programs are linked with the Go standard library and with the modules below. Each licence is
printed once, below the names of all that use it. Written by make notices from what is linked on
Linux.
`

// notices returns the texts of the licences, each once, with the modules under it.
func notices(t *testing.T) string {
	t.Helper()
	owners := make(map[string][]string) // by text
	for _, m := range linked(t) {
		files := m.licences(t)
		if len(files) == 0 {
			t.Errorf("%s has no file with a licence", m.name)
		}
		for _, file := range files {
			text := read(t, filepath.Join(m.dir, file))
			text = strings.TrimSpace(strings.ReplaceAll(text, "\r\n", "\n"))
			owners[text] = append(owners[text], m.name+": "+file)
		}
	}
	texts := slices.SortedFunc(maps.Keys(owners), func(a, b string) int {
		return strings.Compare(owners[a][0], owners[b][0])
	})
	var out strings.Builder
	out.WriteString(noticesHead)
	for _, text := range texts {
		fmt.Fprintf(&out, "\n%s\n%s\n%s\n\n%s\n", strings.Repeat("=", 80),
			strings.Join(owners[text], "\n"), strings.Repeat("-", 80), text)
	}
	return out.String()
}

// module is a linked module, with the folders of its linked packages.
type module struct {
	name     string // and its version
	dir      string
	packages []string
}

// linked returns the modules of the programs, sorted by name, and the standard library.
func linked(t *testing.T) []*module {
	t.Helper()
	touch(t)
	form := "{{with .Module}}{{if not .Main}}{{.Path}} {{.Version}}\t{{.Dir}}{{end}}{{end}}" +
		"\t{{.Dir}}"
	cmd := exec.Command("go", "list", "-deps", "-f", form, "../cmd/ingestor", "../cmd/quotactl")
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	out, err := cmd.Output()
	must(t, err)
	root := strings.TrimSpace(tool(t, "go", "env", "GOROOT"))
	known := map[string]*module{
		"": {name: "the Go standard library", dir: root, packages: []string{root}},
	}
	for line := range strings.Lines(string(out)) {
		fields := strings.Split(strings.TrimSpace(line), "\t")
		if len(fields) != 3 {
			continue
		}
		if known[fields[0]] == nil {
			known[fields[0]] = &module{name: fields[0], dir: fields[1]}
		}
		known[fields[0]].packages = append(known[fields[0]].packages, fields[2])
	}
	byName := func(a, b *module) int { return strings.Compare(a.name, b.name) }
	return slices.SortedFunc(maps.Values(known), byName)
}

var licence = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([-._].*)?$`)

// licences returns the licence files in the folders from each package up to the module's root, and
// in the root's folder licenses.
func (m *module) licences(t *testing.T) []string {
	t.Helper()
	found, _ := filepath.Glob(filepath.Join(m.dir, "licenses", "*"))
	seen := make(map[string]bool)
	for _, dir := range m.packages {
		for ; strings.HasPrefix(dir, m.dir) && !seen[dir]; dir = filepath.Dir(dir) {
			seen[dir] = true
			entries, err := os.ReadDir(dir)
			must(t, err)
			for _, e := range entries {
				code := strings.HasSuffix(e.Name(), ".go")
				if e.Type().IsRegular() && licence.MatchString(e.Name()) && !code {
					found = append(found, filepath.Join(dir, e.Name()))
				}
			}
		}
	}
	for i, file := range found {
		found[i] = strings.TrimPrefix(filepath.ToSlash(file), m.dir+"/")
	}
	return slices.Compact(slices.Sorted(slices.Values(found)))
}
