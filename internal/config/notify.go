package config

import (
	"net/url"
	"slices"
	"strconv"
	"strings"

	"quotabudget/internal/grammar"
)

// Notify configures the targets and events of notifications. The zero Notify has no target.
type Notify struct {
	URL     string // of a webhook; may be a secret: print Host
	Secret  Secret // signs requests to URL
	Mail    string // address
	Command []string
	At      []int64 `yaml:"-"` // percentages of a limit, ascending
	On      []string
}

// The conditions of Notify.On.
const (
	OnForecast    = "forecast"
	OnSuspended   = "suspended"
	OnUnpriced    = "unpriced"
	OnStalePrices = "stale_prices"
	OnMissedTicks = "missed_ticks"
)

// Set reports whether there is a target.
func (n Notify) Set() bool { return n.URL != "" || n.Mail != "" || len(n.Command) > 0 }

// Host returns the URL without its path, which may be a secret.
func (n Notify) Host() string {
	u, err := url.Parse(n.URL)
	if err != nil {
		return ""
	}
	return u.Scheme + "://" + u.Host + "/…"
}

type fileNotify struct {
	Notify `yaml:",inline"`
	At     []string
}

// notify sets the targets and events. Without at and on, all events are sent.
func (r *reader) notify(f fileNotify, at grammar.Place) {
	n := f.Notify
	n.Secret.getenv, n.Secret.File, n.Secret.name = r.getenv, r.path(n.Secret.File), notifySecret
	for _, text := range f.At {
		percent, _ := strconv.ParseInt(strings.TrimSuffix(text, "%"), 10, 64)
		n.At = append(n.At, percent)
	}
	slices.Sort(n.At)
	if !at.Has("at") && !at.Has("on") {
		n.At = []int64{80, 100}
		n.On = []string{OnForecast, OnSuspended, OnUnpriced, OnStalePrices, OnMissedTicks}
	}
	r.cfg.Notify = n
}
