package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"quotabudget/internal/costs"
	"quotabudget/internal/grammar"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

const modeObserve = "observe"

// credential checks a credential against its upstream's price list.
func (r *reader) credential(f fileCredential, at grammar.Place) Credential {
	c := f.Credential
	c.Observe, c.Open, c.AtMost = f.Mode == modeObserve, f.WhenUnreachable.Open,
		f.WhenUnreachable.AtMost
	if !firstNew(r.credentials, c.Name) {
		at.Key("name").Add("two credentials are named %s", words.Clip(c.Name))
	}
	c.APIKey.getenv, c.APIKey.File = r.getenv, r.path(c.APIKey.File)
	c.AdminKey.getenv, c.AdminKey.File = r.getenv, r.path(c.AdminKey.File)
	c.AdminKey.owner, c.AdminKey.name = c.Name, adminKey
	c.Account.File = r.path(c.Account.File)
	if c.Account.Endpoint != "" {
		c.Account.Endpoint = withSlash(c.Account.Endpoint)
	}
	table := r.table(c.Upstream, at.Key("upstream"))
	if table != nil {
		c.Upstream = table.Upstream
	}
	limited := map[string]bool{}
	for i, l := range f.Limits {
		if r.file.Full() {
			break
		}
		switch limit, ok := r.limit(l, table, at.Key("limits").Item(i), limited); {
		case ok && limit.Label != "":
			c.PerLabel = append(c.PerLabel, limit)
		case ok:
			c.Limits = append(c.Limits, limit.Limit)
		}
	}
	for i, allow := range f.Allow {
		c.Allow = append(c.Allow, r.allowance(allow, table, at.Key("allow").Item(i)))
	}
	for i, method := range c.Open {
		if table == nil || r.file.Full() {
			break
		}
		if _, err := table.Lookup(method); err != nil {
			at.Key("when_unreachable").Key("open").Item(i).Add("%v", err)
		}
	}
	r.checkPace(c, at.Key("pace"))
	return c
}

// limit checks a limit. It returns false if the window cannot be parsed. The label is empty for a
// limit without one.
func (r *reader) limit(f fileLimit, table *costs.Table, at grammar.Place,
	limited map[string]bool) (l quota.LabelLimit, ok bool) {
	bucket := r.bucket(f.Bucket, table, at.Key("bucket"))
	l.Limit = quota.Limit{Bucket: bucket.Name, Units: f.Units, Headroom: f.Headroom,
		Across: f.Across != "", Observe: f.Mode == modeObserve}
	l.Label, l.Parts = strings.TrimPrefix(f.Per, "label:"), f.Parts
	if l.Across && table != nil && bucket.Name != "" && len(bucket.Split) == 0 {
		at.Key("across").Add("bucket %s has no parts: leave it out", words.Clip(bucket.Name))
	}
	if l.Headroom > l.Units && at.Has("headroom") && !at.Key("units").Refused() {
		at.Key("headroom").Add("%d is more than the %d units of the limit", l.Headroom, l.Units)
	}
	zone := f.Timezone
	if zone == "" && bucket.Reset.IsCalendar() && quota.IsCalendarWord(f.Window) {
		zone = bucket.Reset.ZoneName() // the zone of the bucket's own reset
	}
	var err error
	if l.Window, err = quota.ParseWindow(f.Window, zone); err != nil {
		if f.Window != "" && !at.Key("timezone").Refused() {
			at.Key("window").Add("%v", err)
		}
		return l, false
	}
	if err := l.Check(); err != nil {
		at.Key("window").Add("%s",
			strings.TrimPrefix(err.Error(), quota.ErrMalformed.Error()+": "))
	}
	name := l.Limit.Name()
	if l.Label != "" {
		name = l.Name()
		checkPerLabel(l, at)
	}
	if l.Across {
		name += " across all"
	}
	if !firstNew(limited, name) {
		at.Add("%s is limited twice", name)
	}
	return l, true
}

