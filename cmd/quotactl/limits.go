package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"quotabudget/internal/bill"
	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/costs"
	"quotabudget/internal/grammar"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

func (a *app) limitsImport() *cobra.Command {
	var write bool
	c := a.Command("limits import", func(c *cobra.Command, _ []string) error {
		return a.with(c.Context(), func(g *gate) error {
			return a.importLimits(c.Context(), g, write)
		})
	})
	cli.Flags(c.Flags(), "write", &write)
	return c
}

// importedLimits is the printed result.
type importedLimits struct {
	Credential string          `json:"credential"`
	File       *string         `json:"file"`
	Limits     []importedLimit `json:"limits"`
	Written    bool            `json:"written"`
}

// importedLimit is a limit that the upstream reports and quota.yaml lacks.
type importedLimit struct {
	Bucket   string  `json:"bucket"`
	Window   string  `json:"window"`
	Timezone *string `json:"timezone"`
	Before   *int64  `json:"before"` // nil if there was no such limit
	After    int64   `json:"after"`

	limit quota.Limit
	unit  costs.Unit
}

func (a *app) importLimits(ctx context.Context, g *gate, write bool) error {
	client, err := a.billClient(g, func(m costs.Meter) bool { return len(m.Limits) > 0 })
	if err != nil {
		return err
	}
	reported, err := client.Limits(ctx)
	if err != nil {
		return inBillWords(g, client, err)
	}
	out := importedLimits{Credential: g.Credential, File: words.OrNull(g.cfg.File),
		Limits: []importedLimit{}}
	for _, l := range reported {
		for _, change := range changed(g.cred.Limits, l) {
			b, _ := g.prices().Bucket(l.Bucket)
			change.unit = b.Unit
			out.Limits = append(out.Limits, change)
		}
	}
	if write && len(out.Limits) > 0 {
		if err := a.writeLimits(ctx, g, out.Limits); err != nil {
			return err
		}
		out.Written = true
	}
	return a.Print(out, func(s cli.Screen) {
		if len(out.Limits) == 0 {
			s.Say("the %d limits that the upstream reports are already in force\n", len(reported))
			return
		}
		t := cli.View(out.Limits, func(l importedLimit) cli.Row {
			return cli.Row{"bucket", l.Bucket, "window", l.Window,
				">quota.yaml", s.Optional(l.unit, l.Before), ">upstream", s.Amount(l.unit, l.After)}
		})
		s.Draw(t, cli.Cut("bucket", 16))
		if out.Written {
			s.Say("wrote %s of %s to %s\n", words.Plural(int64(len(out.Limits)), "limit"), out.Credential,
				*out.File)
			return
		}
		s.Say("to change: %d; run quotactl limits import --write\n", len(out.Limits))
	})
}

// changed returns how the upstream's limit changes the configured ones. One daily limit may
// correspond to two configured limits.
func changed(ours []quota.Limit, theirs bill.Limit) (all []importedLimit) {
	if theirs.Units < 0 { // no limit
		return nil
	}
	found := false
	for _, l := range ours {
		if l.Bucket == theirs.Bucket && !l.Across && theirs.About(l.Window) {
			found = true
			rate := l.Window.Restore != theirs.Window.Restore
			if before := l.Units; before != theirs.Units || rate {
				if rate {
					l.Window = theirs.Window
				}
				l.Units, l.Headroom = theirs.Units, min(l.Headroom, theirs.Units)
				all = append(all, newChange(l, &before))
			}
		}
	}
	if !found {
		all = append(all, newChange(quota.Limit{Bucket: theirs.Bucket, Units: theirs.Units,
			Window: theirs.Window}, nil))
	}
	return all
}

func newChange(l quota.Limit, before *int64) importedLimit {
	return importedLimit{Bucket: l.Bucket, Window: l.Window.Text(),
		Timezone: words.OrNull(l.Window.ZoneName()), Before: before, After: l.Units, limit: l}
}

