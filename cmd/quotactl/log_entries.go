package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"

	"quotabudget/internal/cli"
	"quotabudget/internal/costs"
	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

// entries returns the entries and corrections of the buckets, oldest first.
func (g *gate) entries(ctx context.Context, q question) ([]quota.Entry, error) {
	buckets, in, err := g.span(ctx, q)
	if err != nil {
		return nil, err
	}
	var all []quota.Entry
	for _, b := range buckets {
		query := quota.Query{Credential: g.Credential, Bucket: b, Since: in.Since,
			Until: in.Until, Limit: q.limit}
		some, err := g.Ledger.Entries(ctx, query)
		if err != nil {
			return nil, err
		}
		corrections, err := g.Ledger.Takings(ctx, query)
		if err != nil {
			return nil, err
		}
		all = append(all, some...)
		for _, c := range corrections {
			all = append(all, quota.Entry{At: c.At, ID: c.ID, Bucket: c.Bucket,
				Labels: c.Labels.With(quota.Labels{labelTakenOff: strconv.FormatInt(c.Units, 10)})})
		}
	}
	slices.SortStableFunc(all, func(a, b quota.Entry) int {
		return cmp.Or(a.At.Compare(b.At), cmp.Compare(a.ID, b.ID))
	})
	if q.limit > 0 {
		all = all[max(0, len(all)-q.limit):]
	}
	return all, nil
}

// drawEntries draws entries as rows of a table. A later call continues the table.
func drawEntries(s cli.Screen, t *cli.Table, prices *costs.Table, entries []report.Entry) {
	cli.Extend(t, entries, func(e report.Entry) cli.Row {
		labels := labelText(without(e.Labels, quota.LabelMethod, quota.LabelRegion))
		if e.TakenBack {
			labels = "(taken back) " + labels
		}
		return cli.Row{"at", s.At(e.At), "bucket", e.Bucket,
			">units", s.Amount(report.UnitOf(prices, e.Bucket), e.Units),
			"method", e.Labels[quota.LabelMethod], "region", e.Labels[quota.LabelRegion],
			"labels", labels, "id", e.ID}
	})
	s.Draw(t, cli.Shorten("at"), cli.Cut("labels", 24), cli.Drop("id"),
		cli.Cut("labels", 10), cli.Cut("method", 12), cli.Cut("region", 6), cli.Cut("bucket", 8))
}

func without(labels quota.Labels, names ...string) quota.Labels {
	others := labels.With(nil)
	for _, name := range names {
		delete(others, name)
	}
	return others
}

// columned are the labels with their own column in CSV.
var columned = []string{quota.LabelMethod, quota.LabelRegion, quota.LabelJob, quota.LabelSource}

// printEntryLines prints entries, one per line. A later call continues the list.
func (a *app) printEntryLines(t *cli.Table, entries []report.Entry) error {
	cli.Extend(t, entries, func(e report.Entry) cli.Row {
		row := cli.Row{"at", e.At, "id", e.ID, "bucket", e.Bucket, "units", e.Units, "total", e.Total}
		for _, name := range columned {
			row = append(row, name, e.Labels[name])
		}
		return append(row, "labels", without(e.Labels, columned...).Encode())
	})
	return a.PrintLines(t)
}

// labelTakenOff labels, in the printed log, a correction that took units off earlier entries. Those
// entries already lack the units, so the correction's line has 0 units.
const labelTakenOff = "taken_off"

// focusColumns are the mandatory columns of FOCUS 1.4's Cost and Usage dataset and the optional
// ones that a ledger can fill, in the order of the specification, then two columns of our own. A
// ledger has no invoices.
var focusColumns = strings.Fields(`BilledCost BillingAccountId BillingAccountName BillingCurrency
BillingPeriodEnd BillingPeriodStart ChargeCategory ChargeClass ChargeDescription ChargeFrequency
ChargePeriodEnd ChargePeriodStart ConsumedQuantity ConsumedUnit ContractedCost EffectiveCost
HostProviderName InvoiceDetailId InvoiceId InvoiceIssuerName ListCost PricingCategory PricingQuantity PricingUnit
ServiceProviderName ServiceCategory ServiceName ServiceSubcategory SkuId SkuMeter SkuPriceId
SubAccountId SubAccountName Tags x_Bucket x_EntryId`)

// printFocus writes entries as charges of a FOCUS dataset in CSV.
func (a *app) printFocus(g *gate, entries []quota.Entry) error {
	a.Output = "csv"
	charges := slices.DeleteFunc(entries, func(e quota.Entry) bool {
		return e.Units == 0 // a correction: its units are already taken off other entries
	})
	return a.PrintLines(cli.View(charges, func(e quota.Entry) (row cli.Row) {
		cells := g.focusRow(e)
		for _, column := range focusColumns {
			row = append(row, column, cells[column])
		}
		return row
	}))
}

