package config

import (
	"reflect"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/quota"
	"quotabudget/internal/regions"
)

const jobsFile = `
credentials:
  - name: key1
    pace: even
    limits: [{bucket: default, units: 10000, headroom: 500, window: day}]
jobs:
  - name: backfill
    command: [/usr/local/bin/backfill, --since, 1d]
    schedule: "15 * * * *"
    timezone: Asia/Tokyo
    jitter: 30s
    timeout: 10m
    cost: {bucket: default, units: 40}
    max: {bucket: default, units: 60}
    settle: report
    weight: 2
    priority: 1
    floor: 2
    pace: {curve: even, slack: 10%}
    credential: key1
    environment: {A: b}
    directory: srv
    user: nobody
    overlap: queue
    retry: 3
    catch_up: true
  - {name: search, url: "https://h/tick", method: POST, body: "{}", success: [200, 302], schedule: "@every 1h",
     cost: {method: videos.list, count: 3}, pace: none, max: 5}
  - {name: learns, command: [sh], schedule: "@daily", cost: {learned: true, bucket: default}}
  - {name: both, command: [sh], schedule: "@daily", cost: [{bucket: default, units: 7}]}
`

func TestJobs(t *testing.T) {
	cfg := load(t, jobsFile)
	if len(cfg.Ingest.Regions) != 0 || len(cfg.AllJobs()) != 0 {
		t.Errorf("a file without ingest sweeps %v", cfg.Ingest.Regions)
	}
	tokyo, err := time.LoadLocation("Asia/Tokyo")
	must(t, err)
	units := func(n int64) []quota.Cost { return []quota.Cost{{Bucket: "default", Units: n}} }
	want := OwnJob{Name: "backfill", Command: []string{"/usr/local/bin/backfill", "--since", "1d"},
		Schedule: "15 * * * *", Timezone: tokyo, Jitter: 30 * time.Second,
		Timeout: 10 * time.Minute, Cost: JobCost{Costs: units(40), Count: 1}, Settle: "report",
		Max:    quota.Cost{Bucket: "default", Units: 60},
		Weight: 2, Priority: 1, Floor: 2, Pace: &Pace{Slack: 10}, Credential: "key1",
		Environment: map[string]string{"A": "b"}, Directory: cfg.Jobs[0].Directory,
		User: "nobody", Queue: true, Retry: 3, CatchUp: true}
	if !reflect.DeepEqual(cfg.Jobs[0], want) {
		t.Errorf("%+v", cfg.Jobs[0])
	}
	search, learns := cfg.Jobs[1], cfg.Jobs[2]
	if search.Max != (quota.Cost{Units: 5}) ||
		!reflect.DeepEqual(search.Request, Request{"POST", "https://h/tick", "{}",
			[]int{200, 302}}) || !search.Unpaced ||
		search.Cost.Method != "youtube.videos.list" ||
		!reflect.DeepEqual(search.Cost.Costs, units(3)) {
		t.Errorf("%+v", search)
	}
	if !learns.Cost.Learned || !reflect.DeepEqual(learns.Cost.Costs, units(1)) ||
		learns.Timeout != time.Hour || learns.Settle != "all" || learns.Weight != 1 {
		t.Errorf("%+v", learns)
	}
	budget := cfg.Credentials[0].Budget(nil, cfg.Costs, nil)
	for i, slack := range []int64{950, -1, 475} { // of 9,500
		paces := cfg.Jobs[i].Budget(budget).Paces
		if slack < 0 && len(paces) != 0 || slack >= 0 && paces[0].Pace.Slack != slack {
			t.Errorf("%s: %+v", cfg.Jobs[i].Name, paces)
		}
		lane, err := cfg.Jobs[i].Lane(budget)
		must(t, err)
		own := cfg.Jobs[i].Pace != nil || cfg.Jobs[i].Unpaced
		if lane.Name() != cfg.Jobs[i].Name || lane.Pages != 1 || (lane.OwnPaces != nil) != own ||
			own && !reflect.DeepEqual([]quota.Limit(*lane.OwnPaces), paces) {
			t.Errorf("%+v", lane)
		}
		if i == 0 && lane.Weight != 2 || i == 1 && !reflect.DeepEqual(lane.Price, units(3)) {
			t.Errorf("%+v", lane)
		}
	}
}

