package bill

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"golang.org/x/oauth2/jwt"
	"google.golang.org/api/monitoring/v3"
	"google.golang.org/api/option"
	"google.golang.org/api/serviceusage/v1beta1"

	"quotabudget/internal/costs"
	"quotabudget/internal/standin"
)

const service = "youtube.googleapis.com"

// env is a stand-in with a service account, at noon of a day.
type env struct {
	*standin.YouTube
	url     string
	account *Account
	key     []byte
	now     time.Time
}

func newEnv(t *testing.T) *env {
	t.Helper()
	s := &env{YouTube: &standin.YouTube{}, now: time.Now().Truncate(time.Hour)}
	owner, key, err := standin.NewAccountKey("p1", "https://oauth2.googleapis.com/token")
	must(t, err)
	s.key = key
	s.Cloud = standin.Cloud{Project: "p1", Accounts: []*standin.ServiceAccount{owner}}
	s.Now = func() time.Time { return s.now }
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.url = server.URL + "/"
	s.account, err = ParseAccount(key)
	must(t, err)
	return s
}

// must ends a test that cannot go on after an error.
func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (s *env) client() *Client {
	return &Client{Table: costs.Default(), Account: s.account, Cloud: s.url}
}

// used returns what the upstream has counted of each bucket that it reports about.
func used(ctx context.Context, c *Client, from, until time.Time) (map[string]int64, error) {
	units, m := map[string]int64{}, c.Table.Meters()[0]
	for _, f := range m.Usage {
		n, err := c.Count(ctx, m, f, Day{Begin: from, End: until, Until: until})
		if err != nil {
			return nil, err
		}
		if n.Known {
			units[service+"/"+f.Bucket] = n.Units
		}
	}
	return units, nil
}

// TestUsage: Count returns the upstream's metering by metric and interval, after its lag.
func TestUsage(t *testing.T) {
	s := newEnv(t)
	s.Cloud.Lag = 7 * time.Minute
	s.Use(s.now.Add(-3*time.Hour), "default", 40)
	s.Use(s.now.Add(-time.Hour), "default", 2)
	s.Use(s.now.Add(-time.Hour), "search_list", 1)
	s.Use(s.now.Add(-5*time.Minute), "default", 100)
	usage := func(from, until time.Duration) map[string]int64 {
		t.Helper()
		units, err := used(t.Context(), s.client(), s.now.Add(-from), s.now.Add(-until))
		must(t, err)
		return units
	}
	const byDefault, search = service + "/default", service + "/search_list"
	for _, c := range []struct {
		from, until time.Duration
		want        map[string]int64
	}{
		{4 * time.Hour, 0, map[string]int64{byDefault: 42, search: 1}},
		{2 * time.Hour, 0, map[string]int64{byDefault: 2, search: 1}},
		{4 * time.Hour, time.Hour, map[string]int64{byDefault: 40}},
		{30 * time.Minute, 0, map[string]int64{}},
	} {
		if got := usage(c.from, c.until); !maps.Equal(got, c.want) {
			t.Errorf("from %s to %s ago: %v, want %v", c.from, c.until, got, c.want)
		}
	}
	s.now = s.now.Add(7 * time.Minute)
	if got := usage(time.Hour-time.Minute, 0); got[byDefault] != 100 {
		t.Errorf("seven minutes later: %v", got)
	}
}

func TestLimits(t *testing.T) {
	s := newEnv(t)
	s.YouTube.Limits, s.MinuteLimit = map[string]int64{"default": 20_000, "search_list": 0,
		"video_insert": math.MaxInt64}, 300
	got, err := s.client().Limits(t.Context())
	const want = "default 20000 day, default 300 1m, search_list 0 day, " +
		"video_batch_get_stats 10000 day, video_insert -1 day"
	if text := inWords(got); err != nil || text != want {
		t.Errorf("%s, %v", text, err)
	}
}

// TestAsTheGeneratedClients: Google's own clients accept the stand-in's responses and return the
// same as this package.
func TestAsTheGeneratedClients(t *testing.T) {
	s := newEnv(t)
	s.Use(s.now.Add(-time.Hour), "default", 42)
	s.Use(s.now.Add(-time.Hour), "video_insert", 3)
	ctx, from := t.Context(), s.now.Add(-2*time.Hour)
	config := jwt.Config{Email: s.account.Email, PrivateKey: []byte(s.account.key), Scopes: scopes,
		TokenURL: s.url + "token"}
	options := []option.ClientOption{option.WithHTTPClient(config.Client(ctx)),
		option.WithEndpoint(s.url)}

	metrics, err := monitoring.NewService(ctx, options...)
	must(t, err)
	theirs := map[string]int64{}
	err = metrics.Projects.TimeSeries.List("projects/p1").
		Filter(`metric.type="serviceruntime.googleapis.com/quota/rate/net_usage" AND `+
			`resource.type="consumer_quota" AND resource.label.service="youtube.googleapis.com"`).
		IntervalStartTime(from.UTC().Format(time.RFC3339)).
		IntervalEndTime(s.now.UTC().Format(time.RFC3339)).
		AggregationAlignmentPeriod("7200s").AggregationPerSeriesAligner("ALIGN_SUM").
		AggregationCrossSeriesReducer("REDUCE_SUM").
		AggregationGroupByFields("metric.label.quota_metric").
		Pages(ctx, func(page *monitoring.ListTimeSeriesResponse) error {
			for _, series := range page.TimeSeries {
				theirs[series.Metric.Labels["quota_metric"]] += *series.Points[0].Value.Int64Value
			}
			return nil
		})
	ours, err2 := used(ctx, s.client(), from, s.now)
	if err := errors.Join(err, err2); err != nil || !maps.Equal(ours, theirs) || len(ours) != 2 {
		t.Errorf("ours %v, theirs %v, %v", ours, theirs, err)
	}

	usage, err := serviceusage.NewService(ctx, options...)
	must(t, err)
	answer, err := usage.Services.ConsumerQuotaMetrics.List("projects/p1/services/" + service).Do()
	must(t, err)
	var limits []string
	for _, m := range answer.Metrics {
		for _, l := range m.ConsumerQuotaLimits {
			bucket := strings.TrimPrefix(l.Metric, service+"/")
			limits = append(limits, fmt.Sprint(bucket, " ", l.QuotaBuckets[0].EffectiveLimit, " day"))
		}
	}
	got, err := s.client().Limits(ctx)
	if text := inWords(got); err != nil || text != strings.Join(limits, ", ") {
		t.Errorf("ours %s, theirs %v, %v", text, limits, err)
	}
}

