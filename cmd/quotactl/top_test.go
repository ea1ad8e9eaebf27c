package main

import (
	"context"
	"errors"
	"path/filepath"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

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
	*topView
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
	v := &viewed{t, &topView{ctx: t.Context(), every: time.Second, lines: 24,
		reader: &topReader{Source: report.Source{Config: cfg, Ledger: l}},
		screen: cli.Screen{Bars: true, Color: true, Width: 80}}}
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
func (v *viewed) look() { v.run(v.read()) }

// run runs commands as bubbletea does. It reports whether one of them quits.
func (v *viewed) run(command tea.Cmd) (quits bool) {
	for command != nil {
		msg := command()
		if _, quits = msg.(tea.QuitMsg); quits {
			break
		}
		_, command = v.Update(msg)
	}
	return quits
}

// press presses keys, and reports whether the last one quits.
func (v *viewed) press(keys ...string) (quits bool) {
	for _, key := range keys {
		quits = v.run(v.key(key))
	}
	return quits
}

// shows requires all of words on the screen.
func (v *viewed) shows(words ...string) {
	v.Helper()
	text := v.text(time.Now())
	for _, w := range words {
		if !strings.Contains(text, w) {
			v.Errorf("no %q on the screen:\n%s", w, text)
		}
	}
}

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
		for _, step := range []struct{ keys, shown string }{
			{"s", "suspend bucket default of default? y/n"},
			{"n", "nothing was changed"},
			{"r", "default is not suspended"},
			{"s y", "default is suspended until 2"},
			{"e", "denied: 1 unit of default, but the bucket is suspended"},
			{"x s", "default is suspended already"},
			{"r y", "default is not suspended any more"},
			{"e", "it fits: 1 unit of default"},
			{"down down down down down down e", "press any key to go back"},
			{"q", "q quit"},
			{"p", "PAUSED"},
		} {
			v.press(strings.Fields(step.keys)...)
			v.shows(step.shown)
		}
		if v.selected == 0 || !v.press("q") {
			t.Errorf("row %d is selected, or q does not quit", v.selected)
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
	v.pic.outlook = []string{"default: " + strings.Repeat("word ", 60)}
	for _, size := range [][2]int{{80, 24}, {200, 60}, {132, 24}, {40, 12}, {60, 5}, {100, 2}} {
		v.screen.Width, v.lines = size[0], size[1]
		for _, keys := range [][]string{{}, {"s"}, {"n", "e"}, {"x", "j", "j"}} {
			v.press(keys...)
			text := v.text(time.Now())
			clitest.Fits(t, v.screen.Width, text)
			if n := strings.Count(text, "\n") + 1; n > v.lines || clitest.Loud(text) != "" {
				t.Errorf("%d lines on %d: %q\n%s", n, v.lines, clitest.Loud(text), text)
			}
		}
	}
	v.screen.Color = false
	if strings.Contains(v.text(time.Now()), "\x1b") {
		t.Errorf("colours:\n%q", v.text(time.Now()))
	}
}

// TestTopAway: the last picture stays, and it says since when.
func TestTopAway(t *testing.T) {
	t.Parallel()
	v := watch(t, "sqlite:"+filepath.Join(t.TempDir(), "ledger.db"))
	v.got(picture{}, errors.New("ledger cannot be reached: \x1b[2J"))
	v.since = time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC)
	v.got(picture{}, errors.New("ledger cannot be reached"))
	v.shows("waiting for the ledger since 12:00:00Z: ledger cannot be reached", "search_list")
	v.look()
	if strings.Contains(v.text(time.Now()), "waiting") {
		t.Errorf("it is back:\n%s", v.text(time.Now()))
	}
}
