package quotabudget_test

import (
	"regexp"
	"strings"
	"testing"
)

var flagLine = regexp.MustCompile(`(?m)^ {2,6}(?:-\w, )?(--[a-z-]+)`)

// The page on commands has every flag of every command. (That it has no other, and every command,
// is in TestDocumentsNameRealCommands.) The help of every command has examples.
func TestEveryFlagIsDocumented(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/commands.md")
	for name, help := range learned(t) {
		own, global, _ := strings.Cut(help, "\nGlobal Flags:")
		_, own, _ = strings.Cut(own, "\nFlags:")
		row := regexp.MustCompile("(?m)^\\| (?:.*, )?`" + name + "[ `].*$").FindString(page)
		if !does(name, help) {
			continue
		}
		if row == "" {
			t.Errorf("docs/commands.md has no row for %s", name)
		}
		if !strings.Contains(help, "\nExamples:\n") {
			t.Errorf("%s --help has no examples", name)
		}
		for _, f := range flagLine.FindAllStringSubmatch(own, -1) {
			if f[1] != "--help" && !strings.Contains(row, f[1]) {
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
	row := regexp.MustCompile(`(?m)^\| (\d+) \|`)
	for _, code := range row.FindAllStringSubmatch(read(t, "docs/commands.md"), -1) {
		if !want[code[1]] {
			t.Errorf("docs/commands.md: no program ends with %s", code[1])
		}
		delete(want, code[1])
	}
	for code := range want {
		t.Errorf("docs/commands.md: no row for exit code %s", code)
	}
}