// writeLimits changes the configuration file in one step, if the result is valid.
func (a *app) writeLimits(ctx context.Context, g *gate, changes []importedLimit) error {
	if g.cfg.File == "" {
		return cli.Hint(errors.New("there is no quota.yaml to write to"),
			"quotactl config init writes one")
	}
	path := g.cfg.File
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	next, err := spliceLimits(string(text), g.cred, changes)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	search := config.Search{Getenv: a.Getenv, Path: path, Text: []byte(next)}
	if _, err := search.Load(ctx); err != nil {
		return cli.Hint(err, "%s is left as it was", path)
	}
	return replaceFile(path, string(text), next)
}

// replaceFile replaces the text of a regular file in one step. It returns an error if the file no
// longer contains the text before. It keeps the owner, group and mode: a daemon of another user
// may read the file. A link remains a link.
func replaceFile(path, before, text string) error {
	path, err := filepath.EvalSymlinks(path)
	if err != nil {
		return err
	}
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return cmp.Or(err, fmt.Errorf("%s is not a file that can be written", path))
	}
	temporary, err := os.CreateTemp(filepath.Dir(path), ".quotactl-*.yaml")
	if err != nil {
		return err
	}
	defer os.Remove(temporary.Name()) // in case it was not renamed
	if owner, ok := info.Sys().(*syscall.Stat_t); ok {
		err = temporary.Chown(int(owner.Uid), int(owner.Gid))
	}
	if err != nil {
		err = fmt.Errorf("cannot keep the owner of %s: run this as that user or as root: %w", path, err)
	} else {
		_, err = temporary.WriteString(text)
	}
	err = errors.Join(err, temporary.Chmod(info.Mode().Perm()), temporary.Sync(), temporary.Close())
	if err != nil {
		return err
	}
	if current, err := os.ReadFile(path); err != nil || string(current) != before {
		return cmp.Or(err, fmt.Errorf("%s changed in the meantime: run the command again", path))
	}
	return os.Rename(temporary.Name(), path)
}

// spliceLimits changes and adds limits of a credential in the text of a quota.yaml. All other text,
// comments included, stays the same.
func spliceLimits(text string, c config.Credential, changes []importedLimit) (string, error) {
	file, err := grammar.Edit(text)
	if err != nil {
		return "", err
	}
	var credential *yaml.Node
	if all := grammar.Child(file.Top, "credentials"); all != nil {
		for _, node := range all.Content {
			if name := grammar.Child(node, "name"); name != nil && name.Value == c.Name {
				credential = node
				break
			}
		}
	}
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
		return file.Result()
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
	return file.Result()
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
		i := slices.IndexFunc(all, func(l quota.Limit) bool {
			return l.Bucket == change.limit.Bucket && !l.Across && !change.limit.Across &&
				isSameWindow(l.Window, change.limit.Window)
		})
		if i < 0 {
			all = append(all, change.limit)
		} else {
			all[i] = change.limit
		}
	}
	return all
}

// limitNode returns the limit in a list that matches another one, or nil. It passes over limits per
// label and across parts, which the upstream does not report.
func limitNode(list *yaml.Node, l quota.Limit) *yaml.Node {
	for _, node := range list.Content {
		bucket, window := grammar.Child(node, "bucket"), grammar.Child(node, "window")
		if bucket == nil || window == nil || bucket.Value != l.Bucket ||
			grammar.Child(node, "across") != nil || grammar.Child(node, "per") != nil ||
			grammar.Child(node, "units") == nil {
			continue
		}
		zone := l.Window.ZoneName() // also of a window without timezone
		if named := grammar.Child(node, "timezone"); named != nil {
			zone = named.Value
		}
		if w, err := quota.ParseWindow(window.Value, zone); err == nil && isSameWindow(w, l.Window) {
			return node
		}
	}
	return nil
}

// isSameWindow reports whether a bucket can have only one limit with these two windows: they are
// equal, or both restoring.
func isSameWindow(a, b quota.Window) bool {
	return a.Text() == b.Text() && a.ZoneName() == b.ZoneName() || a.IsRestoring() && b.IsRestoring()
}