// TestJobsBesideSweeps: a file with jobs has sweeps only if it has a section ingest, and that may
// have no regions.
func TestJobsBesideSweeps(t *testing.T) {
	const one = "\njobs: [{name: a, command: [sh], schedule: '@daily', cost: {bucket: default, units: 1}}]"
	for file, want := range map[string]int{
		"ingest: {pages: 2}" + one: 8, "ingest: {regions: [US]}" + one: 1, "ingest: {regions: []}" + one: 0,
		"ingest: {regions: []}": 0,
		one:                     0, "jobs:": 8, "jobs: []": 0,
	} {
		if got := len(load(t, file).Ingest.Regions); got != want {
			t.Errorf("%s: %d regions", file, got)
		}
	}
}

// TestJobElsewhere: a job that another program runs is a lane like any other. A file with only such
// jobs still has the default sweep.
func TestJobElsewhere(t *testing.T) {
	cfg := load(t, "jobs: [{name: a, elsewhere: /etc/crontab, schedule: '@daily', "+
		"cost: {bucket: default, units: 2}, settle: report}]")
	if j := cfg.Jobs[0]; j.Elsewhere != "/etc/crontab" || !j.Learns() ||
		len(cfg.Ingest.Regions) != 8 {
		t.Errorf("%+v, %v", j, cfg.Ingest.Regions)
	}
	lane, err := cfg.Jobs[0].Lane(cfg.Credentials[0].Budget(nil, cfg.Costs, nil))
	if must(t, err); !lane.External || lane.OwnPaces != nil {
		t.Errorf("%+v", lane)
	}
}

// job returns a file with one job, on line 2.
func job(text string) string {
	return "jobs:\n  - {name: a, command: [sh], schedule: '@daily', " +
		"cost: {bucket: default, units: 1}, " + text + "}\n"
}

// costing returns a file with one job that has the cost.
func costing(cost string) string {
	return "jobs:\n  - {name: a, command: [sh], schedule: '@daily', cost: " + cost + "}\n"
}

