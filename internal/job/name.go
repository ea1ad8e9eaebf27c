package job

import (
	"path/filepath"
	"regexp"
	"strings"
)

var (
	scriptWord = regexp.MustCompile(
		`([^/]+)\.(py|pl|rb|php|[cm]?js|ts|sh|bash|zsh|lua|jar|R)$`)
	// optionWord matches words that are not a program: options, assignments, numbers, durations.
	optionWord = regexp.MustCompile(`^(-|[A-Za-z_][A-Za-z0-9_]*=|[0-9])`)
)

// wrappers are words before the program that matters, with the number of arguments to skip.
var wrappers = map[string]int{"env": 0, "nice": 0, "ionice": 0, "nohup": 0, "setsid": 0,
	"stdbuf": 0, "time": 0, "chronic": 0, "sudo": 0, "doas": 0, "exec": 0, "timeout": 0, "flock": 1,
	"taskset": 0, "chrt": 0, "chroot": 1, "uv": 0, "uvx": 0, "pipx": 0, "pipenv": 0, "poetry": 0,
	"npx": 0, "npm": 0, "pnpm": 0, "yarn": 0, "bundle": 0, "deno": 0, "bun": 0, "run": 0, "tool": 0}

// NameOf returns the name of a job from its command line: the name of the first script, or else of
// the program, without folder and extension. "python3 -u /srv/a.py" and "nice sh -c 'cd /srv &&
// ./a.sh'" are both a.
func NameOf(args []string) string {
	words := strings.FieldsFunc(strings.Join(args, "\n"), func(r rune) bool {
		return strings.ContainsRune(" \t\n;&|'\"", r)
	})
	for i, word := range words {
		if script := scriptWord.FindStringSubmatch(word); script != nil {
			return script[1]
		}
		if word == "-m" && i > 0 && strings.HasPrefix(base(words[i-1]), "python") &&
			i+1 < len(words) {
			return words[i+1][strings.LastIndex(words[i+1], ".")+1:]
		}
	}
	skip := 0
	for _, word := range words {
		arguments, wraps := wrappers[word]
		switch {
		case optionWord.MatchString(word):
		case skip > 0:
			skip--
		case wraps:
			skip = arguments
		default:
			return base(word)
		}
	}
	return base(args[0])
}

// base returns the name of a file without folder and extension. A name that begins with a dot has
// no extension.
func base(path string) string {
	name := filepath.Base(path)
	return strings.TrimSuffix(name, filepath.Ext(strings.TrimLeft(name, ".")))
}
