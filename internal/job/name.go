package job

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// NameOf returns the name of a job from its command line: that of the program without folder and
// ending, or of the script that an interpreter runs. "python3 -u /srv/a.py" and
// "nice sh -c 'cd /srv && ./a.sh'" are both a. Without a script it is the interpreter's name.
func NameOf(args []string) string {
	if name := scriptOf(args); name != "" {
		return name
	}
	return base(args[0])
}

// base returns the name of a file without folder and ending. A name that begins with a dot has
// none.
func base(path string) string {
	name := filepath.Base(path)
	return strings.TrimSuffix(name, filepath.Ext(strings.TrimLeft(name, ".")))
}

var (
	assignment  = regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*=`)
	interpreter = regexp.MustCompile(
		`^(python|pypy|node|nodejs|tsx|ts-node|perl|ruby|php|lua|java|Rscript)[0-9.]*$`)
	shell   = regexp.MustCompile(`^(ba|da|a|k|z|fi)?sh$`)
	manager = regexp.MustCompile(`^(uvx?|pipx|pipenv|poetry|npx|p?npm|yarn|bundle|deno|bun)$`)
)

// wrappers are programs that run the command after their options and so many arguments.
var wrappers = map[string]int{"env": 0, "nice": 0, "ionice": 0, "nohup": 0, "setsid": 0, "stdbuf": 0,
	"time": 0, "chronic": 0, "sudo": 0, "doas": 0, "exec": 0, "timeout": 1, "flock": 1, "taskset": 1,
	"chrt": 1, "chroot": 1}

// valued are the options that take the next argument as their value, by program.
var valued = map[string]string{
	"nice": "n", "ionice": "c n p", "env": "u C", "timeout": "k s", "flock": "E w", "sudo": "u g p",
	"doas": "u", "stdbuf": "i o e", "chrt": "p T", "python": "W X", "pypy": "W X",
	"node": "r -require -import -env-file", "nodejs": "r -require -import -env-file",
	"perl": "I M", "ruby": "I r", "php": "d c f", "java": "cp -class-path", "bash": "O o", "sh": "o", "uv": "-with -python p",
	"npm": "-prefix C", "pnpm": "-dir C",
}

// subcommands are those of a package manager that run what follows.
var subcommands = []string{"run", "exec", "tool", "x"}

// scriptOf returns the name of the script that the command line runs, "" where none is found.
func scriptOf(args []string) string {
	for len(args) > 0 && assignment.MatchString(args[0]) {
		args = args[1:]
	}
	if len(args) == 0 {
		return ""
	}
	program := filepath.Base(args[0])
	skipped, wraps := wrappers[program]
	runs := interpreter.MatchString(program) || shell.MatchString(program) ||
		manager.MatchString(program)
	if !wraps && !runs {
		return base(args[0])
	}
	kind := strings.TrimRight(program, "0123456789.")
	for rest := args[1:]; len(rest) > 0; rest = rest[1:] {
		option, word := strings.TrimPrefix(rest[0], "-"), rest[0]
		switch {
		case word == "--":
		case kind == "python" && option == "m" && len(rest) > 1: // a module
			return rest[1][strings.LastIndex(rest[1], ".")+1:]
		case option != word && isCode(kind, option):
			return scriptIn(kind, rest[1:])
		case kind == "php" && option == "f", kind == "java" && option == "jar":
		case option != word && slices.Contains(strings.Fields(valued[kind]), option):
			rest = rest[min(1, len(rest)-1):]
		case option != word || wraps && assignment.MatchString(word):
		case skipped > 0:
			skipped--
		case wraps:
			return scriptOf(rest)
		case manager.MatchString(kind) && slices.Contains(subcommands, word):
		case manager.MatchString(kind):
			return scriptOf(rest)
		default:
			return base(word)
		}
	}
	return ""
}

// isCode reports whether the option is followed by code instead of a file.
func isCode(kind, option string) bool {
	switch {
	case shell.MatchString(kind):
		return !strings.HasPrefix(option, "-") && strings.HasSuffix(option, "c")
	case kind == "python" || kind == "pypy":
		return option == "c"
	case kind == "php":
		return option == "r"
	}
	return option == "e" || option == "-eval"
}

// builtins are commands of a shell that name no job.
var builtins = []string{"echo", "printf", "exit", "test", "[", "true", "false", ":", "eval"}

// scriptIn returns the name of the first script in the code of a shell: a program that is named by
// its path, or a file with an ending. Code that is a single command has that command's name.
func scriptIn(kind string, code []string) string {
	if !shell.MatchString(kind) || len(code) == 0 {
		return ""
	}
	parts := strings.FieldsFunc(code[0], func(r rune) bool {
		return strings.ContainsRune(";&|\n", r)
	})
	for _, part := range parts {
		words := strings.Fields(part)
		isFile := func(w string) bool {
			return base(w) != w && !strings.ContainsAny(w, "<>$=`\"'")
		}
		name := scriptOf(words)
		if at := slices.IndexFunc(words, isFile); at >= 0 && name == base(words[at]) {
			return name
		}
	}
	if len(parts) == 1 {
		name := scriptOf(strings.Fields(parts[0]))
		if !slices.Contains(builtins, name) && !strings.ContainsAny(name, "<>$=`\"'()") {
			return name
		}
	}
	return ""
}