func TestJobProblems(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ file, want string }{
		{"jobs: {}", "1: jobs: must be a list, such as [a, b]"},
		{"jobs: [{name: a}]", "1: jobs: schedule is missing"},
		{"jobs: [{name: a}]", "1: jobs: cost is missing"},
		{"jobs: [{name: a}]", "1: jobs: command is missing (or url, for a request)"},
		{job("comand: [a]"), `2: jobs: unknown key "comand" (did you mean command?)`},
		// the first job has no command
		{"jobs:\n  - {name: a, schedule: '@daily', cost: {bucket: default, units: 1}}\n" +
			"  - {name: b, command: [sh], schedule: '@daily', cost: {bucket: default, units: 1}, " +
			"credential: b}\n",
			`3: jobs.credential: no credential "b"; configured: default`},
		{job("url: 'https://h/'"), "2: jobs.url: the job has a command already: write one of them"},
		{strings.Replace(job("retry: 1"), "name: a", "name: trending", 1),
			"2: jobs.name: trending is the default job, for regions in no other job"},
		{job("body: a"), "2: jobs.body: needs url, which is missing"},
		{job("settle: reports"), "2: jobs.settle: must be all, exit, report or proxy (did you mean"},
		{job("overlap: wait"), "2: jobs.overlap: must be skip or queue"},
		{job("weight: -1"), "2: jobs.weight: must be 0 to 1000000"},
		{job("retry: 11"), "2: jobs.retry: must be 0 to 10"},
		{job("timeout: 0s"), `2: jobs.timeout: "0s" is not a duration from 1s to 168h, such as 2m`},
		{job("credential: b"), `2: jobs.credential: no credential "b"; configured: default`},
		{job("elsewhere: cron"), "2: jobs.command: the daemon does not run a job with elsewhere: leave it"},
		{job("elsewhere: cron") + "ingest: {pages: 2}\nserve: {public: false}\nyoutube: {endpoint: https://h}",
			"2: jobs.command: the daemon does not run a job with elsewhere: leave it"},
		{job("elsewhere: ''"), "2: jobs.elsewhere: must name the program or file that runs the job, " +
			"such as /etc/crontab"},
		{job("environment: {'a b': c}"), `2: jobs.environment: "a b": write texts by variable, such as {LANG:`},
		{job("environment: {A: [c]}"), "2: environment.A: must be text (in quotes)"},
		{job("environment: {A: AIzaSyA1234567890abcdefghijklmnopqrstuvw}"), "contains a key"},
		{job("pace: odd"), "2: jobs.pace: must be even, or {curve: even, slack: 10%}"},
		{"jobs: [{name: a, command: sh -c a, schedule: '@daily', cost: {bucket: default, units: 1}}]",
			"1: jobs.command: write a list of a program and its arguments, such as"},
		{"jobs: [{name: a, command: [], schedule: '@daily', cost: {bucket: default, units: 1}}]",
			"1: jobs.command: write a list of a program and its arguments, such as"},
		{"jobs: [{name: a, url: ftp://h, schedule: '@daily', cost: {bucket: default, units: 1}}]",
			"1: jobs.url: write http:// or https:// and a host, without a password"},
		{"jobs: [{name: a, url: http://u:p@h, schedule: x, cost: {bucket: default, units: 1}}]",
			"1: jobs.url: write http:// or https:// and a host, without a password"},
		{"jobs: [{name: a, url: http://h, settle: report, schedule: '@daily', " +
			"cost: {bucket: default, units: 1}}]", "1: jobs.settle: a request cannot report what it used: set settle to all or"},
		{job("x: y") + "  - {name: a, command: [sh], schedule: '@daily', " +
			"cost: {bucket: default, units: 1}}", "3: jobs.name: two jobs are named a"},
		{"ingest: {jobs: [{name: a, regions: [US]}]}\n" + job("timezone: UTC"),
			"3: jobs.name: two jobs are named a"},
		{costing("5"), "2: jobs.cost: write {bucket: default, units: 40}, a list of them,"},
		{costing("{units: 5}"), "2: jobs.cost: write {bucket: default, units: 40}, {method: …, count: 3}"},
		{costing("{bucket: default}"), "2: jobs.cost: units is missing"},
		{costing("{bucket: defalt, units: 1}"),
			`2: cost.bucket: no method draws on "defalt" (did you mean default?)`},
		{costing("{bucket: default, units: 9501}"), "2: jobs.cost: 9501 units of default never fit: 24h leaves scheduled"},
		{costing("{bucket: default, units: 5, count: 2}"), "2: cost.count: needs method, which is missing"},
		{costing("{method: videos.lost}"), `2: cost.method: method has no price: "videos.lost"`},
		{costing("{method: videos.list, units: 3}"), "2: cost.units: write a method and its count, or a bucket and units"},
		{costing("[]"), "2: jobs.cost: the list is empty"},
		{costing("[{bucket: default, units: 1}, {bucket: default, units: 2}]"),
			"2: jobs.cost: bucket default is listed twice"},
		{costing("[{learned: true, bucket: default}]"), "2: jobs.cost: units is missing"},
		{"credentials: [{name: a}, {name: b}]\n" + job("timezone: UTC"),
			"3: jobs.credential: several credentials are configured: a, b"},
	} {
		expectProblem(t, c.file, c.want)
	}
}

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

// TestScheduleInAZoneOfItsOwn: a schedule may begin with a time zone; internal/schedule reads it.
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
