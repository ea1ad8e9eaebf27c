package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// priceList is the prices of an upstream on a day: of all methods, or of one method.
type priceList struct {
	*costs.Table
	methods []costs.Method
	rows    []priceRow
}

// priceRow is a row of a price table.
type priceRow struct {
	Table   string             `json:"table"`
	Row     string             `json:"row"`
	Above   float64            `json:"above"` // tokens of the prompt; 0 for any
	Figures map[string]float64 `json:"figures"`
	Since   *string            `json:"since"`
	Until   *string            `json:"until"`
	Source  string             `json:"source"`
	Date    string             `json:"date"`
}

func (a *app) costs() *cobra.Command {
	var upstream, at string
	c := a.Command("costs", func(c *cobra.Command, args []string) error {
		cfg, err := a.Load(c.Context())
		if err != nil {
			return err
		}
		if _, err := time.Parse(time.DateOnly, at); err != nil && at != "" {
			return cli.Usagef("--at %q: write a day such as 2026-12-01", at)
		}
		list, err := priced(cfg.Prices, upstream, at, args)
		if err != nil {
			return err
		}
		return a.Print(list.shown(), func(s cli.Screen) {
			list.draw(s)
			if at != "" || len(args) > 0 {
				list.drawRows(s)
			}
		})
	})
	cli.Flags(c.Flags(), "upstream", &upstream, "at", &at)
	c.AddCommand(a.costsCheck(), a.costsTest(), a.costsImport(), a.costsUpdate())
	return c
}

// priced returns the price list of an upstream, or one method of it.
func priced(from *costs.List, upstream, at string, args []string) (priceList, error) {
	table, err := from.Upstream(upstream)
	if err != nil {
		return priceList{}, cli.Usagef("%w", err)
	}
	methods := table.Methods()
	if len(args) == 1 {
		var m costs.Method
		if upstream == "" {
			table, m, err = from.Lookup(args[0])
		} else {
			m, err = table.Lookup(args[0])
		}
		if err != nil {
			return priceList{}, err
		}
		methods = []costs.Method{m}
	}
	table = table.At(cmp.Or(at, table.Day()))
	list := priceList{table, methods, []priceRow{}}
	for _, prices := range table.Tables() {
		for _, r := range prices.On(table.Day()) {
			source := table.Source(r.Source)
			row := priceRow{Table: prices.Name, Row: r.Key, Figures: r.Figures,
				Since: words.OrNull(r.Since), Until: words.OrNull(r.Until), Source: source.Text,
				Date: source.Date}
			if r.Figures == nil && r.Word == "" {
				row.Figures = map[string]float64{"": r.Number}
			}
			if row.Figures == nil {
				continue
			}
			list.rows = append(list.rows, row)
			for _, band := range r.Bands { // longer prompts
				row.Above, row.Figures = band.Above, band.Figures
				list.rows = append(list.rows, row)
			}
		}
	}
	return list, nil
}

func (l priceList) shown() object {
	methods := cli.Each(l.methods, func(m costs.Method) object {
		terms := cli.Each(m.Terms, func(t costs.Term) object {
			return object{"bucket", t.Bucket, "take", words.OrNull(t.Take),
				"hold", words.OrNull(t.Hold), "settle", words.OrNull(t.Settle)}
		})
		return object{"method", m.ID, "route", m.Verb + " " + m.Path,
			"cost", quota.UnitsOf(m.Costs), "status", m.Source.Status, "source", m.Source.Text,
			"date", m.Source.Date, "note", words.OrNull(m.Note), "known", m.Known(),
			"terms", terms, "numbers", m.Numbers()}
	})
	buckets := cli.Each(l.Buckets(), func(b costs.Bucket) object {
		return object{"bucket", b.Name, "units", b.Daily, "timezone", b.Reset.ZoneName(),
			"unit", b.Unit.String(), "split", list(b.Split)}
	})
	return object{"version", l.Version, "profile", l.ProfileName(), "methods", methods,
		"buckets", buckets, "at", l.Day(), "rows", l.rows, "upstream", l.Upstream}
}