// inWords writes limits as "default 100 day".
func inWords(limits []Limit) string {
	var all []string
	for _, l := range limits {
		all = append(all, fmt.Sprint(l.Bucket, " ", l.Units, " ", l.Window.Text()))
	}
	return strings.Join(all, ", ")
}

// TestErrors: each refusal leads to the hint what to do.
func TestErrors(t *testing.T) {
	const usage, limits = "roles/monitoring.viewer", "roles/serviceusage.serviceUsageViewer"
	for _, c := range []struct {
		fault         string
		usage, limits Kind // kinds of the errors of Count and Limits; -1 for no error
	}{
		{"no-usage-role", NotAllowed, -1}, {"usage-disabled", Disabled, -1}, {"503", Away, Away},
		{"key-deleted", BadKey, BadKey}, {"no-limits-role", -1, NotAllowed},
		{"limits-disabled", -1, Disabled},
	} {
		s := newEnv(t)
		s.Cloud.Fault = c.fault
		check := func(err error, want Kind, role, host string) {
			e, ok := errors.AsType[*Error](err)
			if ok != (want >= 0) || !ok && err != nil || ok && (e.Kind != want ||
				want != BadKey && (e.Meter.Role != role || e.Host() != host)) {
				t.Errorf("%s, %s: %#v", c.fault, role, err)
			}
		}
		_, err := used(t.Context(), s.client(), s.now.Add(-time.Hour), s.now)
		check(err, c.usage, usage, "monitoring.googleapis.com")
		_, err = s.client().Limits(t.Context())
		check(err, c.limits, limits, "serviceusage.googleapis.com")
	}
}

// TestRefused: another account's key, another's project, a server that is away.
func TestRefused(t *testing.T) {
	s, other := newEnv(t), newEnv(t)
	ask := func(c *Client) *Error {
		_, err := c.Limits(t.Context())
		e, _ := errors.AsType[*Error](err)
		if e == nil {
			t.Fatalf("%v", err)
		}
		return e
	}
	c := s.client()
	c.Account = other.account // same name, other key
	if e := ask(c); e.Kind != BadKey || e.Message != "Invalid JWT Signature." {
		t.Errorf("another key: %v", e)
	}
	c = s.client()
	c.Project = "p2"
	if e := ask(c); e.Kind != NotAllowed {
		t.Errorf("another project: %v", e)
	}
	c = s.client()
	c.Cloud = "http://127.0.0.1:1/"
	if e := ask(c); e.Kind != Away || !strings.Contains(e.Error(), "cannot be reached") {
		t.Errorf("nobody listens: %v", e)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.client().Limits(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
}

// TestTokenStays: a redirect is not followed, so the token goes nowhere else.
func TestTokenStays(t *testing.T) {
	s := newEnv(t)
	var requests []string
	elsewhere := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		requests = append(requests, r.Header.Get("Authorization"))
	}))
	defer elsewhere.Close()
	front := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/token" {
			s.ServeHTTP(w, r)
			return
		}
		http.Redirect(w, r, elsewhere.URL, http.StatusFound)
	}))
	defer front.Close()
	c := s.client()
	c.Cloud = front.URL + "/"
	if _, err := c.Limits(t.Context()); err == nil || len(requests) > 0 {
		t.Errorf("%v; elsewhere saw %q", err, requests)
	}
}

// TestParseAccount: a file that is no key is refused, and the error does not repeat it.
func TestParseAccount(t *testing.T) {
	s := newEnv(t)
	if got := s.account.String(); got != "quota-reader@p1.iam.gserviceaccount.com" ||
		s.account.Project != "p1" {
		t.Errorf("%s of %s", got, s.account.Project)
	}
	change := func(name, value string) string {
		var fields map[string]string
		must(t, json.Unmarshal(s.key, &fields))
		fields[name] = value
		text, _ := json.Marshal(fields)
		return string(text)
	}
	for name, text := range map[string]string{
		"empty": "", "an API key": "AIzaSyC-SECRET-SECRET", "a list": "[]",
		"a user":          change("type", "authorized_user"),
		"no email":        change("client_email", ""),
		"no key":          change("private_key", ""),
		"no PEM":          change("private_key", "SECRET"),
		"a broken key":    change("private_key", "-----BEGIN PRIVATE KEY-----\nU0VDUkVU\n-----END PRIVATE KEY-----\n"),
		"another scheme":  change("token_uri", "http://SECRET.example.org/token"),
		"a file protocol": change("token_uri", "file:///SECRET"),
	} {
		a, err := ParseAccount([]byte(text))
		if err == nil || strings.Contains(err.Error(), "SECRET") {
			t.Errorf("%s: %v, %v", name, a, err)
		}
	}
}
