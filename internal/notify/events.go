package notify

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/config"
	"quotabudget/internal/plan"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/words"
)

// Event is a condition that people are notified of.
type Event struct {
	Name       string // "limit", or a condition of config.Notify.On
	Credential string // its ledger keeps the claim
	Bucket     string
	Limit      string
	Percent    int64 // share of the limit
	Text       string

	id    string        // ID of its notification, set before the first attempt to send it
	at    time.Time     // ledger time
	lasts time.Duration // time until it may be sent again
	ends  time.Time     // end of its window; zero for a sliding one
	about string        // distinguishes it from other events of its name
	lower []Event       // smaller shares of the same limit, which this event replaces
}

// once is the shortest time between two notifications of the same event. Without it, a limit per
// minute could send one every minute.
const once = time.Hour

// claim returns the name of the event's claim for a target.
func (e Event) claim(target string) string {
	sum := sha256.Sum256([]byte(strings.Join([]string{e.Name, e.Bucket, e.Limit, e.about,
		fmt.Sprint(e.Percent)}, "\x00")))
	return "notify/" + target + "/" + hex.EncodeToString(sum[:12])
}

// window returns the end of the event's window. A sliding window has no end: window divides time
// into periods of the window's length, and returns the beginning of the current period.
func (e Event) window() time.Time {
	if e.ends.IsZero() {
		return e.at.Truncate(e.lasts)
	}
	return e.ends
}

// nameID sets the ID of the notification. It is the same on every host and for every attempt in a
// window, so that the receiver can drop duplicates.
func (e *Event) nameID(window time.Time) {
	text := e.Credential + "\x00" + e.claim("") + "\x00" + window.UTC().String()
	sum := sha256.Sum256([]byte(text))
	e.id = "msg_" + hex.EncodeToString(sum[:12])
}

// events returns the events that hold now. A quick look returns only those that need nothing but
// the usage of the buckets.
func events(ctx context.Context, src report.Source, quick bool) (all []Event, err error) {
	n := src.Config.Notify
	var now time.Time
	wants := func(name string) bool { return slices.Contains(n.On, name) }
	for _, c := range src.Config.Credentials {
		usage, err := src.Usage(ctx, c)
		if err != nil {
			return all, err
		}
		now = usage.At
		for _, b := range usage.Buckets {
			for _, l := range b.Limits {
				all = append(all, reached(src, c, b, l, usage.At)...)
			}
			if b.SuspendedUntil.After(usage.At) && wants(config.OnSuspended) {
				all = append(all, suspended(c, b, usage.At))
			}
		}
		if !quick && wants(config.OnUnpriced) {
			all = append(all, unpriced(ctx, src, c, usage.At)...)
		}
	}
	if !quick && wants(config.OnStalePrices) {
		all = append(all, stalePrices(src, now)...)
	}
	if !quick && wants(config.OnForecast) {
		short, err := forecasts(ctx, src)
		return append(all, short...), err
	}
	return all, nil
}

// reached returns the largest configured share of a limit that is used, if any. Using all units
// open to scheduled charges counts as 100 %, even if the headroom is left.
func reached(src report.Source, c config.Credential, b quota.BucketUsage, l quota.LimitUsage,
	now time.Time) []Event {
	room := l.Limit.Cap(false)
	if room <= 0 || l.Limit.Window.Concurrent {
		return nil
	}
	var lower []Event
	for _, percent := range src.Config.Notify.At {
		if l.Used*100 < percent*l.Limit.Units && l.Used < room {
			break
		}
		lower = append(lower, Event{Name: "limit", Credential: c.Name, Bucket: b.Bucket,
			Limit: l.Limit.Name(), Percent: percent, at: now, lasts: max(l.Limit.Reach(), once)})
	}
	if len(lower) == 0 {
		return nil
	}
	e := lower[len(lower)-1]
	amount := report.UnitOf(src.Config.Table(c), b.Bucket).Text
	e.Text = fmt.Sprintf("%s: %d%% of %s is used, %s; scheduled charges have %s left", c.Name,
		e.Percent, e.Limit, amount(l.Used), amount(l.Remaining))
	ends := b.Ends(l.Limit.Window, now)
	if !ends.IsZero() {
		e.Text += "; it resets at " + words.Moment(ends)
	}
	if l.Limit.Observe || c.Observe {
		e.Text += "; it is only observed"
	}
	if !ends.IsZero() && e.lasts > once {
		e.ends, e.lasts = ends, ends.Sub(now)
	}
	for i := range lower {
		lower[i].ends, lower[i].lasts = e.ends, e.lasts
	}
	e.lower = lower[:len(lower)-1]
	return []Event{e}
}

func suspended(c config.Credential, b quota.BucketUsage, now time.Time) Event {
	// repeated suspensions of a minute each are one event per hour
	until := b.SuspendedUntil.Truncate(once).UTC()
	text := report.NewSuspension(b).Text(words.Moment(b.SuspendedUntil), words.Moment)
	return Event{Name: config.OnSuspended, Credential: c.Name, Bucket: b.Bucket,
		Text: fmt.Sprintf("%s: bucket %s is suspended %s; quotactl resume --bucket %s ends that",
			c.Name, b.Bucket, text, b.Bucket),
		at: now, lasts: max(b.SuspendedUntil.Sub(now), once), ends: until, about: until.String()}
}

// unpriced returns the event of calls in the last day that the price list has no row for.
func unpriced(ctx context.Context, src report.Source, c config.Credential, now time.Time) []Event {
	const day = 24 * time.Hour
	names := src.Unlisted(ctx, c.Name, now.Add(-day))
	if len(names) == 0 {
		return nil
	}
	text := fmt.Sprintf("%s: calls of the last day were priced by another row: the price list of "+
		"%s has no row for %s; add rows to a copy, and name it in quota.yaml: costs: FILE",
		c.Name, src.Config.Table(c).Upstream, report.Few(names))
	return []Event{{Name: config.OnUnpriced, Credential: c.Name, Text: text, at: now, lasts: day}}
}

// stalePrices returns an event for each upstream whose prices are too old, once a month.
func stalePrices(src report.Source, now time.Time) (all []Event) {
	var seen []string
	for _, c := range src.Config.Credentials {
		t := src.Config.Table(c)
		if slices.Contains(seen, t.Upstream) || !report.StalePrices(t, time.Time{}) {
			continue
		}
		seen = append(seen, t.Upstream)
		all = append(all, Event{Name: config.OnStalePrices, Credential: c.Name,
			Text: fmt.Sprintf("the newest price of %s is of %s: compare the list with the upstream's "+
				"page; quotactl doctor names the list", t.Upstream, t.Date),
			at: now, lasts: 30 * 24 * time.Hour, about: t.Upstream + " " + t.Date})
	}
	return all
}

// forecasts returns an event for each bucket that will run dry or lose runs before its reset.
func forecasts(ctx context.Context, src report.Source) (all []Event, err error) {
	list, err := src.Forecasts(ctx, "")
	for _, f := range list {
		loses := f.Verdict == plan.RunsDry || f.Verdict == plan.Lasts && f.Short()
		if loses && f.ResetAt.After(f.At) {
			e := Event{Name: config.OnForecast, Credential: f.Credential, Bucket: f.Bucket,
				Text: f.Credential + ": " + f.Text(), at: f.At, lasts: f.ResetAt.Sub(f.At)}
			if !f.Slides {
				e.ends = f.ResetAt
			}
			all = append(all, e)
		}
	}
	return all, err
}