// costText returns the cost of a call: the fixed units, and the buckets whose units depend on the
// call.
func costText(m costs.Method) string {
	var parts []string
	fixed := map[string]bool{}
	for _, c := range m.Costs {
		parts = append(parts, fmt.Sprintf("%d %s", c.Units, c.Bucket))
		fixed[quota.WholeOf(c.Bucket)] = true
	}
	for _, t := range m.Terms {
		if !fixed[t.Bucket] {
			parts = append(parts, t.Bucket)
		}
	}
	return strings.Join(parts, " + ")
}

func (l priceList) draw(s cli.Screen) {
	t := cli.View(l.methods, func(m costs.Method) cli.Row {
		source := m.Source.Text
		if m.Note != "" {
			source += "; " + m.Note
		}
		return cli.Row{"method", m.ID, "cost", costText(m), "route", m.Verb + " " + m.Path,
			"status", m.Source.Status, "date", m.Source.Date, "source", source}
	})
	s.Draw(t, cli.Cut("source", 30), cli.Drop("date"), cli.Cut("source", 16),
		cli.Drop("source"), cli.Drop("route"))
	if len(l.methods) != 1 {
		return
	}
	m := l.methods[0]
	if !m.Known() {
		s.Say("\n")
		for _, t := range m.Terms {
			for _, term := range [][2]string{{"take", t.Take}, {"hold", t.Hold}, {"settle", t.Settle}} {
				if term[1] != "" {
					s.Say("%s %s: %s\n", term[0], t.Bucket, term[1])
				}
			}
		}
		for _, name := range slices.Sorted(maps.Keys(m.Numbers())) {
			s.Say("%s is %s\n", name, m.Numbers()[name])
		}
	}
	if s.Width > 0 { // in full, since the table may have cut it
		s.Say("\nsource: %s\n", m.Source.Text)
		if m.Note != "" {
			s.Say("note: %s\n", m.Note)
		}
	}
}

func (l priceList) drawRows(s cli.Screen) {
	if len(l.rows) == 0 {
		return
	}
	s.Say("\nprices on %s\n\n", l.Day())
	t := cli.View(l.rows, func(r priceRow) cli.Row {
		var figures []string
		for _, column := range slices.Sorted(maps.Keys(r.Figures)) {
			figures = append(figures, strings.TrimSpace(column+" "+figure(r.Figures[column])))
		}
		above := ""
		if r.Above > 0 {
			above = words.Count(int64(r.Above))
		}
		return cli.Row{"table", r.Table, "row", r.Row, "above", above,
			"figures", strings.Join(figures, ", "), "since", r.Since, "until", r.Until, "date", r.Date}
	})
	s.Draw(t, cli.Drop("date"), cli.Drop("table"), cli.Cut("figures", 20))
}

// checkedPrices summarizes a valid price list.
type checkedPrices struct {
	Upstream   string `json:"upstream"`
	Methods    int    `json:"methods"`
	Buckets    int    `json:"buckets"`
	Unverified int    `json:"unverified"` // methods
}

func (a *app) costsCheck() *cobra.Command {
	return a.Command("costs check", func(c *cobra.Command, args []string) error {
		list, err := config.Prices(c.Context(), args[0])
		if err != nil {
			return err
		}
		upstreams := []checkedPrices{}
		for _, name := range list.Upstreams() {
			table, err := list.Upstream(name)
			if err != nil {
				return err
			}
			methods := table.Methods()
			checked := checkedPrices{name, len(methods), len(table.Buckets()), 0}
			for _, m := range methods {
				if m.Source.Status == "unverified" {
					checked.Unverified++
				}
			}
			upstreams = append(upstreams, checked)
		}
		err = a.Print(object{"file", args[0], "upstreams", upstreams}, func(s cli.Screen) {
			s.Draw(cli.View(upstreams, func(u checkedPrices) cli.Row {
				return cli.Row{"upstream", u.Upstream, "methods", u.Methods, "unverified", u.Unverified,
					"buckets", u.Buckets}
			}))
		})
		if err == nil && a.Output == "table" {
			fmt.Fprintf(a.Stderr, "%s has no mistakes\n", words.Plain(args[0]))
		}
		return err
	})
}
