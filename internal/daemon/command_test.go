package daemon_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/daemon"
	"quotabudget/internal/job"
	"quotabudget/internal/quota"
	"quotabudget/internal/schedule"
	"quotabudget/internal/share"
)

// jobOf returns a lane that runs a script and holds units.
func (p *proc) jobOf(name, spec string, units int64, script string) daemon.Lane {
	p.Helper()
	s, err := schedule.Parse(spec, time.UTC)
	must(p, err)
	command := job.Command{Args: []string{"/bin/sh", "-c", script}, Group: true,
		Env: []string{"PATH=" + os.Getenv("PATH"), "OUT=" + filepath.Join(p.dir, name)}}
	if script == "" {
		command.Args = []string{"/bin/true"}
	}
	log := slog.New(slog.NewTextHandler(p, nil))
	return daemon.Lane{
		Lane: share.Lane{Lane: schedule.Lane{LaneID: schedule.LaneID{Job: name}, Schedule: s},
			Zone: time.UTC, Pages: 1,
			Price: []quota.Cost{{Bucket: quota.DefaultBucket, Units: units}}, Weight: 1},
		Work: &daemon.Command{Day: p.sweep.Day, Output: log, Job: job.Job{Command: command,
			Budget: p.sweep.Budget, Claims: p.config.Claims, TTL: time.Hour, Log: log}},
	}
}

// command returns the work of a job's lane.
func command(l daemon.Lane) *daemon.Command { return l.Work.(*daemon.Command) }

// pace sets the job's own pace for the first limit, or removes it if pace is nil.
func (p *proc) pace(l *daemon.Lane, pace *quota.Pace) {
	own := *p.sweep.Budget
	if own.Paces = nil; pace != nil {
		own.Paces = p.line(pace)
	}
	command(*l).Job.Budget, l.OwnPaces = &own, new(share.Paces(own.Paces))
}

// line returns the first limit with the given pace.
func (w *env) line(pace *quota.Pace) []quota.Limit {
	line := w.limits[0]
	line.Pace = pace
	return []quota.Limit{line}
}

// job adds a lane whose command runs a script and holds units, and returns the command.
func (p *proc) job(name, spec string, units int64, script string) *daemon.Command {
	p.Helper()
	l := p.jobOf(name, spec, units, script)
	p.config.Catalog = p.catalog
	p.config.Lanes = append(p.config.Lanes, l)
	return command(l)
}

// wrote returns the lines that a job's runs have written, one word each.
func (w *env) wrote(name string) string {
	w.Helper()
	text, err := os.ReadFile(filepath.Join(w.dir, name))
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		w.Fatal(err)
	}
	return strings.Join(strings.Fields(string(text)), " ")
}

// TestCommand: a job and the sweep share a budget. The job is charged what it reports, and its
// output is in the log under its run's name.
func TestCommand(t *testing.T) {
	atNoon(t, func(w *env) {
		p := w.open(lanes(t, "0 * * * *", "UTC", "US", 0)...)
		p.job("backfill", "5 * * * *", 40,
			`echo hello; echo oops >&2; printf rest; echo units=7 >&$QUOTA_REPORT_FD`,
		).Job.Settle = job.SettleReport
		p.job("fails", "10 * * * *", 5, "exit 3").Job.Settle = job.SettleExit
		p.job("missing", "15 * * * *", 5, "").Job.Command.Args = []string{"/no/such/program"}
		p.start()
		time.Sleep(20 * time.Minute)
		p.expectMetrics(`ingest_jobs_total{job="backfill",outcome="complete"} 1`,
			`ingest_jobs_total{job="fails",outcome="failed"} 1`,
			`ingest_job_interval_seconds{job="backfill"} 3600`,
			`quota_units_spent_total{bucket="default",credential="key1",method="",region=""} 7`)
		runs, err := p.catalog.LaneRuns(context.Background())
		must(t, err)
		p.stopAfter(time.Second)
		w.expect(w.spentBy(quota.LabelJob), map[string]int64{"trending": 2, "backfill": 7})
		const run = "run=backfill/2026-06-01T19:05:00Z"
		for _, words := range [][]string{
			{"msg=output", "job=backfill", run, "stream=stdout", "text=hello"},
			{run, "stream=stderr", "text=oops"}, {run, "text=rest"},
			{"tick done", "tick=backfill/", "outcome=complete", "exit_code=0", "units.default=7"},
			{"tick failed", "tick=fails/", "outcome=failed", "exit_code=3", "units.default=0"},
			{"tick failed", "tick=missing/", "exit_code=127", "no such file"},
		} {
			w.expectLogged(1, words...)
		}
		last := runs["backfill"]
		if len(last) != 1 || last[0].Outcome != "complete" || last[0].ExitCode == nil ||
			*last[0].ExitCode != 0 || last[0].Units["default"] != 7 ||
			last[0].Tick != "backfill/2026-06-01T19:05:00Z" || len(runs["trending/US"]) != 1 {
			t.Errorf("kept runs: %+v", runs)
		}
	})
}

