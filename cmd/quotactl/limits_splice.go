package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/quota"
)

// spliceLimits changes and adds limits of a credential in the text of a quota.yaml. All other text,
// comments included, stays the same.
func spliceLimits(text string, c config.Credential, changes []importedLimit) (string, error) {
	var file yaml.Node
	if err := yaml.Unmarshal([]byte(text), &file); err != nil {
		return "", err
	}
	credential := credentialNode(&file, c.Name)
	if credential == nil || credential.Style&yaml.FlowStyle != 0 {
		return "", cli.Hint(fmt.Errorf("credential %s is not written with a key on each line", c.Name),
			"write it so, or take the limits over by hand")
	}
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n")+"\n", "\n")
	list := valueAt(credential, "limits")
	if list == nil { // the new list replaces the defaults, so it must include them
		indent := strings.Repeat(" ", credential.Column-1)
		all := indent + "limits:\n"
		for _, l := range merged(c.Limits, changes) {
			all += indent + "  " + item(l)
		}
		return insert(lines, lastLine(credential), all), nil
	}
	var added string
	for _, change := range changes {
		if node := limitNode(list, change.limit); node != nil {
			units, window := valueAt(node, "units"), valueAt(node, "window")
			values := []scalar{{units, strconv.FormatInt(change.After, 10)}}
			if change.limit.Window.IsRestoring() {
				values = append(values, scalar{window, change.limit.Window.Text()})
			}
			replace(lines, values)
			continue
		}
		added += strings.Repeat(" ", max(0, list.Column-1)) + item(change.limit)
	}
	switch {
	case added == "":
		return strings.Join(lines, ""), nil
	case list.Kind != yaml.SequenceNode || list.Style&yaml.FlowStyle != 0:
		return "", cli.Hint(errors.New("limits: is not a list with an item on each line"),
			"write it with \"- {bucket: …}\" on each line")
	}
	return insert(lines, lastLine(list), added), nil
}

// scalar is a value in the file, with its new text.
type scalar struct {
	node *yaml.Node
	text string
}

// replace replaces values by their new texts, the last one of a line first.
func replace(lines []string, values []scalar) {
	slices.SortFunc(values, func(a, b scalar) int { return b.node.Column - a.node.Column })
	for _, v := range values {
		line, begin := lines[v.node.Line-1], v.node.Column-1
		end := begin + len(v.node.Value)
		if v.node.Style&(yaml.SingleQuotedStyle|yaml.DoubleQuotedStyle) != 0 {
			end += len(`""`)
		}
		lines[v.node.Line-1] = line[:begin] + v.text + line[end:]
	}
}

// insert inserts text after a line, counted from 1.
func insert(lines []string, line int, text string) string {
	return strings.Join(slices.Insert(lines, line, text), "")
}

// item writes a limit as an item of a list.
func item(l quota.Limit) string {
	text := fmt.Sprintf("- {bucket: %s, units: %d", l.Bucket, l.Units)
	if l.Headroom > 0 {
		text += fmt.Sprintf(", headroom: %d", l.Headroom)
	}
	text += ", window: " + l.Window.Text()
	if zone := l.Window.ZoneName(); zone != "" {
		text += ", timezone: " + zone
	}
	return text + "}\n"
}

// merged returns the limits in force with the changes.
func merged(ours []quota.Limit, changes []importedLimit) []quota.Limit {
	all := slices.Clone(ours)
	for _, change := range changes {
		i := slices.IndexFunc(all, func(l quota.Limit) bool { return sameLimit(l, change.limit) })
		if i < 0 {
			all = append(all, change.limit)
		} else {
			all[i] = change.limit
		}
	}
	return all
}

func sameLimit(a, b quota.Limit) bool {
	return a.Bucket == b.Bucket && !a.Across && !b.Across && (a.Window.Text() == b.Window.Text() ||
		a.Window.IsRestoring() && b.Window.IsRestoring())
}

// credentialNode returns the mapping of a credential, or nil.
func credentialNode(file *yaml.Node, name string) *yaml.Node {
	if len(file.Content) == 0 {
		return nil
	}
	if list := valueAt(file.Content[0], "credentials"); list != nil {
		for _, c := range list.Content {
			if at := valueAt(c, "name"); at != nil && at.Value == name {
				return c
			}
		}
	}
	return nil
}

// limitNode returns the limit in a list that matches another one, or nil.
func limitNode(list *yaml.Node, l quota.Limit) *yaml.Node {
	for _, node := range list.Content {
		bucket, window := valueAt(node, "bucket"), valueAt(node, "window")
		if bucket == nil || window == nil || bucket.Value != l.Bucket ||
			valueAt(node, "across") != nil || valueAt(node, "units") == nil {
			continue
		}
		w, err := quota.ParseWindow(window.Value, l.Window.ZoneName())
		if err == nil && (w.Text() == l.Window.Text() || w.IsRestoring() && l.Window.IsRestoring()) {
			return node
		}
	}
	return nil
}

// lastLine returns the last line of a node.
func lastLine(n *yaml.Node) int {
	last := n.Line
	for _, below := range n.Content {
		last = max(last, lastLine(below))
	}
	return last
}

// valueAt returns the value of a key in a mapping, or nil.
func valueAt(n *yaml.Node, key string) *yaml.Node {
	for i := 0; i+1 < len(n.Content) && n.Kind == yaml.MappingNode; i += 2 {
		if n.Content[i].Value == key {
			return n.Content[i+1]
		}
	}
	return nil
}
