package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/regions"
)

func TestDaemon(t *testing.T) {
	cfg := load(t, `
credentials:
  - name: key1
    limits:
      - {bucket: default, units: 10000, headroom: 500, window: 24h}
      - {bucket: default, units: 10000, headroom: 500, window: day}
    pace: {curve: even, slack: 10%}
ingest:
  jobs:
    - {name: asia, regions: [JP, KR, IN], schedule: "30 * * * *", timezone: Asia/Tokyo, pages: 2}
  regions: [US, IN, BR]
  pages: 3
  stagger: auto
  jitter: 5s
  catch_up: false
  weights: {US: 3, KR: 2}
  priorities: {IN: 7}
  floors: {BR: 4}
  lease: 1m
  grace: 30s
  listen: ""
`)
	d := cfg.Daemon
	if !d.StaggerAuto || cfg.Ingest.Stagger != 0 || d.Jitter != 5*time.Second || d.CatchUp ||
		d.Lease != time.Minute ||
		d.Grace != 30*time.Second || d.Listen != "" {
		t.Errorf("%+v", d)
	}
	if d.Weight("US") != 3 || d.Weight("KR") != 2 || d.Weight("BR") != 1 || d.Floors["BR"] != 4 ||
		d.Priorities["IN"] != 7 || d.Priorities["BR"] != 0 {
		t.Errorf("weights %v, priorities %v, floors %v", d.Weights, d.Priorities, d.Floors)
	}
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	if err != nil {
		t.Fatal(err)
	}
	want := []Job{
		{"trending", []regions.Region{"US", "BR"}, DefaultSchedule, time.UTC, 3},
		{"asia", []regions.Region{"JP", "KR", "IN"}, "30 * * * *", tokyo, 2},
	}
	if got := cfg.AllJobs(); !reflect.DeepEqual(got, want) {
		t.Errorf("jobs %+v", got)
	}
	if got := cfg.Ingest.Regions; !reflect.DeepEqual(got,
		[]regions.Region{"US", "IN", "BR", "JP", "KR"}) {
		t.Errorf("regions %v", got)
	}
	b := cfg.Credentials[0].Budget(nil, cfg.Costs, nil)
	if len(b.Paces) != 1 || b.Paces[0].Window.Calendar != "day" || b.Paces[0].Pace.Slack != 950 ||
		b.Paces[0].Pace.Curve != nil {
		t.Errorf("paces %+v", b.Paces)
	}
}

func TestDaemonDefaults(t *testing.T) {
	cfg := load(t, "")
	if !reflect.DeepEqual(cfg.Daemon, Daemon{CatchUp: true, Lease: 2 * time.Minute,
		Grace: 20 * time.Second, Listen: "127.0.0.1:9310"}) {
		t.Errorf("%+v", cfg.Daemon)
	}
	if jobs := cfg.AllJobs(); len(jobs) != 1 || jobs[0].Name != DefaultJob ||
		len(jobs[0].Regions) != 8 {
		t.Errorf("jobs %+v", jobs)
	}
	if b := cfg.Credentials[0].Budget(nil, cfg.Costs, nil); b.Paces != nil {
		t.Errorf("paces %+v", b.Paces)
	}
	even := load(t, "credentials: [{name: key1, pace: even}]").Credentials[0]
	if b := even.Budget(nil, cfg.Costs, nil); len(b.Paces) == 0 || b.Paces[0].Pace.Slack != 475 {
		t.Errorf("paces on the upstream's own limits %+v", b.Paces)
	}
	curve := load(t, "credentials: [{name: key1, pace: {curve: ["+strings.Repeat("1, ",
		23)+"2]}}]").Credentials[0]
	if len(curve.Pace.Curve) != 24 || curve.Pace.Curve[23] != 2 {
		t.Errorf("curve %+v", curve.Pace)
	}
}

func TestDaemonProblems(t *testing.T) {
	for text, want := range map[string]string{
		"ingest: {stagger: sometimes}":                                         "stagger:",
		"ingest: {jitter: -1s}":                                                "jitter:",
		"ingest: {catch_up: perhaps}":                                          "catch_up: write true or false",
		"ingest: {weights: {XX: 3}}":                                           `"XX" is not a region`,
		"ingest: {weights: {JP: 3}}":                                           "weights: JP is not among the regions",
		"ingest: {priorities: {JP: 1}}":                                        "priorities: JP is not among the regions",
		"ingest: {priorities: {US: 1001}}":                                     "priorities: 1001 is out of range",
		"ingest: {floors: {US: -1}}":                                           "floors: -1 is out of range",
		"ingest: {floors: [US]}":                                               "floors: write {US: 3}",
		"ingest: {lease: 10ms}":                                                "lease: \"10ms\" is not a duration from 1s to 1h",
		"ingest: {grace: 2h}":                                                  "grace:",
		"ingest: {listen: nowhere}":                                            "listen: \"nowhere\": write host:port",
		"ingest: {jobs: [{name: asia}]}":                                       "job: regions is missing",
		"ingest: {jobs: [{name: trending, regions: [US]}]}":                    "two jobs are named trending",
		"ingest: {jobs: [{name: Asia, regions: [US]}]}":                        "is not a name",
		"ingest: {jobs: [{name: a, regions: [US]}, {name: b, regions: [US]}]}": "US is already in job a",
		"ingest: {jobs: [{name: a, regions: [US], schedule: '0 0 30 2 *'}]}":   "it never fires",
		"ingest: {schedule: '@every 1500ms'}":                                  "full seconds",
		"credentials: [{name: k, pace: quick}]":                                `pace: "quick": write even`,
		"credentials: [{name: k, pace: {curve: [1, 2]}}]":                      "a curve is 24 weights",
		"credentials: [{name: k, pace: {slack: 10}}]":                          `slack: "10": write 0% to 100%`,
		"credentials: [{name: k, pace: {slack: 101%}}]":                        `slack: "101%"`,
		"credentials: [{name: k, pace: even, limits: [{bucket: default, units: 9, window: 24h}]}]": "no limit has window: day",
	} {
		_, err := Load(t.Context(), write(t, text), env("HOME", "/home/x"))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
}

// TestScheduleInAZoneOfItsOwn: a schedule is what internal/schedule reads, with a zone in front
// too.
func TestScheduleInAZoneOfItsOwn(t *testing.T) {
	cfg := load(t, `ingest: {schedule: "CRON_TZ=Asia/Tokyo 30 9 * * *", timezone: UTC, regions: [JP]}`)
	lanes, err := cfg.Lanes()
	if err != nil {
		t.Fatal(err)
	}
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	if got := lanes[0].Next(noon).At.Format(time.TimeOnly); got != "00:30:00" {
		t.Errorf("09:30 in Tokyo is %s in UTC", got)
	}
}
