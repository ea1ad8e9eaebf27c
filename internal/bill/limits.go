package bill

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/untrusted"
)

// Limit is a limit that the upstream reports.
type Limit struct {
	Bucket string // or part of one
	Window quota.Window
	Units  int64 // -1 for unlimited or more than quota.MaxUnits
}

// Limits returns the limits that the upstream reports of the account.
func (c *Client) Limits(ctx context.Context) (all []Limit, err error) {
	for _, m := range c.Table.Meters() {
		if len(m.Limits) == 0 || !c.can(m) {
			continue
		}
		pages, err := c.ask(ctx, m, time.Time{}, time.Time{})
		if err != nil {
			return nil, err
		}
		before := len(all)
		for _, page := range pages {
			rows := []any{page}
			if m.Rows != "" {
				rows = untrusted.Items(page, m.Rows)
			}
			for _, row := range rows {
				for _, f := range m.Limits {
					l, ok, err := c.limit(m, f, row)
					if err != nil {
						return nil, err
					}
					if ok && !slices.Contains(all, l) {
						all = append(all, l)
					}
				}
			}
		}
		if len(all) == before && m.Metric == "" {
			return nil, unusable(m, "its response has no limits")
		}
	}
	return all, nil
}

// can reports whether the client has what a request needs.
func (c *Client) can(m costs.Meter) bool {
	has := map[string]bool{"service_account": c.Account != nil, "api_key": c.Gate != nil,
		"admin_key": c.AdminKey != ""}
	return has[m.Key] && (c.ProjectName() != "" || !strings.Contains(m.URL, "{project}"))
}

// limit reads a limit from a row. It returns false if the row has none that is in the price list.
func (c *Client) limit(m costs.Meter, f costs.Figure, row any) (l Limit, ok bool, err error) {
	l = Limit{Bucket: f.Bucket, Window: f.Window, Units: -1}
	if unit, _ := untrusted.FindText(row, "unit"); f.Unit != "" && unit != f.Unit {
		return l, false, nil
	}
	if f.Bucket == "" {
		metric, _ := untrusted.FindText(row, m.Metric)
		bucket, known := c.Table.BucketOfMetric(metric)
		if l.Bucket = bucket.Name; !known {
			return l, false, nil
		}
	}
	if model, _ := untrusted.FindText(row, m.Model); model != "" {
		l.Bucket = c.Table.PartOf(l.Bucket, model)
	}
	if text, _ := untrusted.FindText(row, f.Paths[0]); text == "-1" && len(f.Paths) == 1 {
		return l, true, nil
	}
	n, ok, err := number(m, f, row)
	if err != nil || !ok {
		return l, false, err
	}
	if n *= f.Scale; n > quota.MaxUnits { // such as 9223372036854775807, for unlimited
		return l, true, nil
	}
	l.Units = int64(n)
	if i := slices.IndexFunc(f.Tiers, func(tier int64) bool { return tier >= l.Units }); i >= 0 {
		l.Units = f.Tiers[i]
	}
	if f.Rate != "" {
		rate, _ := untrusted.FindText(row, f.Rate)
		if l.Window, err = quota.ParseWindow(fmt.Sprintf("restoring %s/1s", rate), ""); err != nil {
			return l, false, unusable(m, f.Rate+" is not a rate")
		}
	}
	return l, true, nil
}

// Difference is a limit that differs from the upstream's.
type Difference struct {
	Ours   quota.Limit
	Theirs int64 // -1 for unlimited
}

// Differ returns our limits that differ from the upstream's.
func Differ(ours []quota.Limit, theirs []Limit) (all []Difference) {
	for _, their := range theirs {
		for _, l := range ours {
			if l.Bucket == their.Bucket && !l.Across && their.About(l.Window) &&
				l.Units != their.Units {
				all = append(all, Difference{l, their.Units})
			}
		}
	}
	return all
}

// About reports whether l can be compared with a configured limit of that window. A sliding window
// of a day or a minute can be compared with a calendar window.
func (l Limit) About(w quota.Window) bool {
	short := func(w quota.Window) string {
		text := w.Text()
		if w.IsRestoring() {
			return "restoring"
		}
		return strings.NewReplacer("24h", "day", "1m", "minute").Replace(text)
	}
	return short(l.Window) == short(w)
}
