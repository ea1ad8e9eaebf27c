package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"go.yaml.in/yaml/v3"

	"quotabudget"
	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/costs"
	"quotabudget/internal/words"
)

// feedChanges is what a feed changes, adds and drops in price lists.
type feedChanges struct {
	Changed []changedRow `json:"changed"`
	Added   []changedRow `json:"added"`
	Dropped []changedRow `json:"dropped"`
	Refused []refusedRow `json:"refused"`
	own     []string     // rows that differ from the feed that is their source
}

type changedRow struct {
	Upstream string             `json:"upstream"`
	Row      string             `json:"row"`
	Before   map[string]float64 `json:"before"`
	After    map[string]float64 `json:"after"`
	Since    *string            `json:"since"`
	Source   string             `json:"source"`
	Date     string             `json:"date"`
}

type refusedRow struct {
	Upstream string `json:"upstream"`
	Row      string `json:"row"`
	Reason   string `json:"reason"`
}

// importFlags are the flags of costs import and costs update.
type importFlags struct {
	format, upstream, into string
	write, yes, check      bool
}

func (f *importFlags) add(c *cobra.Command) {
	cli.Flags(c.Flags(), "upstream", &f.upstream, "into", &f.into, "write", &f.write,
		"yes", &f.yes, "check", &f.check)
}

func (a *app) costsImport() *cobra.Command {
	var f importFlags
	c := a.Command("costs import", func(c *cobra.Command, args []string) error {
		if f.format != "" && !slices.Contains(costs.FeedFormats, f.format) {
			return cli.Usagef("--format must be one of %s", strings.Join(costs.FeedFormats, ", "))
		}
		list, err := a.listFile(c.Context(), f)
		if err != nil {
			return err
		}
		list.table.Feed.Format = f.format
		list.data, list.day, err = readFeed(c.Context(), args[0])
		if err != nil {
			return err
		}
		return a.importFeeds(f, []*listFile{list})
	})
	f.add(c)
	cli.Flags(c.Flags(), "format", &f.format)
	return c
}

func (a *app) costsUpdate() *cobra.Command {
	var f importFlags
	c := a.Command("costs update", func(c *cobra.Command, _ []string) error {
		lists, err := a.feedLists(c.Context(), f)
		if err != nil {
			return err
		}
		return a.update(c.Context(), f, lists)
	})
	f.add(c)
	return c
}

// listFile is the file of one upstream's price list, its table of model prices, and a feed.
type listFile struct {
	path  string // "" for a built-in list
	text  string
	list  *costs.Table
	table costs.PriceTable
	data  []byte
	day   string // of the feed
}

