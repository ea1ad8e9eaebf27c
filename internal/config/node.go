package config

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/regions"
	"quotabudget/internal/spell"
)

// reader gathers a configuration and what is wrong with it.
type reader struct {
	cfg      *Config
	getenv   func(string) string
	dir      string // of the file
	problems []Problem
	items    int // of lists, read so far

	// What has been read already, by name.
	buckets     map[string]costs.Bucket
	credentials map[string]bool
	jobNames    map[string]bool
	jobOf       map[regions.Region]string
}

const (
	maxProblems = 100     // are reported; a person mends these first
	maxItems    = 100_000 // of all lists together: aliases can make a small file long
)

// full reports whether enough problems have been found to stop reading.
func (r *reader) full() bool { return len(r.problems) >= maxProblems }

// add notes a problem at a node of the file. No text of the file that looks like a key is repeated.
func (r *reader) add(at *yaml.Node, format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	if quota.LooksSecret(text) {
		text = "here stands what looks like an API key (it is not repeated): " + rotate
	}
	r.problems = append(r.problems, Problem{r.cfg.File, at.Line, text})
}

const rotate = "delete it here, make a new key in its place, and name the variable or file that holds it: api_key: {env: " +
	KeyVariable + "}"

// fields says what reads the value of each key of a mapping.
type fields map[string]func(*yaml.Node)

// fields reads a mapping with known keys. Those that are required must be there.
func (r *reader) fields(n *yaml.Node, what string, known fields, required ...string) {
	if n = target(n); n.Kind != yaml.MappingNode {
		r.add(n, "%s: write key: value pairs", what)
		return
	}
	seen := map[string]int{}
	for i := 0; i+1 < len(n.Content) && !r.full(); i += 2 {
		key, value := n.Content[i], target(n.Content[i+1])
		read, ok := known[key.Value]
		line, again := seen[key.Value]
		switch {
		case key.Kind != yaml.ScalarNode:
			r.add(key, "%s: a key is a word", what)
		case !ok:
			r.add(key, "%s: unknown key %q%s", what, clip(key.Value), spell.DidYouMean(key.Value, slices.Collect(maps.Keys(known))))
		case again:
			r.add(key, "%s: %s stands already in line %d", what, key.Value, line)
		default:
			seen[key.Value] = key.Line
			read(value)
		}
	}
	for _, name := range required {
		if seen[name] == 0 && !r.full() {
			r.add(n, "%s: %s is missing", what, name)
		}
	}
}

// target is the node that an alias stands for.
func target(n *yaml.Node) *yaml.Node {
	if n.Kind == yaml.AliasNode {
		return n.Alias
	}
	return n
}

// section reports whether a key has anything under it: all of it may be commented out.
func section(n *yaml.Node) bool { return n.Kind != yaml.ScalarNode || n.Tag != "!!null" }

// list reads each item of a list.
func (r *reader) list(n *yaml.Node, what string, item func(*yaml.Node)) {
	if n.Kind != yaml.SequenceNode {
		r.add(n, "%s: write a list", what)
		return
	}
	for _, i := range n.Content {
		if r.items++; r.items == maxItems {
			r.add(n, "%s: more than %d items in all lists together", what, maxItems)
		}
		if r.full() || r.items >= maxItems {
			return
		}
		item(target(i))
	}
}

// text reads a word. It takes what YAML has another type for, too: NO is a region, 24 is no window but says so itself.
func (r *reader) text(n *yaml.Node, what string) (string, bool) {
	switch {
	case n.Kind != yaml.ScalarNode:
		r.add(n, "%s: write a text, not a list or key: value pairs", what)
	case n.Tag == "!!null" || strings.TrimSpace(n.Value) == "":
		r.add(n, "%s: nothing stands here: write a text", what)
	default:
		return n.Value, true
	}
	return "", false
}

// number reads a whole number from least to most.
func (r *reader) number(n *yaml.Node, what string, least, most int64) int64 {
	if n.Kind != yaml.ScalarNode || n.Tag != "!!int" {
		r.add(n, "%s: write a whole number, without quotes", what)
		return least
	}
	number, err := strconv.ParseInt(strings.ReplaceAll(n.Value, "_", ""), 10, 64)
	if err != nil || number < least || number > most {
		r.add(n, "%s: %s is out of range: %d to %d", what, clip(n.Value), least, most)
		return least
	}
	return number
}

// clip keeps a text of the file short enough for a message.
func clip(text string) string {
	if len(text) > 60 {
		return strings.ToValidUTF8(text[:60], "") + "…"
	}
	return text
}