// checkPerLabel checks the keys that only a limit per label has.
func checkPerLabel(l quota.LabelLimit, at grammar.Place) {
	if l.Window.Anchored || l.Window.Concurrent {
		at.Key("window").Add("%s is for all of a bucket: with per, write a window that slides, "+
			"is restored or follows the calendar", l.Window.Text())
	}
	for _, value := range slices.Sorted(maps.Keys(l.Parts)) {
		flaw := quota.Labels{l.Label: value}.Check()
		if len(value) > quota.MaxValueBytes {
			flaw = fmt.Errorf("it has more than %d bytes", quota.MaxValueBytes)
		}
		if flaw != nil {
			at.Key("parts").Add("%s: %v", words.Clip(value), flaw)
		}
	}
}

// allowance checks the restrictions on calls with a label's value.
func (r *reader) allowance(f fileAllowance, table *costs.Table,
	at grammar.Place) quota.LabelAllowance {
	a := quota.LabelAllowance{Allowance: f.Allowance}
	a.Label, a.Value, _ = strings.Cut(f.Label, "=")
	if err := (quota.Labels{a.Label: a.Value}).Check(); err != nil && f.Label != "" {
		at.Key("label").Add("%v", err)
	}
	if err := a.CheckPatterns(); err != nil {
		at.Add("%v", err)
	}
	for _, bucket := range slices.Sorted(maps.Keys(f.Most)) {
		r.bucket(bucket, table, at.Key("most"))
	}
	return a
}

// PartsAboveWhole returns a sentence for each part that can never be used up, because the limit for
// all in the same window is lower. Parts may add up to more than the limit for all, which then
// denies some of them.
func (c Credential) PartsAboveWhole() (all []string) {
	for _, l := range c.PerLabel {
		units, owner := l.Units, "each value"
		for _, value := range slices.Sorted(maps.Keys(l.Parts)) {
			if l.Parts[value] > units {
				units, owner = l.Parts[value], value
			}
		}
		for _, whole := range c.Limits {
			if whole.Bucket == l.Bucket && whole.Window.Text() == l.Window.Text() &&
				units > whole.Units {
				all = append(all, fmt.Sprintf("%s: %s may take %d units, and all together only %d",
					l.Name(), owner, units, whole.Units))
			}
		}
	}
	return all
}

// bucket looks up a bucket of the price list, or a part of one.
func (r *reader) bucket(name string, table *costs.Table, at grammar.Place) costs.Bucket {
	if name == "" || table == nil {
		return costs.Bucket{Name: name}
	}
	whole, _ := table.Bucket(name)
	switch {
	case !checkBucket(name, table, at):
		return costs.Bucket{Name: name}
	case whole.Name == name:
		return whole
	}
	if err := quota.CheckBucket(name); err != nil {
		at.Add("%v", err)
	} else if len(whole.Split) == 0 {
		at.Add("%s has no parts: write %[1]s", whole.Name)
	}
	whole.Name, whole.Split = name, nil
	return whole
}

// checkPace reports a pace without a daily limit.
func (r *reader) checkPace(c Credential, at grammar.Place) {
	if c.Pace != nil && len(c.Limits) > 0 && len(c.Pace.lines(c.Limits)) == 0 {
		at.Add("it spreads the units of a day, but no limit has window: day")
	}
}

// Pace spreads a credential's spending over the day.
type Pace struct {
	Curve []int64 // weights of the 24 hours; nil for an even pace
	Slack int64   // how far spending may run ahead, in percent of a limit's scheduled units

	none bool // set by pace: none of a job
}

const paceNone = "none"

// DefaultSlack is how far spending may run ahead of a pace by default, in percent of the day's
// units.
const DefaultSlack = 5

// lines returns the limits whose window is a calendar day, with the pace.
func (p *Pace) lines(limits []quota.Limit) []quota.Limit {
	if p == nil {
		return nil
	}
	var lines []quota.Limit
	for _, l := range limits {
		if l.Window.Calendar != "day" {
			continue
		}
		units := l.Cap(false)
		l.Pace = &quota.Pace{Curve: p.Curve, Slack: units/100*p.Slack + units%100*p.Slack/100}
		lines = append(lines, l)
	}
	return lines
}
