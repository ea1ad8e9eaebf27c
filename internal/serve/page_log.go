package serve

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

// logBody holds the units spent by a label, and the newest charges.
type logBody struct {
	By, Since, Bucket, Credential string
	Labels, Spans                 []choice
	Buckets, Credentials          []choice
	Groups                        []report.Group
	Totals                        []report.Group // of each bucket
	Entries                       []quota.Entry

	table *costs.Table
}

// Amount formats units of a bucket: $0.005. Plain units have no name.
func (b *logBody) Amount(bucket string, units int64) string {
	return amount(report.UnitOf(b.table, bucket), units)
}

// Part returns the group's share of the units spent from its bucket, in percent.
func (b *logBody) Part(g report.Group) int64 {
	for _, total := range b.Totals {
		if total.Bucket == g.Bucket {
			return percent(g.Units, total.Units)
		}
	}
	return 0
}

func amount(unit costs.Unit, units int64) string {
	if unit.Name == "units" {
		return count(units)
	}
	return unit.Text(units)
}

// choice is one value of a form's field.
type choice struct {
	Value, Name string
	Chosen      bool
}

func choices(chosen string, values ...string) (all []choice) {
	for i := 0; i+1 < len(values); i += 2 {
		all = append(all, choice{values[i], values[i+1], values[i] == chosen})
	}
	return all
}

// mostEntries bounds the listed charges.
const mostEntries = 100

func (p *site) log(ctx context.Context, r *http.Request, now time.Time) (page, error) {
	if err := p.mayRead(r); err != nil {
		return page{}, err
	}
	body, err := p.newLog(r)
	if err != nil {
		return page{}, err
	}
	var since time.Time
	if d, _ := time.ParseDuration(body.Since); d > 0 {
		at, err := p.Source().Ledger.Time(ctx)
		if err != nil {
			return page{}, err
		}
		since = at.Add(-d)
	}
	buckets := []string{body.Bucket}
	if body.Bucket == "" {
		buckets = p.buckets(body.Credential)
	}
	sums, err := p.Source().Spent(ctx, body.Credential, buckets,
		report.Span{Since: since}, body.By)
	if err != nil {
		return page{}, err
	}
	groups := sums.Groups(body.By)
	body.Groups, body.Totals = groups.Rows, groups.Totals()
	body.Entries, err = p.Source().Newest(ctx, body.Credential, buckets, since, mostEntries)
	if err != nil {
		return page{}, err
	}
	return page{Title: "Log", Section: "log", Live: true, Body: body}, nil
}

// newLog reads the form.
func (p *site) newLog(r *http.Request) (*logBody, error) {
	cfg := p.Source().Config
	b := &logBody{By: cmp.Or(r.FormValue("by"), quota.LabelJob),
		Since: cmp.Or(r.FormValue("since"), "24h"), Bucket: r.FormValue("bucket"),
		Credential: cmp.Or(r.FormValue("credential"), cfg.Credentials[0].Name)}
	b.Labels = choices(b.By, "job", "job", "region", "region", "method", "method")
	if !slices.ContainsFunc(b.Labels, func(c choice) bool { return c.Chosen }) {
		if err := (quota.Labels{b.By: "x"}).Check(); err != nil || !quota.IsSummed(b.By) {
			return nil, badRequest("by: write job, region, method or the name of another label")
		}
		b.Labels = append(b.Labels, choice{b.By, b.By, true})
	}
	b.Spans = choices(b.Since, "1h", "1 hour", "24h", "24 hours", "72h", "3 days", "all",
		"everything")
	if !slices.ContainsFunc(b.Spans, func(c choice) bool { return c.Chosen }) {
		return nil, badRequest("since: write 1h, 24h, 72h or all")
	}
	for _, c := range cfg.Credentials {
		b.Credentials = append(b.Credentials, choice{c.Name, c.Name, c.Name == b.Credential})
	}
	cred, err := cfg.Credential(b.Credential)
	if err != nil {
		return nil, badRequest("credential: %v", err)
	}
	b.table = cfg.Table(cred)
	buckets := p.buckets(b.Credential)
	b.Buckets = []choice{{"", "all buckets", b.Bucket == ""}}
	for _, name := range buckets {
		b.Buckets = append(b.Buckets, choice{name, name, name == b.Bucket})
	}
	part := func(name string) bool { return quota.WholeOf(name) == quota.WholeOf(b.Bucket) }
	if b.Bucket != "" && !slices.ContainsFunc(buckets, part) {
		return nil, badRequest("bucket: no such bucket")
	}
	return b, nil
}

// buckets returns the buckets of a credential that may have a log.
func (p *site) buckets(credential string) []string {
	c, err := p.Source().Config.Credential(credential)
	if err != nil {
		return nil
	}
	var limited []string
	for _, l := range c.Limits {
		if !slices.Contains(limited, l.Bucket) {
			limited = append(limited, l.Bucket)
		}
	}
	return report.LogBuckets(p.Source().Config, c, limited)
}