// listFile reads the price list that the flags name, or the one in force.
func (a *app) listFile(ctx context.Context, f importFlags) (*listFile, error) {
	path := f.into
	if path == "" {
		cfg, err := a.Load(ctx)
		if err != nil {
			return nil, err
		}
		path = cfg.CostsFile
	}
	if path == "" {
		return shippedFile(cmp.Or(f.upstream, costs.Shipped().Usual().Upstream), f.write)
	}
	list, err := config.Prices(ctx, path)
	if err != nil {
		return nil, err
	}
	name := f.upstream
	if all := list.Upstreams(); len(all) == 1 {
		name = all[0]
	}
	table, err := list.Upstream(name)
	if err != nil {
		return nil, cli.Usagef("%w", err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	if f.upstream != "" && f.upstream != name { // a list of one upstream is named after its file
		named := *table
		named.Upstream = f.upstream
		table = &named
	}
	var index struct{ Upstreams map[string]yaml.Node }
	if err := yaml.Unmarshal(text, &index); err == nil &&
		index.Upstreams[name].Kind == yaml.ScalarNode { // an index of price lists
		path = filepath.Join(filepath.Dir(path), index.Upstreams[name].Value)
		if text, err = os.ReadFile(path); err != nil {
			return nil, err
		}
	}
	return newListFile(path, string(text), table, f.upstream)
}

// shippedFile returns a built-in list, which only a copy of the lists can replace.
func shippedFile(upstream string, write bool) (*listFile, error) {
	if write {
		return nil, cli.Hint(cli.Usagef("the price lists that ship cannot be written"),
			"name a file with --into, or with costs: in quota.yaml")
	}
	table, err := costs.Shipped().Upstream(upstream)
	if err != nil {
		return nil, cli.Usagef("%w", err)
	}
	text, err := fs.ReadFile(quotabudget.Costs(), "costs/"+upstream+".yaml")
	if err != nil {
		return nil, err
	}
	return newListFile("", string(text), table, upstream)
}

func newListFile(path, text string, list *costs.Table, provider string) (*listFile, error) {
	for _, table := range list.Tables() {
		if slices.Contains(table.Columns, "input") && slices.Contains(table.Columns, "output") {
			if len(table.Feed.Providers) == 0 {
				table.Feed.Providers = []string{cmp.Or(provider, list.Upstream)}
			}
			return &listFile{path: path, text: text, list: list, table: table}, nil
		}
	}
	return nil, cli.Hint(fmt.Errorf("the price list of %s has no table with the columns input and "+
		"output", list.Upstream), "name another list with --upstream, or a file with --into")
}

// importFeeds compares the lists with their feeds, writes them if a flag says so, and prints the
// result.
func (a *app) importFeeds(f importFlags, lists []*listFile) error {
	if f.check && (f.write || f.yes) {
		return cli.Usagef("--check cannot be combined with --write or --yes")
	}
	out := feedChanges{[]changedRow{}, []changedRow{}, []changedRow{}, []refusedRow{}, nil}
	var failed error
	for _, l := range lists {
		failed = errors.Join(failed, a.importFeed(f, l, &out))
	}
	if failed != nil && len(lists) == 1 { // nothing else to print
		return failed
	}
	err := errors.Join(a.Print(out, func(s cli.Screen) {
		refused := map[refusedRow]string{}
		for _, r := range out.Refused {
			refused[refusedRow{r.Upstream, r.Row, ""}] = r.Reason
		}
		rows := slices.Concat(out.Changed, out.Added, out.Dropped)
		if len(rows) > 0 {
			t := cli.View(rows, func(r changedRow) cli.Row {
				return cli.Row{"upstream", r.Upstream, "row", r.Row, "change", r.words(),
					"refused", refused[refusedRow{r.Upstream, r.Row, ""}]}
			})
			s.Draw(t, cli.Cut("change", 30), cli.Drop("upstream"))
		}
		done := "nothing is written without --write"
		if f.write {
			done = "the rows that are not refused are written"
		}
		s.Say("%d changed, %d added, %d dropped, %d refused: %s\n", len(out.Changed), len(out.Added),
			len(out.Dropped), len(out.Refused), done)
	}), failed)
	switch {
	case err != nil:
	case f.check && len(out.own) > 0:
		err = fmt.Errorf("%s not as in the source data set: %s",
			words.Plural(int64(len(out.own)), "row"), words.Clip(strings.Join(out.own, ", ")))
	case !f.check && len(out.Refused) > 0:
		err = cli.Hint(fmt.Errorf("%s refused", words.Plural(int64(len(out.Refused)), "change")),
			"--yes accepts them")
	}
	return err
}

func (a *app) importFeed(f importFlags, l *listFile, out *feedChanges) error {
	models, format, err := costs.ParseFeed(l.data, l.table.Feed.Format, l.table.Feed.Providers...)
	if err != nil {
		return fmt.Errorf("the feed of %s cannot be used: %w; its rows stay as they are",
			l.list.Upstream, err)
	}
	var accepted []costs.FeedDifference
	for _, d := range costs.CompareFeed(l.list, l.table, models, format, l.day) {
		if d.Own {
			out.own = append(out.own, d.Row)
		}
		row := changedRow{Upstream: l.list.Upstream, Row: d.Row, Before: maps.Clone(d.Before),
			After: maps.Clone(d.After), Since: words.OrNull(d.Since), Source: d.Source, Date: l.day}
		if d.Before != nil {
			d.VisitLongPrompts(func(column string, above, before, after float64) {
				column += " above " + figure(above)
				row.Before[column], row.After[column] = before, after
			})
		}
		switch {
		case d.After == nil:
			source := l.list.Source(d.Source)
			row.Source, row.Date = source.Text, source.Date
			out.Dropped = append(out.Dropped, row)
		case d.Before == nil:
			out.Added = append(out.Added, row)
		default:
			out.Changed = append(out.Changed, row)
		}
		if d.Refused == "" || f.yes {
			accepted = append(accepted, d)
		} else {
			out.Refused = append(out.Refused, refusedRow{l.list.Upstream, d.Row, d.Refused})
		}
	}
	if !f.write || len(accepted) == 0 {
		return nil
	}
	next, err := costs.RewriteTable(l.text, l.table, accepted, format, l.day)
	if err == nil {
		_, err = costs.ParseList(l.list.Upstream+".yaml", []byte(next), nil)
	}
	if err == nil {
		err = replaceFile(l.path, l.text, next)
	}
	if err == nil {
		l.text = next
	}
	if err != nil {
		// Without the type of err: the feed is at fault, not the configuration, so that it exits with 1.
		return fmt.Errorf("%s is left as it was: %v", l.path, err)
	}
	return nil
}

// words returns the changed figures: "input 2 to 3".
func (r changedRow) words() string {
	switch {
	case r.After == nil:
		return "dropped"
	case r.Before == nil:
		return "added: input " + figure(r.After["input"]) + ", output " + figure(r.After["output"])
	}
	var parts []string
	for _, column := range slices.Sorted(maps.Keys(r.After)) {
		if before, after := r.Before[column], r.After[column]; before != after && !r.isImplied(column) {
			parts = append(parts, column+" "+figure(before)+" to "+figure(after))
		}
	}
	return cmp.Or(strings.Join(parts, ", "), "prices of longer prompts")
}

// isImplied reports whether a price of longer prompts changes by the same factor as that of short
// prompts, so that a reader can infer it.
func (r changedRow) isImplied(column string) bool {
	short, _, isLonger := strings.Cut(column, " above ")
	if !isLonger || r.Before[short] == 0 {
		return false
	}
	expected := r.Before[column] * r.After[short] / r.Before[short]
	return math.Abs(r.After[column]-expected) <= 1e-6*r.After[column]
}

func figure(n float64) string { return strconv.FormatFloat(n, 'f', -1, 64) }

// today returns the day of a fetched feed.
func today() string { return time.Now().UTC().Format(time.DateOnly) }
