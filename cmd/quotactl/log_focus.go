package main

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

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
func (a *app) printFocus(g *gate, entries []quota.Entry) (err error) {
	a.Output = "csv"
	out := a.Lines(focusColumns...)
	for _, e := range entries {
		if e.Labels[labelTakenOff] != "" { // the entries already lack those units
			continue
		}
		row := g.focusRow(e)
		cells := make([]string, len(focusColumns))
		for i, column := range focusColumns {
			cells[i] = row[column]
		}
		err = cmp.Or(err, out.Add(nil, cells...))
	}
	return cmp.Or(err, out.Flush())
}

// focusRow returns an entry by column; a missing column is null. An entry of money is the cost of
// one call. Other entries measure the usage that this money pays for, and have no further cost.
func (g *gate) focusRow(e quota.Entry) map[string]string {
	table, at := g.prices(), e.At.UTC()
	month := time.Date(at.Year(), at.Month(), 1, 0, 0, 0, 0, time.UTC)
	unit := report.UnitOf(table, e.Bucket)
	cost, quantity, measure := "0", strconv.FormatInt(e.Units, 10), unitTitle(unit)
	if unit.IsMoney() {
		cost = strconv.FormatFloat(float64(e.Units)/float64(unit.Scale), 'f', -1, 64)
		quantity, measure = "1", "Requests"
	}
	sku := cmp.Or(e.Labels[quota.LabelMethod], quota.WholeOf(e.Bucket))
	row := map[string]string{
		"BilledCost": cost, "ContractedCost": cost, "EffectiveCost": cost, "ListCost": cost,
		"BillingAccountId":   cmp.Or(g.cred.Project, g.Credential),
		"BillingAccountName": g.Credential, "BillingCurrency": "USD",
		"BillingPeriodStart": focusTime(month), "BillingPeriodEnd": focusTime(month.AddDate(0, 1, 0)),
		"ChargeCategory": "Usage", "ChargeFrequency": "Usage-Based", "PricingCategory": "Standard",
		"ChargeDescription": focusText(e), "ChargePeriodStart": focusTime(at),
		"ChargePeriodEnd":  focusTime(at.Add(time.Second)),
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

// focusText describes an entry by its labels.
func focusText(e quota.Entry) string {
	words := []string{}
	for _, label := range []string{quota.LabelMethod, quota.LabelPriced, quota.LabelSource,
		quota.LabelReason} {
		if text := e.Labels[label]; text != "" {
			words = append(words, text)
		}
	}
	if len(words) == 0 {
		return "units of " + e.Bucket
	}
	return strings.Join(slices.Compact(words), " ")
}

// unitTitle capitalizes a unit as FOCUS does: Tokens.
func unitTitle(u costs.Unit) string { return strings.ToUpper(u.Name[:1]) + u.Name[1:] }
