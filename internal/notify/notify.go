// Package notify notifies people of the state of their quotas: once per event and window, however
// many hosts find the event.
package notify

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/cenkalti/backoff/v5"

	"quotabudget/internal/config"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/share"
	"quotabudget/internal/words"
)

// Notifier sends notifications. There is no queue: each look sends every event that holds and is
// not marked as sent in the ledger.
//
// For each target, a notification has a claim in the ledger. It is leased before the notification
// is sent and marked done after the target has accepted it, until the event's window ends:
//
//	10:00:00  a finds 80 % used, leases the claim for a minute, and is killed
//	10:00:10  b finds the claim leased
//	10:01:00  the lease lapses; b leases the claim, sends, and marks it done until the reset
//
// A process killed between sending and marking also leaves the lease, so the notification is sent
// again, with the same ID. If sending fails, the lease lapses, and a later look retries. If only
// the marking fails, later looks of the process renew the lease and mark the claim.
//
// After a target refuses an event, only that event is paused. After a target cannot be reached, all
// its events are paused.
type Notifier struct {
	Source  func() report.Source // returns the configuration in force
	Environ []string             // environment of commands
	Log     *slog.Logger

	holder string
	level  slog.Level // level of the "notification sent" line
	mu     sync.Mutex
	pauses map[string]*pause   // by target, or by claim of an event that it refused
	missed map[string][]missed // by credential; those of the last hour
	// unmarked maps the claims of events that were sent but could not be marked to the time until
	// which the events must not be sent again.
	unmarked map[quota.Claim]time.Time
}

type missed struct {
	at   time.Time // time of the report
	text string
}

// pause delays the next attempt after a failure.
type pause struct {
	until time.Time
	waits *backoff.ExponentialBackOff
}

const (
	lookEvery = 10 * time.Second
	slowEvery = 18               // looks between two full ones, which compute forecasts
	lookTime  = 45 * time.Second // of one look and all it sends
	lease     = time.Minute      // longer than a look
	doneTime  = 5 * time.Second  // of marking an event as sent
	tries     = 3                // attempts per notification and look
	perLook   = 10               // notifications per target and look
	maxPause  = time.Hour        // between attempts
	maxMissed = 20               // lanes listed
	afterwork = 5 * time.Second  // of Notice
)

// New returns a notifier for the source that source returns.
func New(source func() report.Source, environ []string, log *slog.Logger) *Notifier {
	return &Notifier{Source: source, Environ: environ, Log: log, level: slog.LevelDebug,
		holder: quota.NewID(time.Now()), pauses: make(map[string]*pause),
		missed: make(map[string][]missed), unmarked: make(map[quota.Claim]time.Time)}
}

// Notice notifies people of the events that a command has caused, with a quick look or a full one.
// It does not change the command's result.
func Notice(ctx context.Context, src report.Source, environ []string, log *slog.Logger,
	quick bool) {
	n := New(func() report.Source { return src }, environ, log)
	n.Look(context.WithoutCancel(ctx), afterwork, quick)
}

// Watch checks for events and sends notifications until ctx ends, and logs those it sends.
func (n *Notifier) Watch(ctx context.Context) {
	n.level = slog.LevelInfo
	for looks := 0; quota.Pause(ctx, min(time.Duration(looks), 1)*lookEvery); looks++ {
		n.Look(ctx, lookTime, looks%slowEvery != 0)
	}
}

// During runs Watch while work runs.
func (n *Notifier) During(ctx context.Context, work func() error) error {
	ctx, end := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { n.Watch(ctx) })
	err := work()
	end()
	watching.Wait()
	return err
}

