package costs

import (
	"cmp"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/grammar"
	"quotabudget/internal/quota"
)

// Meter is a request whose response reports the upstream's own count or limits.
type Meter struct {
	Name    string // name of the API that answers; its host by default
	Verb    string `yaml:"-"`
	URL     string `yaml:"-"` // absolute, or below the upstream's endpoint; with From and the like
	Body    string // body of a POST; "" for a GET
	Headers map[string]string
	Key     string        // api_key, admin_key or service_account, as a credential has them
	Role    string        // permission that the key needs
	Times   Form          // form of times in the request: epoch or rfc3339
	Lag     time.Duration // how late the upstream counts

	// Next has the path of the next page's name, the parameter for it, and the path of a flag that
	// is set if there is a next page.
	Next struct{ Path, Parameter, More string }
	// Periods has the paths of a report's periods and of the begin of a period, and its form. It is
	// zero for a report on the requested time or the window in progress.
	Periods struct {
		At, Begin string
		As        Form
	}
	Rows    string // path of a period's rows; "" if the period is the only row
	Metric  string // path of the upstream's name for the bucket, in a row
	Model   string // path of the model, in a row; what follows ", " is ignored
	Project string // path of the project, in a row

	Usage, Limits []Figure `yaml:"-"`
	Source        Source   `yaml:"-"`
}

// Figure locates a bucket's number in a row.
type Figure struct {
	Bucket string               // "" for the bucket that the row's metric names
	Paths  grammar.List[string] `yaml:"figure"` // paths of the numbers to add up
	Scale  float64              // units of the bucket for each number's unit
	// Window is the window of the count or the limit. It is zero for the upstream's own day. Rate
	// has the rate of a restoring window.
	Window quota.Window `yaml:"-"`
	Rate   string
	End    struct { // end of an anchored window
		Path string
		As   Form
	}
	Least bool    // the bucket also counts units that this figure lacks
	Unit  string  // required value at the row's key unit; "" for any
	Tiers []int64 // possible limits: the smallest that is not below the figure
}

// The names that a URL may contain in braces, besides project and service.
const (
	From    = "{from}"    // the begin of the time to report on
	Until   = "{until}"   // its end
	Seconds = "{seconds}" // its length
)

// Meters returns the upstream's meters.
func (t *Table) Meters() []Meter { return t.meters }

// Dated reports whether the periods of a report have a begin.
func (m Meter) Dated() bool { return m.Periods.Begin != "" }

// Ranged reports whether the request can ask for any span of time, not only for whole days.
func (m Meter) Ranged() bool { return !m.Dated() && strings.Contains(m.URL, From) }

// Current reports whether the meter reports only on the window in progress.
func (m Meter) Current() bool { return !m.Dated() && !m.Ranged() }

// modelFact is the fact to which the models of a report correspond.
const modelFact = "model"

// HasModels reports whether calls of the upstream name a model.
func (t *Table) HasModels() bool {
	return slices.ContainsFunc(t.facts, func(f fact) bool { return f.name == modelFact })
}

// PartOf returns the part of a split bucket that calls of a model are charged to, or the bucket.
func (t *Table) PartOf(bucket, model string) string {
	b, env := t.bucketNamed(bucket), variables{dayVariable: t.Day(), modelFact: model}
	for _, f := range t.facts {
		if f.name == modelFact || !slices.Contains(b.Split, f.name) {
			continue
		}
		if text, err := f.Request.String(env); err == nil {
			env[f.name] = text
		}
	}
	q := Quote{table: t, env: env, names: map[string]string{}}
	return q.part(bucket)
}

// ModelName returns the name of a model without its date, as the label priced begins with it.
func ModelName(model string) string {
	return partLetters(undated(strings.ToLower(model)))
}

// fileMeter is a Meter as written in a list.
type fileMeter struct {
	Meter             `yaml:",inline"`
	Get, Post, Source string
	Usage             entries[fileFigure]
	Limits            []fileFigure
}

type fileFigure struct {
	Figure           `yaml:",inline"`
	Window, Timezone string
}

func (r *reader) meter(f fileMeter, at grammar.Place) {
	m := f.Meter
	m.Verb, m.URL, m.Source = "GET", f.Get, r.source(f.Source, at.Key("source"))
	if f.Post != "" {
		m.Verb, m.URL = "POST", f.Post
	}
	if u, err := url.Parse(m.URL); err == nil {
		m.Name = cmp.Or(m.Name, u.Host, r.table.Upstream)
	}
	m.Times, m.Periods.As = cmp.Or(m.Times, FormRFC3339), cmp.Or(m.Periods.As, FormRFC3339)
	for _, e := range f.Usage {
		e.value.Bucket = e.key
		at := at.Key("usage").Key(e.key)
		m.Usage = append(m.Usage, r.figure(e.value, at, at))
	}
	for i, l := range f.Limits {
		at := at.Key("limits").Item(i)
		if l.Bucket == "" && m.Metric == "" {
			at.Add("bucket is missing")
		}
		m.Limits = append(m.Limits, r.figure(l, at, at.Key("bucket")))
	}
	r.table.meters = append(r.table.meters, m)
}

func (r *reader) figure(f fileFigure, at, bucket grammar.Place) Figure {
	r.knownBucket(f.Bucket, bucket)
	zone := f.Timezone
	if zone == "" && quota.IsCalendarWord(f.Window) {
		zone = time.UTC.String()
	}
	out := f.Figure
	out.Scale, out.End.As = cmp.Or(f.Scale, 1), cmp.Or(f.End.As, FormEpoch)
	if f.Rate == "" { // otherwise it is made of the limit and the rate
		out.Window = window(f.Window, zone, at.Key("window"))
	}
	return out
}

// checkMeterURL checks that a meter is below the upstream, or at an https address.
func checkMeterURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return fmt.Errorf("cannot be read as a path or an address")
	case u.Host == "" && strings.HasPrefix(text, "/"), u.Scheme == "https" && u.User == nil:
		return nil
	}
	return fmt.Errorf("must be a path such as /v1/usage, or begin with https://")
}
