package costs

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
)

// columnNames maps columns of a table to their names in feeds.
var columnNames = map[string]string{"input": "input", "output": "output", "cached": "cache_read",
	"read": "cache_read", "cache_read": "cache_read", "write": "cache_write",
	"cache_write": "cache_write", "write_1h": "cache_write_1h", "image": "input_image",
	"audio": "input_audio", "audio_output": "output_audio", "context": "context", "max_output": "max_output"}

// threefold is the factor by which a price may change without a person's consent.
const threefold = 3

// FeedDifference is a row that a feed would change, add or drop.
type FeedDifference struct {
	Row           string
	Since         string              // day from which After counts; "" for always
	Before, After figures             // by column; nil for an added or dropped row
	Bands         map[float64]figures // of After
	Refused       string              // why the difference needs consent; "" if it does not
	Ratio         float64             // of the largest change of a price; at least 1
	Source        string              // name of the source of the figures
	Own           bool                // the feed is the source of the row in the list
	append        bool                // adds a row by date to the key
	replaced      string              // Since of the replaced row
	bandsBefore   map[float64]figures // of Before
}

// VisitLongPrompts calls visit for each changed price of prompts longer than above tokens.
func (d FeedDifference) VisitLongPrompts(visit func(column string, above, before, after float64)) {
	lengths := maps.Clone(d.Bands)
	maps.Copy(lengths, d.bandsBefore)
	for above := range lengths {
		before := figuresAbove(d.Before, d.bandsBefore, above)
		after := figuresAbove(d.After, d.Bands, above)
		for column := range after {
			if before[column] != after[column] {
				visit(column, above, before[column], after[column])
			}
		}
	}
}

// figuresAbove returns the figures of the band that begins at or below a length, or base if there
// is none.
func figuresAbove(base figures, bands map[float64]figures, above float64) figures {
	longest := -1.0
	for begin, figures := range bands {
		if begin <= above && begin > longest {
			longest, base = begin, figures
		}
	}
	return base
}

// CompareFeed returns the changes that a feed would make to a table of a list, the largest first.
// Source is the feed's name in the list, and day the date of its prices. Rows of a newer source
// stay.
func CompareFeed(list *Table, table PriceTable, models []FeedModel, source, day string) (
	all []FeedDifference) {
	c := feedComparison{table: table, source: source, today: list.Day()}
	newer := func(r Row) bool { return r.Source != source && list.Source(r.Source).Date > day }
	byRow := c.byRow(models)
	inFeed := map[string]bool{}
	for _, m := range models {
		var keys []string
		for _, key := range slices.Sorted(maps.Keys(byRow)) {
			if byRow[key].ID == m.ID {
				keys = append(keys, key)
			}
		}
		if byRow[m.ID].ID != m.ID && byRow[undated(m.ID)].ID != m.ID {
			keys = append(keys, m.ID)
		}
		for _, name := range m.Names {
			inFeed[name] = true
		}
		inFeed[m.ID] = true
		for _, key := range keys {
			if inFeed[key] = true; !c.has(key, newer) {
				all = append(all, c.model(key, m)...)
			}
		}
	}
	// Changes come in order of size, and additions, whose ratio is 1, after them.
	slices.SortFunc(all, func(a, b FeedDifference) int {
		return cmp.Or(cmp.Compare(b.Ratio, a.Ratio), strings.Compare(a.Row, b.Row))
	})
	dropped := c.dropped(inFeed)
	return append(all, slices.DeleteFunc(dropped, func(d FeedDifference) bool {
		return c.has(d.Row, newer)
	})...)
}

// model returns the changes from today on by the prices of a model.
func (c feedComparison) model(key string, m FeedModel) (all []FeedDifference) {
	var before Row // after the previous price
	listed, refused := false, ""
	for i, p := range m.Prices {
		if i+1 < len(m.Prices) && m.Prices[i+1].Since <= c.today {
			continue // no longer valid
		}
		row, ok := c.table.rowOf(key, max(p.Since, c.today))
		if ok && (!listed || row.Since > before.Since) {
			before, listed = row, true
		}
		d, differs := c.compare(key, before, listed, p)
		if differs {
			// a later price is compared with the refused one, and so needs consent, too
			d.Refused = cmp.Or(d.Refused, refused)
			refused = d.Refused
			all = append(all, d)
			before, listed = d.row(before), true
		}
	}
	return all
}

