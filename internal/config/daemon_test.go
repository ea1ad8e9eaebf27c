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
	if !cfg.Ingest.Stagger.Auto || d.Weight("US") != 3 || d.Weight("KR") != 2 ||
		d.Weight("BR") != 1 {
		t.Errorf("stagger %v, weights %v", cfg.Ingest.Stagger, d.Weights)
	}
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	must(t, err)
	want := []Job{
		{"trending", []regions.Region{"US", "BR"}, "0 */3 * * *", time.UTC, 3},
		{"asia", []regions.Region{"JP", "KR", "IN"}, "30 * * * *", tokyo, 2},
	}
	if got := cfg.AllJobs(); !reflect.DeepEqual(got, want) {
		t.Errorf("jobs %+v", got)
	}
	all := []regions.Region{"US", "IN", "BR", "JP", "KR"}
	if !reflect.DeepEqual(cfg.Ingest.Regions, all) {
		t.Errorf("regions %v", cfg.Ingest.Regions)
	}
	if !reflect.DeepEqual(d, Daemon{Jobs: want[1:], Jitter: 5 * time.Second,
		Weights:    map[regions.Region]int64{"US": 3, "KR": 2},
		Priorities: map[regions.Region]int64{"IN": 7}, Floors: map[regions.Region]int64{"BR": 4},
		Lease: time.Minute, Grace: 30 * time.Second}) {
		t.Errorf("%+v", d)
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
	hours := strings.Repeat("1, ", 23) + "2"
	curve := load(t, "credentials: [{name: key1, pace: {curve: ["+hours+"]}}]").Credentials[0]
	if len(curve.Pace.Curve) != 24 || curve.Pace.Curve[23] != 2 {
		t.Errorf("curve %+v", curve.Pace)
	}
}

// TestScheduleInAZoneOfItsOwn: a schedule is what internal/schedule reads, with a zone in front
// too.
func TestScheduleInAZoneOfItsOwn(t *testing.T) {
	cfg := load(t,
		`ingest: {schedule: "CRON_TZ=Asia/Tokyo 30 9 * * *", timezone: UTC, regions: [JP]}`)
	lanes, err := cfg.Lanes()
	must(t, err)
	noon := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	if got := lanes[0].Next(noon).At.Format(time.TimeOnly); got != "00:30:00" {
		t.Errorf("09:30 in Tokyo is %s in UTC", got)
	}
}
