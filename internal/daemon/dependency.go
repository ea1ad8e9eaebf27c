package daemon

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quotabudget/internal/quota"
)

// dependency is something every tick needs: ledger, upstream or catalogue. It logs an outage when
// it begins, once an hour, and when it ends. Lanes that run into the outage log at debug level
// only.
//
// If it has probes, one lane at a time calls it during an outage, after waits that grow. The other
// lanes' ticks wait and cost nothing.
type dependency struct {
	mu   sync.Mutex
	d    *Daemon
	text dependencyText

	// of the last outage: since is zero if there was none, ended while it lasts
	since, ended time.Time
	first        time.Time // start of the first in a row of outages less than an hour apart
	logged       time.Time
	cause        error
	wait         time.Duration // between the last probe and the next
	next         time.Time     // time of the next probe
	prober       string        // lane of the last probe
}

type dependencyText struct {
	begins, lasts, ends string
	effect, hint        string
	// waits between probes, doubling from first up to longest; 0 if the lanes need no probes
	first, longest time.Duration
}

const (
	// stillAway is how often a lasting outage is logged again.
	stillAway = time.Hour
	// othersFirst is how long the lane of the last probe leaves the next one to others: if its
	// region always fails, that says nothing about the upstream. It exceeds Config.retryAfter.
	othersFirst = 15 * time.Second
)

// failed records that a call failed.
func (o *dependency) failed(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	o.cause = err
	switch {
	case !o.lasts():
		if o.since.IsZero() || now.Sub(o.ended) > stillAway {
			o.first = now
		}
		o.since, o.ended, o.logged = now, time.Time{}, now
		o.wait, o.next, o.prober = o.text.first, now.Add(o.text.first), ""
		o.d.Log.Error(o.text.begins, "effect", o.text.effect, "error", err, "hint", o.text.hint)
	case now.Sub(o.logged) >= stillAway:
		o.logged = now
		o.d.Log.Error(o.text.lasts, "since", o.since.UTC().Truncate(time.Second),
			"ticks_waiting", o.d.waiting(), "error", err, "hint", o.text.hint)
	}
}

func (o *dependency) works() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.lasts() {
		return
	}
	o.ended, o.cause = time.Now(), nil
	o.d.Log.Info(o.text.ends, "since", o.since.UTC().Truncate(time.Second),
		"away", o.ended.Sub(o.since).Round(time.Second), "ticks_waiting", o.d.waiting())
}

// hasten makes the next probe an early one, because a new configuration may have ended the
// outage. It never delays a probe.
func (o *dependency) hasten() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lasts() && time.Until(o.next) > o.text.first {
		o.wait, o.next = o.text.first, time.Now().Add(o.text.first)
	}
}

// ready reports whether a lane may call the dependency now: there is no outage, or a probe is due.
func (o *dependency) ready(lane string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.isReady(lane)
}

func (o *dependency) isReady(lane string) bool {
	late := time.Since(o.next)
	return !o.lasts() || late >= 0 && (lane != o.prober || late >= othersFirst)
}

// take is ready, and makes the call the last one until the next probe is due.
func (o *dependency) take(lane string) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.isReady(lane) {
		return false
	}
	if o.lasts() {
		o.wait = min(2*o.wait, o.text.longest)
		o.next, o.prober = time.Now().Add(o.wait), lane
	}
	return true
}

// untake leaves the probe to another lane, because the call was not made.
func (o *dependency) untake() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.next = time.Now()
}

// lasts reports whether an outage lasts. The caller holds the lock.
func (o *dependency) lasts() bool { return !o.since.IsZero() && o.ended.IsZero() }

// away returns the start and the cause of the current outage. cause is nil if there is none.
func (o *dependency) away() (since time.Time, cause error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.since, o.cause
}

// covers reports whether a moment lies in an outage, or between two in a row: lanes may not have
// reached the ticks they missed in the first before the second began.
func (o *dependency) covers(at time.Time) bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return !o.since.IsZero() && !at.Before(o.first) && (o.ended.IsZero() || !at.After(o.ended))
}

func (o *dependency) gauge(what string) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "ingest_away",
		Help:        "Whether ticks wait for the ledger, the upstream or the catalogue.",
		ConstLabels: prometheus.Labels{"what": what},
	}, func() float64 {
		if _, cause := o.away(); cause != nil {
			return 1
		}
		return 0
	})
}

// describe sets the log messages of each dependency's outages.
func (d *Daemon) describe() {
	d.breaker.upstream = &d.upstream
	d.ledger.d, d.upstream.d, d.catalogue.d = d, d, d
	d.ledger.text = dependencyText{
		begins: "the ledger does not answer", lasts: "the ledger still does not answer",
		ends:   "the ledger answers again",
		effect: "ticks wait; nothing is charged or fetched",
		hint:   "check its server, or its file and disk; quotactl status asks it",
	}
	d.upstream.text = dependencyText{
		begins: "the upstream does not answer", lasts: "the upstream still does not answer",
		ends:   "the upstream answers again",
		effect: "ticks wait; one request now and then finds out whether it is back, and is charged",
		hint: "check the network and the upstream's status; each region runs when it is back; " +
			"SIGHUP makes the daemon ask within a minute",
		first: 30 * time.Second, longest: 10 * time.Minute,
	}
	d.catalogue.text = dependencyText{
		begins: "the catalogue takes no pages", lasts: "the catalogue still takes no pages",
		ends:   "the catalogue takes pages again",
		effect: "ticks wait, and nothing is bought that could not be stored",
		hint:   "free space on its disk, or end the program that holds it (fuser FILE names it)",
		first:  10 * time.Second, longest: 2 * time.Minute,
	}
}

// askLedger polls the ledger during an outage, because the next tick may be hours away.
func (d *Daemon) askLedger(ctx context.Context) {
	for c := d.inForce.Load(); quota.Pause(ctx, c.retryAfter()); c = d.inForce.Load() {
		if _, cause := d.ledger.away(); cause == nil || d.uncharged.Load() { // a run will find out
			continue
		}
		if len(c.Lanes) == 0 {
			continue
		}
		_, err := c.Claims.Claim(ctx, c.Lanes[0].claim("ledger/asked", d.Holder, c.Lease))
		if err == nil {
			d.ledger.works()
		}
	}
}