type feedComparison struct {
	table         PriceTable
	source, today string
}

// byRow returns the model for each row without a date: the model of that name, else the newest one
// with a date appended, else the one with the dearest input that has that name among others.
func (c feedComparison) byRow(models []FeedModel) map[string]FeedModel {
	all := map[string]FeedModel{}
	for _, m := range models {
		if key := undated(m.ID); all[key].ID != key {
			all[key] = m
		}
	}
	for _, m := range models {
		if all[m.ID].ID != "" {
			all[m.ID] = m
		}
	}
	byName := map[string]FeedModel{}
	for _, m := range models {
		for _, name := range m.Names {
			// rows with a date are left alone: they exist because their figures differ
			if undated(name) == name && all[name].ID == "" && m.input() >= byName[name].input() {
				byName[name] = m
			}
		}
	}
	maps.Copy(all, byName)
	maps.DeleteFunc(all, func(key string, _ FeedModel) bool { return !c.has(key, anyRow) })
	return all
}

// input returns the model's latest price of input, or 0.
func (m FeedModel) input() float64 {
	if len(m.Prices) == 0 {
		return 0
	}
	return m.Prices[len(m.Prices)-1].Figures["input"]
}

func (c feedComparison) has(key string, matches func(Row) bool) bool {
	return slices.ContainsFunc(c.table.Rows, func(r Row) bool {
		return r.Key == key && matches(r)
	})
}

func anyRow(Row) bool { return true }

// compare returns the difference between a price of the feed and the list's row.
func (c feedComparison) compare(key string, row Row, listed bool, p FeedPrice) (d FeedDifference,
	differs bool) {
	if !listed {
		after := c.newRow(p)
		same, found := c.table.rowOf(undated(key), c.today)
		if after == nil || found && maps.Equal(same.Figures, c.merged(same.Figures, p.Figures)) {
			return d, false // without the main prices, or the same row applies
		}
		d = FeedDifference{Row: key, Since: p.Since, After: after, Ratio: 1, Bands: c.bands(p, after),
			Source: c.source}
		c.refuseCheap(&d)
		return d, true
	}
	d = FeedDifference{Row: key, Before: row.Figures, After: c.merged(row.Figures, p.Figures),
		Ratio: 1, Source: c.source, Own: row.Source == c.source, append: p.Since > row.Since,
		replaced: row.Since}
	if d.append {
		d.Since = p.Since
	}
	d.Bands = c.bands(p, d.After)
	before := map[float64]figures{}
	for _, band := range row.Bands {
		before[band.Above] = band.Figures
	}
	d.bandsBefore = before
	for column, figure := range d.After {
		d.measure(c.table, column, d.Before[column], figure)
	}
	if len(d.Bands) > 0 {
		d.VisitLongPrompts(func(column string, _, before, after float64) {
			d.measure(c.table, column, before, after)
		})
	}
	same := maps.Equal(d.Before, d.After) && (len(d.Bands) == 0 ||
		maps.EqualFunc(before, d.Bands, maps.Equal[figures, figures]))
	switch {
	case same:
		return d, false
	case len(before) > 0 && len(d.Bands) == 0 && d.Ratio > 1:
		d.Refused = "the feed has no prices of its longer prompts"
	case len(before) > 0 && len(d.Bands) == 0:
		d.Bands = before
	case math.IsInf(d.Ratio, 1):
		d.Refused = "a price changes from or to 0"
	case d.Ratio > threefold:
		d.Refused = fmt.Sprintf("a price changes %.3g-fold", d.Ratio)
	}
	return d, true
}

// refuseCheap refuses an added row if one of its prices is below a third of the price that applies
// to the key without that row. If no row but "*" matches the key, the row's prices of input and
// output are compared with the lowest in the table.
func (c feedComparison) refuseCheap(d *FeedDifference) {
	table := c.table
	table.Dearest = false
	row, _, found := table.Find(d.Row, c.today)
	named := found && row.Key != "*"
	for _, column := range c.table.Columns {
		if !isPrice(column) || !named && column != "input" && column != "output" {
			continue
		}
		price, name := row.Figures[column], row.Key
		for _, r := range c.table.Rows {
			if lower := r.Figures[column]; !named && lower > 0 && (name == row.Key || lower < price) {
				price, name = lower, "any other row"
			}
		}
		after := d.After[column]
		for _, figures := range d.Bands {
			after = min(after, figures[column])
		}
		if after*threefold < price {
			d.Refused = cmp.Or(d.Refused,
				fmt.Sprintf("its %s price is below a third of %s's", column, name))
		}
	}
}

