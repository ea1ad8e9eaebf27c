package quotabudget_test

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"

	"quotabudget/internal/config"
	"quotabudget/internal/costs"
)

// documents returns the paths of the README, the pages of the manual and the contributors'
// documents.
func documents(t *testing.T) []string {
	t.Helper()
	return append([]string{"README.md", "ARCHITECTURE.md", "CONTRIBUTING.md"},
		glob(t, "docs/*.md")...)
}

// manual is the help of each command, by its words ("quotactl config check").
type manual map[string]string

// fullManual returns the manual of both programs: the help of each program and of all its commands.
func fullManual(t *testing.T) manual {
	t.Helper()
	program(t, "quotactl")
	m, err := manualOnce()
	must(t, err)
	return m
}

// manualOnce reads the manual of the built programs when a test first needs it.
var manualOnce = sync.OnceValues(func() (manual, error) {
	m := manual{}
	return m, errors.Join(m.add("quotactl"), m.add("ingestor"))
})

// add runs a command with --help, and adds its help and that of its subcommands.
func (m manual) add(words ...string) error {
	args := append(slices.Clone(words[1:]), "--help")
	out, err := exec.Command(filepath.Join(programs, words[0]), args...).Output()
	if err != nil {
		return fmt.Errorf("%v --help: %w", words, err)
	}
	m[strings.Join(words, " ")] = string(out)
	for _, command := range commandLine.FindAllStringSubmatch(section(string(out)), -1) {
		err = errors.Join(err, m.add(append(slices.Clone(words), command[1])...))
	}
	return err
}

var commandLine = regexp.MustCompile(`(?m)^  ([a-z]+) +\S`)

// section is the part of a help text that lists commands: from the examples, or the usage, to the
// flags.
func section(help string) string {
	_, list, _ := strings.Cut(help, "[command]\n")
	list, _, _ = strings.Cut(list, "\nFlags:")
	if at := strings.Index(list, "Examples:"); at >= 0 {
		_, list, _ = strings.Cut(list[at:], "\n\n")
	}
	return list
}

// find is the longest command that the words begin with.
func (m manual) find(words []string) (name, help string) {
	for n := len(words); n > 0; n-- {
		name = strings.Join(words[:n], " ")
		if help, ok := m[name]; ok {
			return name, help
		}
	}
	return "", ""
}

var (
	code    = regexp.MustCompile("(?s)```[a-z]*\n(.*?)```|`((?:[^`\n]+\n?)+)`")
	invoked = regexp.MustCompile(`(?m)(?:^|[\s(;])` +
		`((?:quotactl|ingestor)(?: (?:[^|\\&;)#\n]|\\.)*)?)`)
	flagForm = regexp.MustCompile(`(?:^|[\s\[{(])(--?[a-z][a-z-]*)`)
)

// commands are the calls of the programs in a document's code.
func commands(text string) []string {
	var list []string
	for _, c := range code.FindAllStringSubmatch(text, -1) {
		span := strings.Join(strings.Fields(c[2]), " ")
		if strings.Contains(span, "[-") || strings.Contains(span, "{-") { // | is between alternatives
			span = strings.ReplaceAll(span, "|", `\|`)
		}
		for _, call := range invoked.FindAllStringSubmatch(c[1]+span, -1) {
			list = append(list, strings.ReplaceAll(call[1], `\|`, "|"))
		}
	}
	return list
}

// Every command and flag that the documents name exists.
func TestDocumentsNameRealCommands(t *testing.T) {
	t.Parallel()
	m := fullManual(t)
	checked := make(map[string]bool)
	for _, path := range documents(t) {
		for _, call := range commands(read(t, path)) {
			words := strings.Fields(call)
			name, help := m.find(words)
			if len(words) > 1 && !strings.Contains(name, " ") && !strings.HasPrefix(words[1], "-") {
				t.Errorf("%s: no command %q", path, call)
				continue
			}
			for _, f := range flagForm.FindAllStringSubmatch(call, -1) {
				if !regexp.MustCompile(`(?m)(?:^ {2,6}|, )` + f[1] + `\b`).MatchString(help) {
					t.Errorf("%s: %q: %s has no flag %s", path, call, name, f[1])
				}
			}
			checked[name] = true
		}
	}
	for name := range m {
		if does(name, m[name]) && !checked[name] {
			t.Errorf("no document names %s", name)
		}
	}
}

