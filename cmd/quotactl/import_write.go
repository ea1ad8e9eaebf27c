package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/schedule"
	"quotabudget/internal/textfile"
	"quotabudget/internal/words"
)

// target is the quota.yaml to check the jobs against and, with --write, to change.
type target struct {
	path string // without links
	text string // before
	mode fs.FileMode
	next string // after
}

// open reads the file of --write, else the configuration in force, if that can be read again.
func (im *importer) open() (t target, err error) {
	path := im.flags.write
	if path == "" {
		if path = im.src.Config.File; path == "" || textfile.IsPipe(path) {
			return target{path: initialFile}, nil
		}
	}
	t.path, err = filepath.EvalSymlinks(path) // a link stays one
	if errors.Is(err, fs.ErrNotExist) {
		return t, cli.Hint(err, "quotactl config init writes a quota.yaml")
	}
	if err != nil {
		return t, err
	}
	info, err := os.Stat(t.path)
	if err != nil {
		return t, err
	}
	text, err := os.ReadFile(t.path)
	t.text, t.mode = string(text), info.Mode().Perm()
	if err == nil && im.flags.write == "" {
		t.text, err = withoutJobs(t.text)
	}
	return t, err
}

// withoutJobs returns the text of a quota.yaml without its jobs.
func withoutJobs(text string) (string, error) {
	var file yaml.Node
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		return "", err
	}
	lines := strings.SplitAfter(text, "\n")
	if _, key, end := section(&file, lines); key > 0 {
		lines = slices.Delete(lines, key-1, end)
	}
	return strings.Join(lines, ""), nil
}

// check adds the jobs to the text of the file, and skips those that the configuration refuses.
func (im *importer) check(ctx context.Context, t *target) error {
	for {
		next, first, err := spliceJobs(t.text, im.flags.source, im.jobs)
		if err != nil {
			return fmt.Errorf("%s: %w", im.flags.write, err)
		}
		t.next = next
		search := im.Search()
		search.Path, search.Text = t.path, []byte(next)
		if _, err = search.Load(ctx); err == nil {
			return nil
		}
		wrong, ok := errors.AsType[*config.Error](err)
		if !ok || !im.skip(first, wrong.Problems) {
			return cli.Hint(err, "%s is left as it was", t.path)
		}
	}
}

// skip moves the jobs with problems to the lines that are skipped, and reports whether there are
// any. The items of the jobs begin on line first.
func (im *importer) skip(first int, problems []config.Problem) (any bool) {
	im.jobs = slices.DeleteFunc(im.jobs, func(j importedJob) bool {
		end := first + strings.Count(j.text(""), "\n")
		at := slices.IndexFunc(problems, func(p config.Problem) bool {
			return p.Line >= first && p.Line < end
		})
		first = end
		if at >= 0 {
			any = true
			im.problems = append(im.problems, schedule.CronProblem{
				CronLine: schedule.CronLine{Number: j.Line}, Text: problems[at].Text})
		}
		return at >= 0
	})
	return any
}

// write replaces the file in one step.
func (im *importer) write(t target) error {
	if t.next == t.text && len(im.jobs) == 0 {
		return im.wrote("no jobs of %s to write: %s is left as it was\n")
	}
	if t.next == t.text {
		return im.wrote("the jobs of %s are in %s already\n")
	}
	temporary, err := os.CreateTemp(filepath.Dir(t.path), ".quota-*.yaml")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) // if it was not renamed
	_, err = temporary.WriteString(t.next)
	if err = errors.Join(err, temporary.Chmod(t.mode), temporary.Sync(),
		temporary.Close()); err != nil {
		return err
	}
	if err := os.Rename(temporary.Name(), t.path); err != nil {
		return err
	}
	return im.wrote("wrote " + words.Plural(int64(len(im.jobs)), "job") + " of %s to %s\n")
}

// wrote prints the result, with the source and the file.
func (im *importer) wrote(format string) error {
	return im.Print(struct {
		File string        `json:"file"`
		Jobs []importedJob `json:"jobs"`
	}{im.flags.write, im.jobs}, func() error {
		_, err := fmt.Fprintf(im.Stdout, format, im.flags.source, im.flags.write)
		return err
	})
}

var emptyJobs = regexp.MustCompile(`^jobs:[ \t]*(\[[ \t]*\]|null|~)?`)

// spliceJobs replaces the jobs of a source in the text of a quota.yaml, and returns the line on
// which they begin. All other lines stay as they are, with their comments.
func spliceJobs(text, source string, jobs []importedJob) (next string, first int, err error) {
	var file yaml.Node
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		return "", 0, err
	}
	lines := strings.SplitAfter(text, "\n")
	if last := len(lines) - 1; lines[last] == "" {
		lines = lines[:last]
	} else {
		lines[last] += "\n"
	}
	items := importer{jobs: jobs}
	list, key, end := section(&file, lines)
	switch {
	case list == nil && len(jobs) == 0:
		return text, 0, nil
	case list == nil:
		return strings.Join(lines, "") + "\njobs:\n" + items.text("  "), len(lines) + 3, nil
	case list.Tag == "!!null" || list.Kind == yaml.SequenceNode && len(list.Content) == 0:
		if len(jobs) > 0 && emptyJobs.MatchString(lines[key-1]) {
			lines[key-1] = emptyJobs.ReplaceAllString(lines[key-1], "jobs:")
			lines[key-1] += items.text("  ")
		}
		return strings.Join(lines, ""), key + 1, nil
	case list.Kind != yaml.SequenceNode || list.Style&yaml.FlowStyle != 0:
		err := fmt.Errorf("line %d: jobs: is not a list with an item on each line", list.Line)
		return "", 0, cli.Hint(err,
			"write it with \"- name: …\", or paste what is printed without --write")
	}
	drop := linesOf(list, source, lines, end)
	var b strings.Builder
	for n, line := range lines {
		if !drop[n] {
			b.WriteString(line)
		}
		if n == end-1 {
			first = 1 + strings.Count(b.String(), "\n")
			b.WriteString(items.text(strings.Repeat(" ", max(0, list.Column-1))))
		}
	}
	return b.String(), first, nil
}

// linesOf returns the lines, from 0, of the jobs of a source in a list that ends with line end.
func linesOf(list *yaml.Node, source string, lines []string, end int) map[int]bool {
	drop := make(map[int]bool)
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
	return drop
}

// section returns the list of jobs of a file, the line of its key and its last line.
func section(file *yaml.Node, lines []string) (list *yaml.Node, key, end int) {
	if len(file.Content) == 0 {
		return nil, 0, 0
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
		return top[i+1], top[i].Line, end
	}
	return nil, 0, 0
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
