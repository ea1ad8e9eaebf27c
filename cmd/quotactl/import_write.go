package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
)

// writeJobs replaces the jobs of a source in a quota.yaml, or adds them, and leaves all other lines
// as they are. A file that would not be a configuration then is not written.
func (a *app) writeJobs(f crontabFlags, jobs []importedJob) error {
	target, err := filepath.EvalSymlinks(f.write) // a link stays one
	if errors.Is(err, fs.ErrNotExist) {
		return cli.Hint(err, "quotactl config init writes a quota.yaml")
	}
	if err != nil {
		return err
	}
	before, err := os.ReadFile(target)
	if err != nil {
		return err
	}
	text, err := spliceJobs(string(before), f.source, jobs)
	if err != nil {
		return fmt.Errorf("%s: %w", f.write, err)
	}
	info, err := os.Stat(target)
	if err != nil {
		return err
	}
	temporary, err := os.CreateTemp(filepath.Dir(target), ".quota-*.yaml")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) // if it was not renamed
	_, err = temporary.WriteString(text)
	if err = errors.Join(err, temporary.Chmod(info.Mode().Perm()), temporary.Sync(),
		temporary.Close()); err != nil {
		return err
	}
	if _, err := config.Load(context.Background(), temporary.Name(), a.Getenv); err != nil {
		return cli.Hint(err, "%s is left as it was; the lines are those that it would have",
			f.write)
	}
	if err := os.Rename(temporary.Name(), target); err != nil {
		return err
	}
	return a.Print(struct {
		File string        `json:"file"`
		Jobs []importedJob `json:"jobs"`
	}{f.write, jobs}, func() error {
		_, err := fmt.Fprintf(a.Stdout, "wrote %d jobs of %s to %s\n", len(jobs), f.source, f.write)
		return err
	})
}

// spliceJobs works on the lines of a file, because its comments and blank lines are somebody's.
func spliceJobs(text, source string, jobs []importedJob) (string, error) {
	var file yaml.Node
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		return "", err
	}
	lines := strings.SplitAfter(text, "\n")
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	} else {
		lines[last] += "\n"
	}
	items := importer{jobs: jobs}
	list, end := section(&file, lines)
	if list == nil {
		return strings.Join(lines, "") + "\njobs:\n" + items.text("  "), nil
	}
	if list.Kind != yaml.SequenceNode || list.Style&yaml.FlowStyle != 0 || len(list.Content) == 0 {
		err := fmt.Errorf("line %d: jobs: is not a list with an item on each line", list.Line)
		return "", cli.Hint(err,
			"write it with \"- name: …\", or paste what is printed without --write")
	}
	drop := make(map[int]bool) // lines, from 0
	for i, item := range list.Content {
		if valueOf(item, "elsewhere") != source {
			continue
		}
		next := end
		if i+1 < len(list.Content) {
			next = list.Content[i+1].Line - 1
		}
		for next > item.Line && isComment(lines[next-1]) { // of the next item
			next--
		}
		for n := item.Line - 1; n < next; n++ {
			drop[n] = true
		}
	}
	var b strings.Builder
	for n, line := range lines {
		if !drop[n] {
			b.WriteString(line)
		}
		if n == end-1 {
			b.WriteString(items.text(strings.Repeat(" ", max(0, list.Column-1))))
		}
	}
	return b.String(), nil
}

// section is the list of jobs of a file, and the number of its last line.
func section(file *yaml.Node, lines []string) (list *yaml.Node, end int) {
	if len(file.Content) == 0 {
		return nil, 0
	}
	top := file.Content[0].Content
	for i := 0; i+1 < len(top); i += 2 {
		if top[i].Value != "jobs" {
			continue
		}
		end = len(lines)
		if i+2 < len(top) {
			end = top[i+2].Line - 1
		}
		for end > top[i].Line && (isComment(lines[end-1]) &&
			!strings.HasPrefix(lines[end-1], " ") || strings.TrimSpace(lines[end-1]) == "") {
			end--
		}
		return top[i+1], end
	}
	return nil, 0
}

func isComment(line string) bool {
	text := strings.TrimSpace(line)
	return text == "" || strings.HasPrefix(text, "#")
}

func valueOf(n *yaml.Node, key string) string {
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1].Value
		}
	}
	return ""
}
