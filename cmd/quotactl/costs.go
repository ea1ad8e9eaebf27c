package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/costs"
	"quotabudget/internal/costs/formula"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

type priceList struct {
	Version  string      `json:"version"`
	Profile  string      `json:"profile"`
	Methods  []pricing   `json:"methods"`
	Buckets  []dailyUnit `json:"buckets"`
	At       string      `json:"at"` // day whose prices these are
	Rows     []priceRow  `json:"rows"`
	Upstream string      `json:"upstream"`
}

// priceRow is a row of a table that the prices are computed with.
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

type pricing struct {
	Method string           `json:"method"`
	Route  string           `json:"route"`
	Cost   map[string]int64 `json:"cost"` // what is the same for each call
	Status string           `json:"status"`
	Source string           `json:"source"`
	Date   string           `json:"date"`
	Note   *string          `json:"note"`
	Known  bool             `json:"known"` // cost is all that a call takes
	Terms  []costTerm       `json:"terms"`
	// Numbers are the expressions that the terms refer to, by name.
	Numbers map[string]string `json:"numbers"`

	costs []quota.Cost
}

// costTerm is what a call takes from one bucket, as the list writes it.
type costTerm struct {
	Bucket string  `json:"bucket"`
	Take   *string `json:"take"`
	Hold   *string `json:"hold"`
	Settle *string `json:"settle"`
}

type dailyUnit struct {
	Bucket   string   `json:"bucket"`
	Units    int64    `json:"units"`
	Timezone string   `json:"timezone"`
	Unit     string   `json:"unit"`
	Split    []string `json:"split"`
}

func (a *app) costs() *cobra.Command {
	var upstream, at string
	c := &cobra.Command{
		Use:   "costs [METHOD]",
		Short: "Show the price list",
		Long: `costs shows what one call of each method takes from which buckets, and the source of
the figure. "unverified" means that no published source confirms it. What depends on the request, or
is known only after the call, has no number: name the method to see how it is computed.`,
		Example: `  quotactl costs
  quotactl costs youtube.search.list
  quotactl costs --upstream anthropic
  quotactl costs openai.chat.completions.create --at 2026-12-01
  quotactl costs -o json | jq '.methods[] | select(.cost.default > 9) | .method'`,
		Args: cli.Optional("METHOD"),
		RunE: func(c *cobra.Command, args []string) error {
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
			return a.Print(list, func() error {
				if err := a.priceTable(list); err != nil || at == "" && len(args) == 0 {
					return err
				}
				return a.rowTable(list)
			})
		},
	}
	c.Flags().StringVar(&upstream, "upstream", "", "whose prices (default: the list's default, "+
		"or that of METHOD)")
	c.Flags().StringVar(&at, "at", "", "`DAY` whose prices to show (default: today)")
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
	return newPriceList(table.At(cmp.Or(at, table.Day())), methods), nil
}

func newPriceList(table *costs.Table, methods []costs.Method) priceList {
	list := priceList{Version: table.Version, Profile: table.ProfileName(), Methods: []pricing{},
		Buckets: []dailyUnit{}, Upstream: table.Upstream, At: table.Day(), Rows: []priceRow{}}
	for _, prices := range table.Tables() {
		for _, r := range prices.On(table.Day()) {
			list.addRow(table, prices.Name, r)
		}
	}
	for _, m := range methods {
		p := pricing{
			Method: m.ID, Route: m.Verb + " " + m.Path, Cost: quota.UnitsOf(m.Costs),
			Status: m.Source.Status, Source: m.Source.Text, Date: m.Source.Date,
			Note: words.OrNull(m.Note), Known: m.Known(), Terms: []costTerm{}, costs: m.Costs,
			Numbers: m.Numbers(),
		}
		for _, of := range m.Terms {
			p.Terms = append(p.Terms, costTerm{of.Bucket, words.OrNull(of.Take),
				words.OrNull(of.Hold), words.OrNull(of.Settle)})
		}
		list.Methods = append(list.Methods, p)
	}
	for _, b := range table.Buckets() {
		list.Buckets = append(list.Buckets, dailyUnit{b.Name, b.Daily, b.Reset.ZoneName(),
			b.Unit.String(), append([]string{}, b.Split...)})
	}
	return list
}

// addRow adds a row of figures, and one for each band of longer prompts.
func (l *priceList) addRow(table *costs.Table, name string, r formula.Row) {
	source := table.Source(r.Source)
	row := priceRow{Table: name, Row: r.Key, Figures: r.Figures, Since: words.OrNull(r.Since),
		Until: words.OrNull(r.Until), Source: source.Text, Date: source.Date}
	if r.Figures == nil && r.Word == "" {
		row.Figures = map[string]float64{"": r.Number}
	}
	if row.Figures == nil {
		return
	}
	l.Rows = append(l.Rows, row)
	for _, band := range r.Bands {
		row.Above, row.Figures = band.Above, band.Figures
		l.Rows = append(l.Rows, row)
	}
}

