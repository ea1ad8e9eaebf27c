package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/cli"
	"quotabudget/internal/cli/clitest"
	"quotabudget/internal/config"
	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

// viewed is a view of a real ledger.
type viewed struct {
	*testing.T
	reader *topReader
	state  topState
	screen cli.Screen
	lines  int
}

func watch(t *testing.T, ledgerURL string) *viewed {
	t.Helper()
	getenv := func(name string) string {
		return map[string]string{"HOME": t.TempDir(), "QUOTA_LEDGER": ledgerURL}[name]
	}
	cfg, err := config.Load(t.Context(), "", getenv)
	must(t, err)
	l, err := ledger.Open(t.Context(), ledgerURL)
	must(t, err)
	t.Cleanup(func() { l.Close() })
	v := &viewed{T: t, reader: &topReader{Source: report.Source{Config: cfg, Ledger: l}},
		state: topState{Every: time.Second}, lines: 24,
		screen: cli.Screen{Bars: true, Color: true, Width: 80}}
	v.look()
	return v
}

func (v *viewed) charge(bucket string, units int64, labels quota.Labels) {
	v.Helper()
	cred := v.reader.Config.Credentials[0]
	b := cred.Budget(v.reader.Ledger, v.reader.Config.Table(cred), nil)
	_, err := b.Charge(context.Background(), quota.Call{Bucket: bucket, Units: units,
		Labels: labels})
	must(v, err)
}

// look reads the ledger as a tick does.
func (v *viewed) look() {
	v.Helper()
	pic, err := v.reader.read(context.Background(), time.Now())
	must(v, err)
	v.state = v.state.Got(pic, nil, time.Now())
}

// press presses keys, and does what they ask for.
func (v *viewed) press(keys ...string) (last wish) {
	for _, key := range keys {
		v.state, last = v.state.Key(key)
		if last.Do >= doSuspend && last.Do <= doExplain {
			v.state = v.state.Done(v.reader.do(context.Background(), last)...)
			v.look()
		}
	}
	return last
}

// shows wants all of words on the screen.
func (v *viewed) shows(words ...string) {
	v.Helper()
	text := v.text()
	for _, w := range words {
		if !strings.Contains(text, w) {
			v.Errorf("no %q on the screen:\n%s", w, text)
		}
	}
}

func (v *viewed) text() string { return v.state.View(v.screen, v.lines, time.Now()) }

// TestTop: what keys do, on both ledgers.
func TestTop(t *testing.T) {
	t.Parallel()
	redis := redistest.Start(t, redistest.Options{})
	for _, url := range []string{"sqlite:" + filepath.Join(t.TempDir(), "ledger.db"), redis.URL()} {
		v := watch(t, url)
		v.shows("> ", "no charges", "q quit")
		v.charge("default", 9499, quota.Labels{"region": "DE", "job": "nightly"})
		v.charge("search_list", 7, quota.Labels{"region": "US", "team": "a"})
		v.look()
		v.shows("9,499", "search_list", "job=nightly", "region US", "████")

		v.press("l", "t", "e", "a", "m", "=", "x", "backspace", "a", "enter")
		v.shows("charges with team=a", "7 units")
		if strings.Contains(v.text(), "job=nightly") {
			t.Errorf("the filter lets it pass:\n%s", v.text())
		}
		v.press("esc", "b")
		v.shows("bucket default")
		if strings.Contains(v.text(), "search_list") {
			t.Errorf("another bucket is shown:\n%s", v.text())
		}
		v.press("esc", "o")
		v.shows("fullest first")
		v.press("s")
		v.shows("suspend bucket default of default? y/n")
		v.press("n")
		v.shows("nothing was changed")
		v.press("r")
		v.shows("default is not suspended")
		v.press("s", "y")
		v.shows("default is suspended until 2", "suspended")
		v.press("e")
		v.shows("denied: 1 unit of default, but the bucket is suspended", "press any key")
		v.press("x", "s")
		v.shows("default is suspended already")
		v.press("r", "y")
		v.shows("default is not suspended any more")
		v.press("e")
		v.shows("it fits: 1 unit of default")
		v.press("q")
		v.charge("default", 1, nil)
		v.press("e")
		v.shows("denied: 1 unit of default would not fit", "job=nightly")
		v.press("x", "?")
		v.shows("fullest first, next reset first")
		v.press("x")
		if v.press("p"); !v.state.Paused() {
			t.Error("it is not paused")
		}
		v.shows("PAUSED")
		if w := v.press("p"); w.Do != doRefresh || v.state.Paused() {
			t.Errorf("%+v", w)
		}
		if w := v.press("q"); w.Do != doQuit {
			t.Errorf("q: %+v", w)
		}
	}
}

// TestTopFits: on any screen no line is too wide and there are not too many, with nothing that a
// terminal would obey but colours, and none without them.
func TestTopFits(t *testing.T) {
	t.Parallel()
	v := watch(t, "sqlite:"+filepath.Join(t.TempDir(), "ledger.db"))
	for range 30 {
		v.charge("default", 1, quota.Labels{"region": "DE", "job": strings.Repeat("長い", 30),
			"odd": "\u202egnp\u2066"})
	}
	v.look()
	v.state = v.state.Foretold([]string{"default: " + strings.Repeat("word ", 60)})
	for _, size := range [][2]int{{80, 24}, {200, 60}, {132, 24}, {40, 12}, {60, 5}, {100, 2}} {
		v.screen.Width, v.lines = size[0], size[1]
		for _, keys := range [][]string{{}, {"s"}, {"n", "?"}, {"x", "l"}, {"esc", "j", "j"}} {
			v.press(keys...)
			text := v.text()
			clitest.Fits(t, v.screen.Width, text)
			if n := strings.Count(text, "\n") + 1; n > v.lines || clitest.Loud(text) != "" {
				t.Errorf("%d lines on %d: %q\n%s", n, v.lines, clitest.Loud(text), text)
			}
		}
	}
	v.screen.Color = false
	if strings.Contains(v.text(), "\x1b") {
		t.Errorf("colours:\n%q", v.text())
	}
}

// TestTopAway: the last picture stays, and it says since when.
func TestTopAway(t *testing.T) {
	t.Parallel()
	v := watch(t, "sqlite:"+filepath.Join(t.TempDir(), "ledger.db"))
	since := time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	for n := range 3 {
		failed := errors.New("ledger cannot be reached: \x1b[2J")
		v.state = v.state.Got(picture{}, failed, since.Add(time.Duration(n)*time.Second))
	}
	v.shows("waiting for the ledger since 12:00:00Z: ledger cannot be reached", "search_list")
	v.look()
	if strings.Contains(v.text(), "waiting") {
		t.Errorf("it is back:\n%s", v.text())
	}
}
