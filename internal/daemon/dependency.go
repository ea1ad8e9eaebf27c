package daemon

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quotabudget/internal/quota"
)

// dependency is something every tick needs: ledger, upstream or catalogue. It logs when an outage
// begins and ends, and once an hour meanwhile. Lanes log their own failures at debug level.
//
// With probes, one lane at a time gets a turn during an outage, to check whether the dependency is
// back. The ticks of the other lanes wait and cost nothing.
type dependency struct {
	mu   sync.Mutex
	d    *Daemon
	text dependencyText

	since, ended time.Time // last outage: since is zero before the first, ended during one
	first        time.Time // start of the first of several outages less than an hour apart
	logged       time.Time
	cause        error
	wait         time.Duration // until the next probe
	next         time.Time     // time of the next probe
	timer        *time.Timer   // runs the next probe
	permit       bool          // the next probe is allowed and has not been made
}

type dependencyText struct {
	begins, lasts, ends string
	effect, hint        string
	// waits between probes, doubling from first up to longest; 0 if the lanes need no probes
	first, longest time.Duration
}

// stillAway is the interval at which a lasting outage is logged again.
const stillAway = time.Hour

func (o *dependency) failed(err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	now := time.Now()
	o.cause, o.permit = err, false
	switch {
	case !o.lasts():
		if o.since.IsZero() || now.Sub(o.ended) > stillAway {
			o.first = now
		}
		o.since, o.ended, o.logged = now, time.Time{}, now
		o.d.Log.Error(o.text.begins, "effect", o.text.effect, "error", err, "hint", o.text.hint)
		if o.text.first > 0 {
			o.d.turns.shut()
			o.timer = time.AfterFunc(o.text.first, o.probe)
			o.probeAfter(o.text.first)
		}
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
	o.ended, o.cause, o.permit = time.Now(), nil, false
	o.d.Log.Info(o.text.ends, "since", o.since.UTC().Truncate(time.Second),
		"away", o.ended.Sub(o.since).Round(time.Second), "ticks_waiting", o.d.waiting())
	if o.timer != nil {
		o.timer.Stop()
		o.d.turns.open()
	}
}

func (o *dependency) stop() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.timer != nil {
		o.timer.Stop()
	}
}

// hasten moves the next probe forward, because a new configuration may have ended the outage. It
// never delays a probe.
func (o *dependency) hasten() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lasts() && time.Until(o.next) > o.text.first {
		o.probeAfter(o.text.first)
	}
}

// probe gives a turn to one lane.
func (o *dependency) probe() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lasts() {
		o.permit = true
		o.d.turns.probe()
		o.probeAfter(min(2*o.wait, o.text.longest))
	}
}

func (o *dependency) probeAfter(wait time.Duration) {
	o.wait, o.next = wait, time.Now().Add(wait)
	o.timer.Reset(wait)
}

// pass lets another lane probe if the one with the turn made no attempt.
func (o *dependency) pass() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.lasts() && o.permit {
		o.d.turns.probe()
	}
}

// take reports whether the dependency may be called. During an outage it returns true once per
// probe.
func (o *dependency) take() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.lasts() {
		return true
	}
	permitted := o.permit
	o.permit = false
	return permitted
}

// untake returns the permit to the other lanes, because the call was not made.
func (o *dependency) untake() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.permit = o.lasts()
}

// lasts reports whether there is an outage now. The caller holds the lock.
func (o *dependency) lasts() bool { return !o.since.IsZero() && o.ended.IsZero() }

// away returns the start and the cause of the current outage. cause is nil if there is none.
func (o *dependency) away() (since time.Time, cause error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.since, o.cause
}

// covers reports whether a moment lies in an outage or between two in quick succession. Lanes may
// not have reached the ticks of the first when the second began.
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
		_, cause := o.away()
		return truth(cause != nil)
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
		effect: "ticks wait; an occasional request, which is charged, checks whether it is back",
		hint: "check the network and the upstream's status; each region runs once it is back; " +
			"SIGHUP makes the daemon check within 30s",
		first: 30 * time.Second, longest: 10 * time.Minute,
	}
	d.catalogue.text = dependencyText{
		begins: "the catalogue cannot store pages", lasts: "the catalogue still cannot store pages",
		ends:   "the catalogue stores pages again",
		effect: "ticks wait; no page is bought that could not be stored",
		hint:   "free space on its disk, or end the program that holds it (fuser FILE names it)",
		first:  10 * time.Second, longest: 2 * time.Minute,
	}
}

// askLedger polls the ledger during an outage, because the next tick may be hours away.
func (d *Daemon) askLedger(ctx context.Context) {
	for c := d.inForce.Load(); quota.Pause(ctx, c.retryAfter()); c = d.inForce.Load() {
		if _, cause := d.ledger.away(); cause == nil || d.uncharged.Load() {
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

// passProbes lets another lane probe if this one made no attempt. While upstream and catalogue are
// both away, it does nothing: no lane can probe the upstream, and each would log its failure.
func (d *Daemon) passProbes() {
	_, noUpstream := d.upstream.away()
	_, noCatalogue := d.catalogue.away()
	if noUpstream == nil || noCatalogue == nil {
		d.upstream.pass()
		d.catalogue.pass()
	}
}