// words returns what a call takes: the known units, and the buckets whose units depend on the call.
func (p pricing) words() string {
	var parts []string
	fixed := map[string]bool{}
	for _, c := range p.costs {
		parts = append(parts, fmt.Sprintf("%d %s", c.Units, c.Bucket))
		whole, _, _ := strings.Cut(c.Bucket, "/")
		fixed[whole] = true
	}
	for _, t := range p.Terms {
		if !fixed[t.Bucket] {
			parts = append(parts, t.Bucket)
		}
	}
	return strings.Join(parts, " + ")
}

// lines returns how the units that depend on the call are computed.
func (p pricing) lines() (lines []string) {
	for _, t := range p.Terms {
		for _, of := range []struct {
			what string
			text *string
		}{{"take", t.Take}, {"hold", t.Hold}, {"settle", t.Settle}} {
			if of.text != nil {
				lines = append(lines, fmt.Sprintf("%s %s: %s", of.what, t.Bucket, *of.text))
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(p.Numbers)) {
		lines = append(lines, fmt.Sprintf("%s is %s", name, p.Numbers[name]))
	}
	return lines
}

func (a *app) priceTable(list priceList) error {
	s := a.Screen()
	t := s.Table("method", "cost", "status", "date", "source")
	for _, m := range list.Methods {
		source := m.Source
		if m.Note != nil {
			source += "; " + *m.Note
		}
		t.AppendRow([]any{m.Method, m.words(), m.Status, m.Date, source})
	}
	err := s.Draw(t, cli.Cut("source", 30), cli.Drop("date"), cli.Cut("source", 16),
		cli.Drop("source"))
	if err == nil && len(list.Methods) == 1 && !list.Methods[0].Known {
		err = s.Say("\n%s\n", strings.Join(list.Methods[0].lines(), "\n"))
	}
	// whole, since the table may have cut it
	if err == nil && len(list.Methods) == 1 && s.Width > 0 {
		err = s.Say("\nsource: %s\n", list.Methods[0].Source)
		if note := list.Methods[0].Note; note != nil && err == nil {
			err = s.Say("note: %s\n", *note)
		}
	}
	return err
}

// rowTable shows the rows that the prices are computed with.
func (a *app) rowTable(list priceList) error {
	if len(list.Rows) == 0 {
		return nil
	}
	s := a.Screen()
	if err := s.Say("\nprices on %s\n\n", list.At); err != nil {
		return err
	}
	t := s.Table("table", "row", "above", "figures", "since", "until", "date")
	for _, r := range list.Rows {
		var figures []string
		for _, column := range slices.Sorted(maps.Keys(r.Figures)) {
			figures = append(figures, strings.TrimSpace(column+" "+
				strconv.FormatFloat(r.Figures[column], 'f', -1, 64)))
		}
		above := ""
		if r.Above > 0 {
			above = words.Count(int64(r.Above))
		}
		t.AppendRow([]any{r.Table, r.Row, above, strings.Join(figures, ", "), dayOf(r.Since),
			dayOf(r.Until), r.Date})
	}
	return s.Draw(t, cli.Drop("date"), cli.Drop("table"), cli.Cut("figures", 20))
}

func dayOf(day *string) string {
	if day == nil {
		return ""
	}
	return *day
}

// checkedList is what a price list without a mistake has.
type checkedList struct {
	File      string          `json:"file"`
	Upstreams []checkedPrices `json:"upstreams"`
}

type checkedPrices struct {
	Upstream   string `json:"upstream"`
	Methods    int    `json:"methods"`
	Buckets    int    `json:"buckets"`
	Unverified int    `json:"unverified"` // methods
}

func (a *app) costsCheck() *cobra.Command {
	return &cobra.Command{
		Use:   "check FILE",
		Short: "Say what is wrong with a price list, by line",
		Long: `check reads a price list, and the files that it names, and reports everything that is
wrong with them: unknown keys, buckets and names in expressions, costs below 0, routes that two
methods share, figures without a source. It exits with 78 then.`,
		Example: `  quotactl costs check costs.yaml
  quotactl costs check costs/anthropic.yaml -o json`,
		Args: cli.Args("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			list, err := config.Prices(c.Context(), args[0])
			if err != nil {
				return err
			}
			out := checkedList{File: args[0], Upstreams: []checkedPrices{}}
			for _, name := range list.Upstreams() {
				out.Upstreams = append(out.Upstreams, checkedTable(list, name))
			}
			return a.Print(out, func() error { return a.sayChecked(out) })
		},
	}
}

func checkedTable(list *costs.List, name string) checkedPrices {
	table, err := list.Upstream(name)
	if err != nil {
		return checkedPrices{Upstream: name} // it is one of the list's own names
	}
	out := checkedPrices{Upstream: name, Methods: len(table.Methods()),
		Buckets: len(table.Buckets())}
	for _, m := range table.Methods() {
		if m.Source.Status == "unverified" {
			out.Unverified++
		}
	}
	return out
}

func (a *app) sayChecked(list checkedList) error {
	s := a.Screen()
	t := s.Table("upstream", "methods", "unverified", "buckets")
	for _, u := range list.Upstreams {
		t.AppendRow([]any{u.Upstream, u.Methods, u.Unverified, u.Buckets})
	}
	if err := s.Draw(t); err != nil {
		return err
	}
	_, err := fmt.Fprintf(a.Stderr, "%s has no mistakes\n", words.Plain(list.File))
	return err
}
