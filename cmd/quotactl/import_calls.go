package main

import (
	"maps"
	"os"
	"os/user"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"quotabudget/internal/schedule"
)

// invocation is a call of a metered command in a crontab line.
type invocation struct {
	program string            // quotactl or ingestor
	words   []string          // after the program
	env     map[string]string // of cron, and set on the line
}

var (
	ourPrograms = regexp.MustCompile("(?:^|[\\s/'\"`(;&|])(quotactl|ingestor)\\s")
	assignments = regexp.MustCompile(`([A-Za-z_]\w*)=("[^"]*"|'[^']*'|[^\s;&|"']*)`)
	wordParts   = regexp.MustCompile(`^(?:'[^']*'|"(?:\\.|[^"\\])*"|\$\([^)]*\)|\\.|` +
		"[^\\s'\"\\\\;|&()<>`]+)")
)

// callsOf returns the calls of "quotactl exec" and "ingestor once" in a line, also in the quotes of
// sh -c.
func (im *importer) callsOf(l schedule.CronLine) (calls []invocation) {
	env := map[string]string{"HOME": im.homeOf(l.User), "LOGNAME": l.User}
	maps.Copy(env, l.Env)
	for _, at := range ourPrograms.FindAllStringSubmatchIndex(l.Command, -1) {
		c := invocation{l.Command[at[2]:at[3]], nil, maps.Clone(env)}
		for _, set := range assignments.FindAllStringSubmatch(l.Command[:at[2]], -1) {
			c.env[set[1]] = unquotedPart(set[2], c.env)
		}
		c.words = wordsOf(l.Command[at[1]:], c.env)
		if c.program == "quotactl" && slices.Contains(c.words, "exec") ||
			c.program == "ingestor" && slices.Contains(c.words, "once") {
			calls = append(calls, c)
		}
	}
	return calls
}

// homeOf returns the home folder of a crontab's user; "" is the current user.
func (im *importer) homeOf(name string) string {
	if who, err := user.Lookup(name); name != "" && err == nil {
		return who.HomeDir
	}
	return im.Getenv("HOME")
}

// wordsOf splits a text into words as a shell does, up to the end of the command, or of the quotes
// that it is in.
func wordsOf(text string, env map[string]string) (words []string) {
	for {
		text = strings.TrimLeft(text, " \t")
		word, found := "", false
		for part := wordParts.FindString(text); part != ""; part = wordParts.FindString(text) {
			word, found, text = word+unquotedPart(part, env), true, text[len(part):]
		}
		if rest, ok := strings.CutPrefix(word, "~/"); ok {
			word = filepath.Join(env["HOME"], rest)
		}
		if found {
			words = append(words, word)
		}
		if text == "" || text[0] != ' ' && text[0] != '\t' {
			return words
		}
	}
}

// unquotedPart returns a part of a word without quotes, with its variables replaced. A part that
// depends on the output of a command stays as it is.
func unquotedPart(part string, env map[string]string) string {
	if strings.HasPrefix(part, "'") {
		return strings.Trim(part, "'")
	}
	part = strings.Trim(part, `"`)
	if !strings.Contains(part, "$(") {
		part = os.Expand(part, func(name string) string { return env[name] })
	}
	return strings.ReplaceAll(part, `\`, "")
}