// focusRow returns an entry by column; a missing column is null. An entry of money is the cost of
// one call. Other entries measure the usage that this money pays for, and have no further cost.
func (g *gate) focusRow(e quota.Entry) map[string]string {
	table, at := g.prices(), e.At.UTC()
	month := time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
	unit := report.UnitOf(table, e.Bucket)
	cost, quantity, measure := "0", strconv.FormatInt(e.Units, 10),
		strings.ToUpper(unit.Name[:1])+unit.Name[1:]
	if unit.IsMoney() {
		cost = strconv.FormatFloat(float64(e.Units)/float64(unit.Scale), 'f', -1, 64)
		quantity, measure = "1", "Requests"
	}
	var about []string
	for _, label := range []string{quota.LabelMethod, quota.LabelPriced, quota.LabelSource,
		quota.LabelReason} {
		if text := e.Labels[label]; text != "" {
			about = append(about, text)
		}
	}
	if about == nil {
		about = []string{"units of " + e.Bucket}
	}
	sku := cmp.Or(e.Labels[quota.LabelMethod], quota.WholeOf(e.Bucket))
	row := map[string]string{
		"BilledCost": cost, "ContractedCost": cost, "EffectiveCost": cost, "ListCost": cost,
		"BillingAccountId":   cmp.Or(g.cred.Project, g.Credential),
		"BillingAccountName": g.Credential, "BillingCurrency": "USD",
		"BillingPeriodStart": focusTime(month), "BillingPeriodEnd": focusTime(month.AddDate(0, 1, 0)),
		"ChargeCategory": "Usage", "ChargeFrequency": "Usage-Based", "PricingCategory": "Standard",
		"ChargeDescription": strings.Join(slices.Compact(about), " "),
		"ChargePeriodStart": focusTime(at), "ChargePeriodEnd": focusTime(at.Add(time.Second)),
		"ConsumedQuantity": quantity, "ConsumedUnit": measure, "PricingQuantity": quantity,
		"PricingUnit": measure, "HostProviderName": table.Upstream,
		"InvoiceIssuerName": table.Upstream, "ServiceProviderName": table.Upstream,
		"ServiceName":     cmp.Or(table.Service, table.Upstream),
		"ServiceCategory": "Other", "ServiceSubcategory": "Other (Other)",
		"SkuId": sku, "SkuMeter": quota.WholeOf(e.Bucket),
		"SkuPriceId": cmp.Or(e.Labels[quota.LabelPriced], sku), "SubAccountId": g.Credential,
		"SubAccountName": g.Credential, "x_Bucket": e.Bucket, "x_EntryId": e.ID,
	}
	if table.HasModels() {
		row["ServiceCategory"], row["ServiceSubcategory"] = "AI and Machine Learning", "Generative AI"
	}
	if tags, err := json.Marshal(e.Labels.With(nil)); err == nil {
		row["Tags"] = string(tags)
	}
	return row
}

// focusTime formats a moment in whole seconds, as FOCUS requires.
func focusTime(at time.Time) string { return at.Truncate(time.Second).Format(time.RFC3339) }

const (
	followEvery  = 500 * time.Millisecond
	followNewest = 10 // default number of initial entries
)

// follow prints entries as they are charged, until it is interrupted.
func (a *app) follow(ctx context.Context, g *gate, q question) error {
	log := &ledger.Tail{Ledger: g.Ledger, Credential: g.Credential,
		Buckets: func(ctx context.Context) ([]string, error) { return g.chosen(ctx, q.bucket) }}
	start := ledger.TailStart{Newest: q.limit}
	if q.all {
		start.Newest = followNewest
	}
	_, in, err := g.span(ctx, q)
	if err != nil {
		return err
	}
	start.Since = in.Since
	news, err := log.Begin(ctx, start, time.Now())
	if err != nil {
		return err
	}
	out := a.newsPrinter(g)
	err = out(news)
	for state := new(outage); err == nil; {
		if !quota.Pause(ctx, followEvery) {
			return nil
		}
		news, err = log.Next(ctx, time.Now())
		if ctx.Err() != nil {
			return nil
		}
		if err = a.bridge(state, err); err == nil {
			err = out(news)
		}
	}
	return err
}

// newsPrinter prints new entries, batch by batch.
func (a *app) newsPrinter(g *gate) func(ledger.TailNews) error {
	if a.Output == "json" {
		a.Output = "jsonl"
	}
	table := new(cli.Table)
	started := false
	return func(news ledger.TailNews) error {
		for _, note := range news.Notes {
			a.Logger().Warn(note)
		}
		if started && len(news.Lines) == 0 {
			return nil
		}
		started = true
		var entries []report.Entry
		for _, line := range news.Lines {
			e := report.NewEntry(line.Entry)
			e.TakenBack = line.TakenBack
			entries = append(entries, e)
		}
		if a.InLines() {
			return a.printEntryLines(table, entries)
		}
		return a.Draw(a.Stdout, func(s cli.Screen) { // the terminal may have been resized
			drawEntries(s, table, g.prices(), entries)
		})
	}
}

// outage is the state of a ledger outage.
type outage struct{ since time.Time }

// bridge logs once that the ledger is unreachable, and once that it is reachable again. It returns
// any other error.
func (a *app) bridge(o *outage, err error) error {
	switch away := !o.since.IsZero(); {
	case errors.Is(err, quota.ErrUnreachable):
		if !away {
			o.since = time.Now()
			a.Logger().Warn("waiting for the ledger", "error", err)
		}
		return nil
	case err == nil && away:
		a.Logger().Info("ledger is back", "after", time.Since(o.since).Round(time.Second))
		o.since = time.Time{}
	}
	return err
}