// TestCommand_Denied: a job whose hold does not fit is not started, and the sweep continues.
func TestCommand_Denied(t *testing.T) {
	at(t, noon.Add(-time.Second), 30, func(w *env) {
		w.limits[0].Window = quota.Sliding(5 * time.Hour) // too short to be shared
		p := w.open(lanes(t, "10 * * * *", "UTC", "US", 0)...)
		p.job("greedy", "*/30 * * * *", 20, "echo ran >> $OUT")
		p.start().stopAfter(50 * time.Minute)
		w.expect(w.wrote("greedy"), "ran")
		w.expect(w.spentBy(quota.LabelJob), map[string]int64{"greedy": 20, "trending": 2})
		w.expectLogged(1, "tick denied", "tick=greedy/2026-06-01T19:30:00Z", "outcome=exhausted",
			"limit=\"default 5h\"")
	})
}

// TestCommand_Retry: a failed run is repeated as often as retry allows. Units that are booked
// regardless of the outcome are booked once.
func TestCommand_Retry(t *testing.T) {
	atNoon(t, func(w *env) {
		p := w.open()
		p.job("twice", "0 * * * *", 5, `echo x >> $OUT; [ $(wc -l < $OUT) -gt 2 ]`).Retry = 2
		p.job("never", "0 * * * *", 5, `echo x >> $OUT; exit 1`).Retry = 1
		p.start().stopAfter(10 * time.Minute)
		w.expect(w.wrote("twice"), "x x x")
		w.expect(w.wrote("never"), "x x")
		w.expect(w.spentBy(quota.LabelJob), map[string]int64{"twice": 5, "never": 5})
		w.expectLogged(1, "tick done", "tick=twice/")
		w.expectLogged(2, "tick failed", "tick=never/")
	})
}

// delay delays the start of a job's command in each run.
func delay(c *daemon.Command, d time.Duration) {
	c.Job.Prepare = func(ctx context.Context, _ job.Prepared) ([]string, func(), error) {
		slowly := time.NewTimer(d)
		defer slowly.Stop()
		select {
		case <-slowly.C:
			return nil, func() {}, nil
		case <-ctx.Done():
			return nil, nil, ctx.Err()
		}
	}
}

// TestCommand_Overlap: ticks that come during a run are either left out by all daemons, or run
// after it.
func TestCommand_Overlap(t *testing.T) {
	for _, queue := range []bool{false, true} {
		t.Run(fmt.Sprint("queue ", queue), func(t *testing.T) {
			atNoon(t, func(w *env) {
				a, b := w.pair()
				for _, p := range []*proc{a, b} {
					slow := p.job("slow", "*/5 * * * *", 1, "echo ran >> $OUT")
					slow.Queue = queue
					delay(slow, 7*time.Minute)
					p.start()
				}
				time.Sleep(21 * time.Minute) // runs from 19:00, then 19:10, or 19:05 and 19:10
				a.stop()
				b.stop()
				a.end()
				b.end()
				skipped := w.logged("tick left out: the run before it was still under way")
				if queue && skipped != 0 || !queue && skipped < 2 {
					t.Errorf("%d ticks left out", skipped)
				}
				w.expect(len(strings.Fields(w.wrote("slow"))), 2, "runs")
			})
		})
	}
}