// row returns the row of the list with the difference.
func (d FeedDifference) row(before Row) Row {
	before.Key, before.Figures, before.Bands = d.Row, d.After, nil
	before.Since = max(before.Since, d.Since)
	for _, above := range slices.Sorted(maps.Keys(d.Bands)) {
		before.Bands = append(before.Bands, Band{Above: above, Figures: d.Bands[above]})
	}
	return before
}

// merged returns the figures of a row with the feed's. A price that the feed lacks changes in
// proportion to the input's.
func (c feedComparison) merged(row, feed figures) figures {
	after := maps.Clone(row)
	factor := 1.0
	if input, ok := feed["input"]; ok && row["input"] > 0 {
		factor = input / row["input"]
	}
	for _, column := range c.table.Columns {
		name := columnNames[column]
		if figure, ok := feed[name]; ok && (name == "context" || name == "max_output") {
			after[column] = max(figure, row[column]) // the maximum of a call
		} else if ok {
			after[column] = figure
		} else if slices.Contains(c.table.Prompt, column) {
			after[column] = rounded(row[column] * factor)
		}
	}
	for _, column := range c.table.Columns {
		_, known := feed[columnNames[column]]
		if usual, ok := c.table.Usual(column, row); ok && !known && usual == row[column] {
			after[column], _ = c.table.Usual(column, after)
		}
	}
	return after
}

// newRow returns the figures of a row that the table lacks, or nil without the main prices. For a
// price that the feed lacks, it uses the highest ratio to the input in other rows.
func (c feedComparison) newRow(p FeedPrice) figures {
	input, ok := p.Figures["input"]
	if _, priced := p.Figures["output"]; !ok || !priced {
		return nil
	}
	after := figures{}
	for _, column := range c.table.Columns {
		name, usual := columnNames[column], 0.0
		if figure, ok := p.Figures[name]; ok {
			after[column] = figure
			continue
		}
		for _, r := range c.table.Rows {
			switch {
			case slices.Contains(c.table.Prompt, column) && r.Figures["input"] > 0:
				usual = max(usual, rounded(input*r.Figures[column]/r.Figures["input"]))
			case name == "context":
				usual = max(usual, r.Figures[column])
			}
		}
		switch figure, ok := c.table.Usual(column, after); {
		case ok:
			after[column] = figure
		case name == "max_output":
			after[column] = after["context"]
		default:
			after[column] = usual
		}
	}
	return after
}

func (c feedComparison) bands(p FeedPrice, row figures) map[float64]figures {
	all := map[float64]figures{}
	longer := figures{} // a price applies to longer prompts, too, unless a later band replaces it
	for _, above := range slices.Sorted(maps.Keys(p.Bands)) {
		maps.Copy(longer, p.Bands[above])
		all[above] = c.merged(row, longer)
	}
	return all
}

// isPrice reports whether a column contains a price that feeds report.
func isPrice(column string) bool {
	name := columnNames[column]
	return name != "" && name != "context" && name != "max_output"
}

// measure raises the ratio to the factor by which a column's price changes.
func (d *FeedDifference) measure(table PriceTable, column string, before, after float64) {
	switch {
	case before == after, !isPrice(column) && !slices.Contains(table.Prompt, column):
	case before == 0 || after == 0:
		d.Ratio = math.Inf(1)
	default:
		d.Ratio = max(d.Ratio, before/after, after/before)
	}
}

// dropped returns the rows that the feed lacks: of those that it wrote, or of all if it wrote none.
func (c feedComparison) dropped(inFeed map[string]bool) (all []FeedDifference) {
	own := func(r Row) bool { return r.Source == c.source }
	some := slices.ContainsFunc(c.table.Rows, own)
	for _, r := range c.table.Rows {
		if inFeed[r.Key] || strings.HasSuffix(r.Key, "*") || some && !own(r) || !r.Counts(c.today) {
			continue
		}
		all = append(all, FeedDifference{Row: r.Key, Before: r.Figures, Ratio: 1, Source: r.Source,
			Own: own(r), Refused: "the feed does not have it"})
	}
	return all
}
