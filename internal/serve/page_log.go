package serve

import (
	"cmp"
	"context"
	"net/http"
	"slices"
	"time"

	"quotabudget/internal/config"
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

// choices returns the values of a field, given with their names, and whether one is chosen.
func choices(chosen string, values ...string) (all []choice, ok bool) {
	for i := 0; i+1 < len(values); i += 2 {
		all = append(all, choice{values[i], values[i+1], values[i] == chosen})
		ok = ok || values[i] == chosen
	}
	return all, ok
}

// maxEntries bounds the listed charges.
const maxEntries = 100

func (p *site) log(ctx context.Context, r *http.Request, now time.Time) (page, error) {
	if err := p.mayRead(r); err != nil {
		return page{}, err
	}
	from := p.Source()
	body, buckets, err := newLog(from.Config, r)
	if err != nil {
		return page{}, err
	}
	var since time.Time
	if d, _ := time.ParseDuration(body.Since); d > 0 {
		at, err := from.Ledger.Time(ctx)
		if err != nil {
			return page{}, err
		}
		since = at.Add(-d)
	}
	sums, err := from.Spent(ctx, body.Credential, buckets, report.Span{Since: since}, body.By)
	if err != nil {
		return page{}, err
	}
	groups := sums.Groups(body.By)
	body.Groups, body.Totals = groups.Rows, groups.Totals()
	body.Entries, err = from.Newest(ctx, body.Credential, buckets, since, maxEntries)
	return page{Title: "Log", Section: "log", Live: true, Body: body}, err
}

// newLog reads the form. It also returns the buckets to show.
func newLog(cfg *config.Config, r *http.Request) (b *logBody, shown []string, err error) {
	b = &logBody{By: cmp.Or(r.FormValue("by"), quota.LabelJob),
		Since: cmp.Or(r.FormValue("since"), "24h"), Bucket: r.FormValue("bucket"),
		Credential: cmp.Or(r.FormValue("credential"), cfg.Credentials[0].Name)}
	var ok bool
	if b.Labels, ok = choices(b.By, "job", "job", "region", "region", "method", "method"); !ok {
		if err := (quota.Labels{b.By: "x"}).Check(); err != nil || !quota.IsSummed(b.By) {
			return nil, nil, badRequest("by: write job, region, method or the name of another label")
		}
		b.Labels = append(b.Labels, choice{b.By, b.By, true})
	}
	if b.Spans, ok = choices(b.Since, "1h", "1 hour", "24h", "24 hours", "72h", "3 days", "all",
		"everything"); !ok {
		return nil, nil, badRequest("since: write 1h, 24h, 72h or all")
	}
	cred, err := cfg.Credential(b.Credential)
	if err != nil {
		return nil, nil, badRequest("credential: %v", err)
	}
	for _, c := range cfg.Credentials {
		b.Credentials = append(b.Credentials, choice{c.Name, c.Name, c.Name == b.Credential})
	}
	b.table = cfg.Table(cred)
	buckets := logBuckets(cfg, cred)
	b.Buckets = []choice{{"", "all buckets", b.Bucket == ""}}
	for _, name := range buckets {
		b.Buckets = append(b.Buckets, choice{name, name, name == b.Bucket})
	}
	part := func(name string) bool { return quota.WholeOf(name) == quota.WholeOf(b.Bucket) }
	switch {
	case b.Bucket == "":
		return b, buckets, nil
	case !slices.ContainsFunc(buckets, part):
		return nil, nil, badRequest("bucket: no such bucket")
	}
	return b, []string{b.Bucket}, nil
}