// TestCommand_Crash: if retry allows it, another daemon repeats the tick of a daemon that was
// killed during a run, and the tick is charged once.
func TestCommand_Crash(t *testing.T) {
	for _, retry := range []int{0, 1} {
		t.Run(fmt.Sprint("retry ", retry), func(t *testing.T) {
			atNoon(t, func(w *env) {
				a, b := w.pair()
				for _, p := range []*proc{a, b} {
					p.config.Lease = 6 * time.Second
					c := p.job("backfill", "0 * * * *", 9, "echo ran >> $OUT")
					c.Retry = retry
					c.Job.Prepare = func(context.Context, job.Prepared) ([]string, func(), error) {
						if p == a {
							a.crash()
							return nil, nil, errDead
						}
						return nil, func() {}, nil
					}
				}
				a.start()
				time.Sleep(10 * time.Second)
				b.start()
				time.Sleep(30 * time.Minute)
				a.end()
				b.end()
				w.expect(w.wrote("backfill"), strings.Repeat("ran", retry))
				w.expectLogged(1-retry, "tick left out: its run was lost in a crash")
				w.expectLogged(1, "tick given back") // by the daemon that was killed
				if held, err := w.look.ledger.Reservations(context.Background(), "key1",
					quota.DefaultBucket); err != nil || len(held) != 1-retry {
					t.Errorf("held: %v, %v", held, err) // the hold lapsed and was charged
				}
				w.expect(w.spentBy(quota.LabelJob)["backfill"], int64(9*retry), "units")
			})
		})
	}
}

// TestCommand_Reload: an added job runs from then on, a removed one stops, and the others continue.
func TestCommand_Reload(t *testing.T) {
	atNoon(t, func(w *env) {
		p := w.open(lanes(t, "*/10 * * * *", "UTC", "US", 0)...)
		p.job("old", "*/10 * * * *", 1, "echo ran >> $OUT")
		p.job("kept", "*/10 * * * *", 1, "echo ran >> $OUT")
		next := *p.config
		next.Lanes = append(p.sweep.Lanes(lanes(t, "*/10 * * * *", "UTC", "US", 0)),
			p.jobOf("kept", "*/10 * * * *", 1, "echo again >> $OUT"),
			p.jobOf("new", "*/10 * * * *", 1, "echo ran >> $OUT"))
		p.reloads(&next)
		p.start()
		time.Sleep(15 * time.Minute) // 19:00 and 19:10
		p.reload <- struct{}{}
		p.stopAfter(20 * time.Minute) // 19:20 and 19:30
		for name, want := range map[string]string{"old": "ran ran", "new": "ran ran",
			"kept": "ran ran again again"} {
			w.expect(w.wrote(name), want, name)
		}
	})
}

// TestCommand_CatchUp: if so configured, one run at the start makes up for the ticks missed while
// no daemon ran.
func TestCommand_CatchUp(t *testing.T) {
	atNoon(t, func(w *env) {
		p := w.open()
		p.job("late", "30 * * * *", 1, "echo ran >> $OUT").CatchUp = true
		p.job("not", "30 * * * *", 1, "echo ran >> $OUT")
		p.start().stopAfter(10 * time.Minute)
		w.expect(w.wrote("late"), "ran")
		w.expect(w.wrote("not"), "")
	})
}

// TestCommand_Runaway: a job that uses far more than it holds is held back by its pace, and the
// others keep running.
func TestCommand_Runaway(t *testing.T) {
	at(t, midnight.Add(-time.Second), 2400, func(w *env) {
		p := w.open()
		wild := p.job("wild", "*/10 * * * *", 5, `echo units=100 >&$QUOTA_REPORT_FD`)
		wild.Job.Settle = job.SettleReport
		p.pace(&p.config.Lanes[0], &quota.Pace{Slack: 100})
		p.job("calm", "5 * * * *", 10, "")
		p.start().stopAfter(12 * time.Hour)
		got := w.spentBy(quota.LabelJob)
		if got["calm"] != 120 || got["wild"] < 800 || got["wild"] > 1300 {
			t.Errorf("after half a day: %v", got)
		}
		if w.logged("tick=wild/", "tick denied", "outcome=paced", "limit=pace")+
			w.logged("tick=wild/", "tick left out") < 20 {
			t.Error("the pace seldom held the job back")
		}
	})
}