var (
	pathForm = regexp.MustCompile(`^(?:\.ci|cmd|deploy|docs|internal|lua|scripts)` +
		`(?:/[\w.*-]+)*/?$|^[\w.-]+\.(?:go|md|mod|lua|sql)$`)
	makeForm = regexp.MustCompile(`\bmake ([a-z-]+)`)
	testForm = regexp.MustCompile(`^(?:Test|Benchmark)[A-Z]\w*$`)
)

// Every file, test and make target that the documents name exists.
func TestDocumentsNameRealFiles(t *testing.T) {
	tests := declared(t)
	makefile := read(t, "Makefile")
	for _, path := range documents(t) {
		text := read(t, path)
		var named []string
		for _, c := range code.FindAllStringSubmatch(text, -1) {
			switch {
			case pathForm.MatchString(c[2]):
				named = append(named, c[2])
			case testForm.MatchString(c[2]) && !tests[c[2]]:
				t.Errorf("%s: no test %s", path, c[2])
			}
			for _, target := range makeForm.FindAllStringSubmatch(c[1]+c[2], -1) {
				if !strings.Contains(makefile, "\n"+target[1]+":") {
					t.Errorf("%s: make has no target %s", path, target[1])
				}
			}
		}
		for _, name := range named {
			if files, err := filepath.Glob(name); err != nil || len(files) == 0 {
				t.Errorf("%s: no file %s", path, name)
			}
		}
	}
}

// declared are the names of all tests and benchmarks of the module.
func declared(t *testing.T) map[string]bool {
	t.Helper()
	names := make(map[string]bool)
	form := regexp.MustCompile(`(?m)^func ((?:Test|Benchmark)\w+)\(`)
	for _, path := range files(t, "", "_test.go") {
		for _, f := range form.FindAllStringSubmatch(read(t, path), -1) {
			names[f[1]] = true
		}
	}
	return names
}

// The example configuration is one that the programs take.
func TestExampleConfiguration(t *testing.T) {
	cfg, err := config.Load(t.Context(), "quota.example.yaml", func(string) string { return "" })
	must(t, err)
	key1 := cfg.Credentials[0]
	got := fmt.Sprint(cfg.Ledger, " ", cfg.Catalog, " ", key1.Name, " ", len(key1.Limits), " ",
		key1.Open, " ", cfg.Ingest.Regions, " ", cfg.Ingest.Pages, " ", cfg.Costs.ProfileName())
	want := "sqlite:///var/lib/quota/ledger.db sqlite:///var/lib/quota/catalog.db " +
		"key1 4 [youtube.videos.list] " + "[US GB DE FR IN BR AU CA] 4 current"
	if got != want {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// The examples of configuration in the documents are such that the programs take them, and so are
// those of price lists, which begin with their hosts. Those of a page that begin with their names
// are files of one folder.
func TestDocumentedConfiguration(t *testing.T) {
	home := func(name string) string { return map[string]string{"HOME": t.TempDir()}[name] }
	for _, path := range documents(t) {
		yaml := regexp.MustCompile("(?s)```yaml\n(?:# ([a-z]+\\.yaml)\n)?(.*?)```")
		dir := t.TempDir()
		for i, block := range yaml.FindAllStringSubmatch(read(t, path), -1) {
			file := filepath.Join(dir, cmp.Or(block[1], "quota.yaml"))
			must(t, os.WriteFile(file, []byte(block[2]), 0o600))
			var err error
			if strings.HasPrefix(block[2], "hosts:") {
				_, err = costs.ParseList("costs.yaml", []byte(block[2]), nil)
			} else {
				_, err = config.Load(t.Context(), file, home)
			}
			if err != nil {
				t.Errorf("%s: YAML block %d: %v", path, i+1, err)
			}
		}
	}
}