// Look sends the notifications that are due, and returns after at most limit. A quick look checks
// only the usage of the buckets. Look logs failures, because nothing else depends on notifications.
func (n *Notifier) Look(ctx context.Context, limit time.Duration, quick bool) {
	src := n.Source()
	if !src.Config.Notify.Set() {
		return
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not sent within %s", limit))
	defer cancel()
	n.mark(ctx, src.Ledger)
	all, err := events(ctx, src, quick)
	if err != nil {
		n.Log.Debug("cannot find all events to notify of", "error", err)
	}
	all = append(all, n.missedTicks(src)...)
	var sending sync.WaitGroup
	for _, t := range targets(src.Config, n.Environ) {
		sending.Go(func() { n.sendAll(ctx, src.Ledger, t, all) })
	}
	sending.Wait()
}

func (n *Notifier) sendAll(ctx context.Context, claims quota.Claims, t target, all []Event) {
	count := 0
	for _, e := range all {
		if count == perLook || ctx.Err() != nil || n.paused(t.name) {
			return
		}
		name := e.Credential + "/" + e.claim(t.name)
		if n.paused(name) {
			continue
		}
		if tried, err := n.send(ctx, claims, t, e); tried {
			count++
			_, refused := errors.AsType[*refusedError](err)
			if err != nil && !refused {
				name = t.name
			}
			n.tried(t, name, err)
		}
	}
}

// send sends an event to a target, unless it has been sent or another process is sending it.
func (n *Notifier) send(ctx context.Context, claims quota.Claims, t target, e Event) (bool, error) {
	c := quota.Claim{Credential: e.Credential, Name: e.claim(t.name), Holder: n.holder, TTL: lease}
	n.mu.Lock()
	_, sent := n.unmarked[c]
	n.mu.Unlock()
	if sent {
		return false, nil
	}
	state, err := claims.Claim(ctx, c)
	if err != nil || state != quota.ClaimWon {
		return false, nil
	}
	if err := identify(ctx, claims, c, &e); err != nil {
		return false, nil
	}
	if _, err = retried(ctx, func() (string, error) { return t.deliver(ctx, e) }); err != nil {
		return true, fmt.Errorf("%s: %w", e.Name, err)
	}
	n.Log.Log(ctx, n.level, "notification sent", "to", t.name, "event", e.Name,
		"credential", e.Credential, "id", e.id)
	n.done(ctx, claims, c, e.lasts)
	for _, lower := range e.lower {
		c.Name = lower.claim(t.name)
		n.done(ctx, claims, c, e.lasts)
	}
	return true, nil
}

// identify sets the ID of an event's notification. For a sliding window, the ID contains the period
// of the first attempt, which is stored as the holder of a second claim. That claim lapses before
// the event may be sent again, so a claim that is held can only have the current period or the one
// before:
//
//	23:59:40  a finds 80 % of 24h used, claims the ID of the 1st of June, sends, and is killed
//	00:00:40  b finds the ID of the 1st claimed, and sends with that ID
func identify(ctx context.Context, claims quota.Claims, c quota.Claim, e *Event) error {
	window := e.window()
	if e.ends.IsZero() {
		c.Name, c.Holder, c.TTL = c.Name+"/id", strconv.FormatInt(window.Unix(), 10), e.lasts-lease
		state, err := claims.Claim(ctx, c)
		if err != nil {
			return err
		}
		if state == quota.ClaimHeld {
			window = window.Add(-e.lasts)
		}
	}
	e.nameID(window)
	return nil
}

// retried calls do up to tries times, until it succeeds or fails permanently.
func retried[T any](ctx context.Context, do func() (T, error)) (T, error) {
	waits := backoff.NewExponentialBackOff()
	return backoff.Retry(ctx, do, backoff.WithBackOff(waits), backoff.WithMaxTries(tries))
}

// mark marks the events that earlier looks sent but could not mark. It stops at the first failure.
func (n *Notifier) mark(ctx context.Context, claims quota.Claims) {
	n.mu.Lock()
	maps.DeleteFunc(n.unmarked, func(_ quota.Claim, until time.Time) bool {
		return time.Until(until) <= 0
	})
	unmarked := maps.Clone(n.unmarked)
	n.mu.Unlock()
	for c, until := range unmarked {
		if n.done(ctx, claims, c, time.Until(until)) != nil {
			return
		}
	}
}

// done marks an event as sent. It claims the event again if the lease has lapsed or never existed.
func (n *Notifier) done(ctx context.Context, claims quota.Claims, c quota.Claim,
	lasts time.Duration) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), doneTime)
	defer cancel()
	lasts = min(max(lasts, time.Second), quota.MaxWindow)
	_, err := retried(ctx, func() (struct{}, error) {
		state, err := claims.Claim(ctx, c) // renews a lease
		if err == nil && state == quota.ClaimWon {
			c := c
			c.TTL = lasts
			err = claims.Finish(ctx, c, true)
		}
		return struct{}{}, err
	})
	n.mu.Lock()
	defer n.mu.Unlock()
	level := slog.LevelWarn
	if _, again := n.unmarked[c]; again {
		level = slog.LevelDebug
	}
	delete(n.unmarked, c)
	if err != nil {
		n.unmarked[c] = time.Now().Add(lasts)
		n.Log.Log(ctx, level, "cannot mark a notification as sent; another process may send it "+
			"again", "error", err)
	}
	return err
}

func (n *Notifier) paused(name string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	p := n.pauses[name]
	return p != nil && time.Now().Before(p.until)
}

// tried records the result of sending an event to t. A failure pauses name, which is a key of
// n.pauses. The pause doubles from one minute to one hour.
func (n *Notifier) tried(t target, name string, err error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	maps.DeleteFunc(n.pauses, func(_ string, p *pause) bool {
		return time.Since(p.until) > maxPause // of an event that has ended
	})
	if name != t.name { // t was reached
		delete(n.pauses, t.name)
	}
	if err == nil {
		delete(n.pauses, name)
		return
	}
	p := n.pauses[name]
	if p == nil {
		p = &pause{waits: &backoff.ExponentialBackOff{InitialInterval: lease,
			RandomizationFactor: 0.1, Multiplier: 2, MaxInterval: maxPause}}
		n.pauses[name] = p
	}
	wait := p.waits.NextBackOff()
	p.until = time.Now().Add(wait)
	n.Log.Warn("notification not sent, retrying later", "to", t.name, "error", err,
		"wait", wait.Round(time.Second), "hint", "quotactl notify test sends one now")
}

// Missed records ticks of a lane that did not run.
func (n *Notifier) Missed(credential string, l share.Lane, ticks int64, last time.Time,
	why string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if len(n.missed[credential]) < maxMissed {
		n.missed[credential] = append(n.missed[credential], missed{time.Now(), fmt.Sprintf(
			"%s of %s, the last at %s: %s", words.Plural(ticks, "tick"), l.Name(),
			words.Moment(last), why)})
	}
}

// missedTicks returns an event for each credential with the ticks missed in the last hour.
func (n *Notifier) missedTicks(src report.Source) (all []Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for credential, list := range n.missed {
		list = slices.DeleteFunc(list, func(m missed) bool { return time.Since(m.at) > once })
		n.missed[credential] = list
		if len(list) == 0 || !slices.Contains(src.Config.Notify.On, config.OnMissedTicks) {
			continue
		}
		text := credential + ": missed " + list[0].text
		for _, m := range list[1:] {
			text += "; " + m.text
		}
		all = append(all, Event{Name: config.OnMissedTicks, Credential: credential, Text: text,
			at: time.Now(), lasts: once})
	}
	return all
}
