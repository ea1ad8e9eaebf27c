package main

import (
	"fmt"
	"maps"
	"os/user"
	"path/filepath"
	"slices"
	"strings"

	"mvdan.cc/sh/v3/expand"
	"mvdan.cc/sh/v3/syntax"

	"quotabudget/internal/schedule"
)

// invocation is a call of a metered command in a crontab line.
type invocation struct {
	program string            // quotactl or ingestor
	words   []string          // after the program
	env     map[string]string // variables of cron, and of the line
}

// callsOf returns the calls of "quotactl exec" and "ingestor once" in a line.
func (im *importer) callsOf(l schedule.CronLine) ([]invocation, error) {
	if !strings.Contains(l.Command, "quotactl") && !strings.Contains(l.Command, "ingestor") {
		return nil, nil
	}
	s := shellReader{env: map[string]string{"HOME": im.homeOf(l.User), "LOGNAME": l.User}}
	maps.Copy(s.env, l.Env)
	err := s.read(l.Command, l.Env["SHELL"])
	if err != nil && !strings.Contains(l.Command, "exec") && !strings.Contains(l.Command, "once") {
		return nil, nil
	}
	return s.calls, err
}

// homeOf returns the home folder of a crontab's user; "" is the current user.
func (im *importer) homeOf(name string) string {
	if account, err := user.Lookup(name); name != "" && err == nil {
		return account.HomeDir
	}
	return im.Getenv("HOME")
}

// shellReader finds calls in commands.
type shellReader struct {
	env   map[string]string
	calls []invocation
}

// read reads a command in the language of a shell, that of /bin/sh by default.
func (s *shellReader) read(command, shell string) error {
	variant := syntax.LangPOSIX
	switch filepath.Base(shell) {
	case "bash", "zsh":
		variant = syntax.LangBash
	case "ksh", "mksh":
		variant = syntax.LangMirBSDKorn
	}
	file, err := syntax.NewParser(syntax.Variant(variant)).Parse(strings.NewReader(command), "")
	if err != nil {
		return fmt.Errorf("the command cannot be read: %w", err)
	}
	syntax.Walk(file, func(n syntax.Node) bool {
		switch n := n.(type) {
		case *syntax.DeclClause: // export A=1
			s.assign(s.env, n.Args)
		case *syntax.CallExpr:
			env := s.env
			if len(n.Args) > 0 { // otherwise the variables apply to later commands
				env = maps.Clone(s.env)
			}
			s.assign(env, n.Assigns)
			if failed := s.call(n.Args, env); failed != nil {
				err = failed
			}
		}
		return true
	})
	return err
}

func (s *shellReader) assign(env map[string]string, list []*syntax.Assign) {
	for _, a := range list {
		if a.Name != nil && a.Value != nil {
			env[a.Name.Value] = literal(a.Value, env)
		}
	}
}

// call records a call of quotactl or ingestor. It looks through wrappers such as nice, and into the
// code of "sh -c" and "su -c".
func (s *shellReader) call(args []*syntax.Word, env map[string]string) error {
	words := make([]string, len(args))
	for i, w := range args {
		words[i] = literal(w, env)
	}
	for i, w := range words {
		if name, value, ok := strings.Cut(w, "="); ok { // of env
			env[name] = value
			continue
		}
		switch filepath.Base(w) {
		case "quotactl", "ingestor":
			c := invocation{filepath.Base(w), words[i+1:], env}
			if c.program == "quotactl" && slices.Contains(c.words, "exec") ||
				c.program == "ingestor" && slices.Contains(c.words, "once") {
				s.calls = append(s.calls, c)
			}
			return nil
		case "sh", "bash", "dash", "ksh", "zsh", "su", "runuser":
			if code := codeOf(words[i+1:]); code != "" {
				inner := shellReader{env: maps.Clone(env)}
				err := inner.read(code, w)
				s.calls = append(s.calls, inner.calls...)
				return err
			}
		}
	}
	return nil
}

// codeOf returns the argument of -c or of -lc, "" if there is none.
func codeOf(words []string) string {
	for i, w := range words[:max(0, len(words)-1)] {
		short := strings.HasPrefix(w, "-") && !strings.HasPrefix(w, "--")
		if w == "--command" || short && strings.HasSuffix(w, "c") {
			return words[i+1]
		}
	}
	return ""
}

// literal returns a word as the shell expands it, or as written if that depends on the output of a
// command.
func literal(w *syntax.Word, env map[string]string) string {
	cfg := &expand.Config{Env: expand.FuncEnviron(func(name string) string { return env[name] })}
	text, err := expand.Literal(cfg, w)
	if err != nil {
		var b strings.Builder
		syntax.NewPrinter().Print(&b, w)
		text = b.String()
	}
	if path, ok := strings.CutPrefix(text, "~/"); ok {
		text = filepath.Join(env["HOME"], path)
	}
	return text
}
