package main

import (
	"quotabudget/internal/cli"
	"quotabudget/internal/forecast"
)

type forecastList struct {
	Credentials []credentialForecast `json:"credentials"`
}

type credentialForecast struct {
	Credential string           `json:"credential"`
	At         cli.Time         `json:"at"`
	Buckets    []bucketForecast `json:"buckets"`
}

type bucketForecast struct {
	Bucket                string           `json:"bucket"`
	Text                  string           `json:"text"`
	Verdict               forecast.Verdict `json:"verdict"`
	ResetAt               cli.Time         `json:"reset_at"`
	Remaining             int64            `json:"remaining"`
	DryAt                 cli.Time         `json:"dry_at"`
	DryEarliest           cli.Time         `json:"dry_earliest"`
	DryLatest             cli.Time         `json:"dry_latest"`
	DryBeforeResetSeconds *int64           `json:"dry_before_reset_seconds"`
	Chance                float64          `json:"chance"`
	OpensAt               cli.Time         `json:"opens_at"`
	SuspendedUntil        cli.Time         `json:"suspended_until"`
	Limit                 *string          `json:"limit"`
	Advice                *string          `json:"advice"`
	UnscheduledPerHour    rateForecast     `json:"unscheduled_per_hour"`
	Scheduled             workForecast     `json:"scheduled"`
	Lost                  workForecast     `json:"lost"`
	LeftOut               workForecast     `json:"left_out"`
	LostRuns              []lostRun        `json:"lost_runs"`
}

type rateForecast struct {
	Low    float64 `json:"low"`
	Likely float64 `json:"likely"`
	High   float64 `json:"high"`
}

type workForecast struct {
	Runs  int64 `json:"runs"`
	Pages int64 `json:"pages"`
	Units int64 `json:"units"`
}

type lostRun struct {
	At        cli.Time `json:"at"`
	Scheduled cli.Time `json:"scheduled"`
	Job       string   `json:"job"`
	Region    string   `json:"region"`
	Pages     int64    `json:"pages"`
	Lost      int64    `json:"lost"`
	Limit     string   `json:"limit"`
}

func newForecastList(results []result) forecastList {
	list := forecastList{Credentials: []credentialForecast{}}
	for _, f := range results {
		n := len(list.Credentials)
		if n == 0 || list.Credentials[n-1].Credential != f.credential {
			list.Credentials = append(list.Credentials,
				credentialForecast{Credential: f.credential, At: cli.Time(f.At)})
			n++
		}
		c := &list.Credentials[n-1]
		c.Buckets = append(c.Buckets, newBucketForecast(f.Forecast))
	}
	return list
}

func newBucketForecast(f forecast.Forecast) bucketForecast {
	out := bucketForecast{
		Bucket: f.Bucket, Text: f.Text(), Verdict: f.Verdict, ResetAt: cli.Time(f.ResetAt),
		Remaining: f.Remaining,
		DryAt:     cli.Time(f.DryAt), DryEarliest: cli.Time(f.Earliest),
		DryLatest: cli.Time(f.Latest), Chance: f.Chance,
		OpensAt: cli.Time(f.OpensAt), SuspendedUntil: cli.Time(f.SuspendedUntil),
		Limit: cli.OrNull(f.Limit), Advice: cli.OrNull(f.Advice),
		UnscheduledPerHour: rateForecast(f.Rate), Scheduled: workForecast(f.Scheduled),
		Lost: workForecast(f.Lost), LeftOut: workForecast(f.LeftOut),
		LostRuns: []lostRun{},
	}
	if !f.DryAt.IsZero() {
		out.DryBeforeResetSeconds = new(cli.Seconds(f.ResetAt.Sub(f.DryAt)))
	}
	for _, r := range f.LostRuns {
		out.LostRuns = append(out.LostRuns, lostRun{cli.Time(r.At), cli.Time(r.Scheduled), r.Job,
			r.Region, r.Pages, r.Lost, r.Limit})
	}
	return out
}
