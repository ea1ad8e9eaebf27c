package quotabudget_test

import (
	"errors"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

var flagLine = regexp.MustCompile(`(?m)^ {2,6}(?:-\w, )?(--[a-z-]+)`)

// The page on commands has every flag of every command. (That it has no other, and every command,
// is in TestDocumentsNameRealCommands.) The help of every command has examples.
func TestEveryFlagIsDocumented(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/commands.md")
	items := jsonItem.FindAllString(page, -1)
	for name, help := range learned(t) {
		own, global, _ := strings.Cut(help, "\nGlobal Flags:")
		_, own, _ = strings.Cut(own, "\nFlags:")
		named := regexp.MustCompile("^- (?:`[^`]*`, )?`" + name + "[\\s`]")
		at := slices.IndexFunc(items, named.MatchString)
		if !does(name, help) {
			continue
		}
		if at < 0 {
			t.Errorf("docs/commands.md has no item for %s", name)
			continue
		}
		if !strings.Contains(help, "\nExamples:\n") {
			t.Errorf("%s --help has no examples", name)
		}
		for _, f := range flagLine.FindAllStringSubmatch(own, -1) {
			if f[1] != "--help" && !strings.Contains(items[at], f[1]) {
				t.Errorf("docs/commands.md: %s has a flag %s", name, f[1])
			}
		}
		for _, f := range flagLine.FindAllStringSubmatch(global, -1) {
			if !strings.Contains(page, "`"+f[1]) {
				t.Errorf("docs/commands.md: every command has a flag %s", f[1])
			}
		}
	}
}

// The page on commands lists every exit code of the programs, and no other.
func TestEveryExitCodeIsDocumented(t *testing.T) {
	want := map[string]bool{"0": true}
	constant := regexp.MustCompile(`\bExit[A-Z]\w* *= (\d+)`)
	for _, file := range glob(t, "internal/cli/*.go") {
		for _, code := range constant.FindAllStringSubmatch(read(t, file), -1) {
			want[code[1]] = true
		}
	}
	item := regexp.MustCompile(`(?m)^- (\d+): `)
	for _, code := range item.FindAllStringSubmatch(read(t, "docs/commands.md"), -1) {
		if !want[code[1]] {
			t.Errorf("docs/commands.md: no program ends with %s", code[1])
		}
		delete(want, code[1])
	}
	for code := range want {
		t.Errorf("docs/commands.md: no item for exit code %s", code)
	}
}

// TestHelpFits: the help of every command fits a terminal of 80 columns.
func TestHelpFits(t *testing.T) {
	t.Parallel()
	for name, help := range learned(t) {
		for line := range strings.Lines(help) {
			if line = strings.TrimSuffix(line, "\n"); utf8.RuneCountInString(line) > 80 {
				t.Errorf("%s --help is wider than 80 columns: %s", name, line)
			}
		}
	}
}

// TestOtherProgram: a command that only the other program has is refused with that program's name.
func TestOtherProgram(t *testing.T) {
	t.Parallel()
	programs := map[string]string{"quotactl": "ingestor", "ingestor": "quotactl"}
	all := learned(t)
	for name := range all {
		words := strings.Fields(name)
		if len(words) != 2 {
			continue
		}
		other := programs[words[0]]
		if _, both := all[other+" "+words[1]]; both {
			continue
		}
		out, err := exec.CommandContext(t.Context(), program(t, other), words[1]).CombinedOutput()
		ended, ok := errors.AsType[*exec.ExitError](err)
		if !ok || ended.ExitCode() != 64 || !strings.Contains(string(out), "it is "+name+"\n") {
			t.Errorf("%s %s: %v, %s", other, words[1], err, out)
		}
	}
}
