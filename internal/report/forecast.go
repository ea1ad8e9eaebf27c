package report

import (
	"context"
	"fmt"
	"slices"

	"quotabudget/internal/costs"
	"quotabudget/internal/plan"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// ForecastList holds the forecasts of all credentials.
type ForecastList struct {
	Credentials []CredentialForecast `json:"credentials"`
}

// CredentialForecast holds the forecasts of one credential's buckets.
type CredentialForecast struct {
	Credential string           `json:"credential"`
	At         words.Time       `json:"at"`
	Buckets    []BucketForecast `json:"buckets"`
}

// BucketForecast states when a bucket will run dry, which runs are lost, and how to avoid that.
type BucketForecast struct {
	Bucket                string       `json:"bucket"`
	Text                  string       `json:"text"`
	Verdict               plan.Verdict `json:"verdict"`
	ResetAt               words.Time   `json:"reset_at"`
	Remaining             int64        `json:"remaining"`
	DryAt                 words.Time   `json:"dry_at"`
	DryEarliest           words.Time   `json:"dry_earliest"`
	DryLatest             words.Time   `json:"dry_latest"`
	DryBeforeResetSeconds *int64       `json:"dry_before_reset_seconds"`
	OpensAt               words.Time   `json:"opens_at"`
	SuspendedUntil        words.Time   `json:"suspended_until"`
	Limit                 *string      `json:"limit"`
	Advice                *string      `json:"advice"`
	UnscheduledPerHour    plan.Rate    `json:"unscheduled_per_hour"`
	Scheduled             plan.Work    `json:"scheduled"`
	Lost                  plan.Work    `json:"lost"`
	LeftOut               plan.Work    `json:"left_out"`
	LostRuns              []LostRun    `json:"lost_runs"`
	Short                 int64        `json:"short"` // units missing until the reset
	Unit                  string       `json:"unit"`
}

// LostRun is a run that will lose pages.
type LostRun struct {
	At        words.Time `json:"at"`
	Scheduled words.Time `json:"scheduled"`
	Job       string     `json:"job"`
	Region    string     `json:"region"`
	Pages     int64      `json:"pages"`
	Lost      int64      `json:"lost"`
	Limit     string     `json:"limit"`
}

// NewForecastList returns the JSON form of forecasts, which are in the order of their credentials.
func NewForecastList(results []Forecast) ForecastList {
	list := ForecastList{Credentials: []CredentialForecast{}}
	for _, f := range results {
		n := len(list.Credentials)
		if n == 0 || list.Credentials[n-1].Credential != f.Credential {
			list.Credentials = append(list.Credentials,
				CredentialForecast{Credential: f.Credential, At: words.Time(f.At)})
			n++
		}
		out := BucketForecast{
			Bucket: f.Bucket, Text: f.Text(), Verdict: f.Verdict, ResetAt: words.Time(f.ResetAt),
			Remaining: f.Remaining,
			DryAt:     words.Time(f.DryAt), DryEarliest: words.Time(f.Earliest),
			DryLatest: words.Time(f.Latest),
			OpensAt:   words.Time(f.OpensAt), SuspendedUntil: words.Time(f.SuspendedUntil),
			Limit: words.OrNull(f.Limit), Advice: words.OrNull(f.Advice),
			UnscheduledPerHour: f.Rate, Scheduled: f.Scheduled, Lost: f.Lost, LeftOut: f.LeftOut,
			LostRuns: []LostRun{}, Short: f.Missing, Unit: f.Unit.String(),
		}
		if !f.DryAt.IsZero() {
			out.DryBeforeResetSeconds = new(words.Seconds(f.ResetAt.Sub(f.DryAt)))
		}
		for _, r := range f.LostRuns {
			out.LostRuns = append(out.LostRuns, LostRun{words.Time(r.At), words.Time(r.Scheduled), r.Job,
				r.Region, r.Wanted, r.Missing(), r.Limit})
		}
		c := &list.Credentials[n-1]
		c.Buckets = append(c.Buckets, out)
	}
	return list
}

// Forecast is the forecast of one bucket, with its credential.
type Forecast struct {
	Credential string
	Unit       costs.Unit
	plan.Forecast
}

// Forecasts computes when the named bucket will run dry; "" means every bucket. The name of a split
// bucket means all of its parts. For a bucket without a limit it returns quota.ErrNoBucket.
func (s Source) Forecasts(ctx context.Context, bucket string) (list []Forecast, err error) {
	isKnown, buckets := bucket == "", []string{}
	for _, c := range s.Config.Credentials {
		budget := s.budget(c)
		q, err := s.question(ctx, budget, s.Config.Table(c), bucket)
		if err != nil {
			return nil, err
		}
		buckets, isKnown = append(buckets, budget.Buckets()...),
			isKnown || len(q.Limits) > 0 || slices.Contains(budget.Buckets(), bucket)
		forecasts, err := q.Ask(ctx, s.Ledger)
		if err != nil {
			return nil, err
		}
		if err := opensExactly(ctx, budget, forecasts); err != nil {
			return nil, err
		}
		for _, f := range forecasts {
			list = append(list, Forecast{c.Name, UnitOf(s.Config.Table(c), f.Bucket), f})
		}
	}
	switch {
	case !isKnown:
		return nil, fmt.Errorf("%w: %q%s", quota.ErrNoBucket, bucket,
			words.DidYouMean(bucket, buckets))
	case bucket != "" && len(list) == 0:
		return nil, fmt.Errorf("%w: cannot forecast %q: its limits are only observed, or limit "+
			"concurrent calls", quota.ErrNoBucket, bucket)
	}
	return list, nil
}

// opensExactly corrects the times at which exhausted buckets open. A forecast reads the log in
// steps of ten minutes, so its times may be up to ten minutes early.
func opensExactly(ctx context.Context, b *quota.Budget, forecasts []plan.Forecast) error {
	exhausted := func(f plan.Forecast) bool { return f.Verdict == plan.Exhausted }
	if !slices.ContainsFunc(forecasts, exhausted) {
		return nil
	}
	usage, err := b.Usage(ctx)
	for i := range forecasts {
		f := &forecasts[i]
		for _, u := range usage.Buckets {
			for _, l := range u.Limits {
				if exhausted(*f) && u.Bucket == f.Bucket && l.Limit.Name() == f.Limit &&
					l.NextFreeAt.After(f.OpensAt) && !f.OpensAt.IsZero() {
					f.OpensAt = l.NextFreeAt
				}
			}
		}
	}
	return err
}

func (s Source) question(ctx context.Context, b *quota.Budget, table *costs.Table,
	bucket string) (plan.Question, error) {
	resets := make(map[string]quota.Window)
	q := plan.Question{Credential: b.Credential, Paces: quota.Enforced(b.Paces), Resets: resets,
		Amount: func(bucket string, units int64) string {
			return UnitOf(table, bucket).Text(units)
		}}
	limits, _, err := b.Listed(ctx)
	if bucket != quota.WholeOf(bucket) { // the whole bucket may not be listed
		limits, err = b.Standing(ctx)
	}
	if err != nil {
		return q, err
	}
	for _, l := range quota.Enforced(limits) {
		if bucket == "" || l.Bucket == bucket || quota.WholeOf(l.Bucket) == bucket {
			q.Limits = append(q.Limits, l)
			if listed, ok := table.Bucket(l.Bucket); ok {
				resets[l.Bucket] = listed.Reset
			}
		}
	}
	cred, err := s.Config.Credential(b.Credential)
	if err != nil {
		return q, err
	}
	if q.Price, err = s.Config.Costs.Price(PageMethod); err != nil { // no run can charge a page
		q.Lanes, err = s.JobLanes(ctx, cred)
		return q, err
	}
	q.Lanes, err = s.Lanes(ctx, cred)
	return q, err
}
