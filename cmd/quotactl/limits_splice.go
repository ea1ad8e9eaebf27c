package main

import (
	"errors"
	"fmt"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/grammar"
	"quotabudget/internal/quota"
)

// spliceLimits changes and adds limits of a credential in the text of a quota.yaml. All other text,
// comments included, stays the same.
func spliceLimits(text string, c config.Credential, changes []importedLimit) (string, error) {
	file, err := grammar.Edit(text)
	if err != nil {
		return "", err
	}
	credential := credentialNode(file.Top, c.Name)
	if !grammar.InLines(credential) {
		return "", cli.Hint(fmt.Errorf("credential %s is not written with a key on each line", c.Name),
			"write it so, or take the limits over by hand")
	}
	list := grammar.Child(credential, "limits")
	if list == nil { // the new list replaces the defaults, so it must include them
		lines := []string{"limits:"}
		for _, l := range merged(c.Limits, changes) {
			lines = append(lines, "  "+item(l))
		}
		file.Append(credential, lines...)
		return file.String(), nil
	}
	var added []string
	for _, change := range changes {
		node := limitNode(list, change.limit)
		if node == nil {
			added = append(added, item(change.limit))
			continue
		}
		file.Replace(grammar.Child(node, "units"), strconv.FormatInt(change.After, 10))
		if change.limit.Window.IsRestoring() {
			file.Replace(grammar.Child(node, "window"), change.limit.Window.Text())
		}
	}
	switch {
	case len(added) == 0:
	case list.Kind != yaml.SequenceNode || !grammar.InLines(list):
		return "", cli.Hint(errors.New("limits: is not a list with an item on each line"),
			"write it with \"- {bucket: …}\" on each line")
	default:
		file.Append(list, added...)
	}
	return file.String(), nil
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
	return text + "}"
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
func credentialNode(top *yaml.Node, name string) *yaml.Node {
	if list := grammar.Child(top, "credentials"); list != nil {
		for _, c := range list.Content {
			if at := grammar.Child(c, "name"); at != nil && at.Value == name {
				return c
			}
		}
	}
	return nil
}

// limitNode returns the limit in a list that matches another one, or nil.
func limitNode(list *yaml.Node, l quota.Limit) *yaml.Node {
	for _, node := range list.Content {
		bucket, window := grammar.Child(node, "bucket"), grammar.Child(node, "window")
		if bucket == nil || window == nil || bucket.Value != l.Bucket ||
			grammar.Child(node, "across") != nil || grammar.Child(node, "units") == nil {
			continue
		}
		w, err := quota.ParseWindow(window.Value, l.Window.ZoneName())
		if err == nil && (w.Text() == l.Window.Text() || w.IsRestoring() && l.Window.IsRestoring()) {
			return node
		}
	}
	return nil
}
