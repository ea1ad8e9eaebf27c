//go:build browser

package browser

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"quotabudget/internal/catalog"
	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
	"quotabudget/internal/standin"
)

// Each page can be reached from the board by clicks, shows its content, has no accessibility
// problem, and prints nothing to the console.
func TestPages(t *testing.T) {
	b := open(t, newEnv(t).demo())
	b.visit("/")
	b.shows(".alert", "search_list is exhausted")
	b.shows(".who", "backfill")
	b.usable("board")
	b.click(`.bucket details summary`)
	b.shows(".bucket details", "Until")
	b.usable("board, with a table opened")

	b.click(`.tile a[href="/charts/US"]`)
	b.shows("h1", "US trending")
	b.shows(".facts", "compared with")
	b.usable("chart")
	b.click(`.facts a`)
	b.shows("form.at", "the newest")
	b.usable("chart before")
	b.click(`form.at a`)
	b.click(`.places tbody tr:nth-child(3) a`)
	b.shows(".facts", "first seen")
	b.shows("figure", "Views")
	b.click("#counters summary")
	b.usable("video")

	b.click(`nav a[href="/charts"]`)
	b.shows("h1", "Charts")
	b.usable("charts")

	get(b, chromedp.SendKeys("#q", "the"+kb.Enter))
	b.shows("main", "Videos with the")
	b.usable("search")
	b.click(`a[rel="next"]`)
	b.shows("main", "page 2")
	b.click(`.found li a`)
	b.shows(".facts", "last seen")

	b.click(`nav a[href="/log"]`)
	b.shows("main", "The newest charges")
	b.usable("log")
	get(b, chromedp.SetValue("#by", "region"))
	b.click(`.choose button`)
	b.shows("caption", "Units spent, by region")

	b.click(`nav a[href="/plan"]`)
	b.shows("h1", "pages") // fewer or all: it depends on the hour before the reset
	b.usable("plan")
	b.click(`.chips a[href="/plan?days=3"]`)
	b.shows(".chips", "3 days")
	b.usable("plan of three days")

	b.visit("/search?q=" + strings.Repeat("no-such-word", 3))
	b.shows("main", "No video in the catalogue")
	b.usable("search without a video")
}

// Pages are also usable on a phone and in dark mode; nothing is wider than the screen. Screenshots
// go to the folder of the pictures.
func TestScreens(t *testing.T) {
	b := open(t, newEnv(t).demo())
	b.view(1280, 800, false)
	b.visit("/charts/US")
	video := get(b, chromedp.Evaluate[string](`document.querySelector(".places .name").pathname`))
	for name, path := range map[string]string{"board": "/", "charts": "/charts",
		"chart": "/charts/US", "video": video, "search": "/search?q=robot", "log": "/log",
		"plan": "/plan?days=2"} {
		for _, size := range sizes {
			for _, scheme := range []string{"light", "dark"} {
				b.view(size.width, size.height, scheme == "dark")
				b.visit(path)
				where := name + "-" + size.name + "-" + scheme
				if (scheme == "dark") == (size.name == "phone") {
					b.usable(where)
				}
				b.quiet(where)
				b.fits(where)
				b.picture(where)
			}
		}
	}
}

var update = flag.Bool("update", false, "write the pictures of docs/api.md")

// The pictures of the manual show the demo. -update rewrites them.
func TestPictures(t *testing.T) {
	b := open(t, newEnv(t).demo())
	for _, p := range []struct {
		name, path    string
		width, height int64
		dark          bool
	}{
		{"board", "/", 1200, 860, false}, {"chart", "/charts/US", 1200, 640, true},
		{"phone", "/", 390, 760, true},
	} {
		b.view(p.width, p.height, p.dark)
		b.visit(p.path)
		png := get(b, chromedp.CaptureScreenshot())
		if len(png) > 150_000 {
			t.Errorf("the picture of %s has %d bytes, at most 150,000", p.name, len(png))
		}
		dir := screens(t)
		if *update {
			dir = filepath.Join(root, "docs")
		}
		must(t, os.WriteFile(filepath.Join(dir, "page-"+p.name+".png"), png, 0o644))
	}
}

// The board updates itself while a sweep runs, without reloading the page: what the reader has
// opened stays open, and the focus stays where it is. A paused board does not change.
func TestLive(t *testing.T) {
	s := newEnv(t)
	s.upstream()
	s.run("once", "--region", "US,GB")
	b := open(t, s.start("serve", "--listen", "127.0.0.1:0"))
	b.visit("/")
	b.shows("#live", "Following.")
	b.shows(".bucket", "9,492 of 9,500 units left")
	get(b, chromedp.Evaluate[chromedp.Void](`window.same = true`))
	b.click(".bucket details summary")
	get(b, chromedp.Focus(`.tile a[href="/charts/GB"]`))

	s.run("once", "--region", "DE,FR")
	b.waits(`document.querySelector(".bucket")?.innerText.replace(/\s+/g, " ")
		.includes("9,484 of 9,500 units left")`)
	b.waits(`document.querySelector(".tile a[href='/charts/DE']") !== null`)
	for what, js := range map[string]string{
		"the page was loaded again": `window.same === true`,
		"the table was closed":      `document.querySelector(".bucket details").open`,
		"the focus was lost":        `document.activeElement.getAttribute("href") === "/charts/GB"`,
	} {
		if !get(b, chromedp.Evaluate[bool](js)) {
			t.Error(what)
		}
	}
	b.usable("board, after it has changed")

	b.click("#live button")
	b.shows("#live", "Paused.")
	s.run("once", "--region", "IN")
	b.click("#live button")
	b.waits(`document.querySelector(".tile a[href='/charts/IN']") !== null`)
}

const shortConfig = `
credentials:
  - name: key1
    api_key: {env: YOUTUBE_API_KEY}
    limits:
      - {bucket: default, units: 40, headroom: 10, window: day}
      - {bucket: search_list, units: 100, headroom: 5, window: day}
ingest: {schedule: "@every 1m", stagger: 5s} # so that ticks are left out late in the day, too
`

// A board with a problem names it, and is still usable.
func TestShort(t *testing.T) {
	s := newEnv(t)
	config := filepath.Join(t.TempDir(), "quota.yaml")
	must(t, os.WriteFile(config, []byte(shortConfig), 0o600))
	s.vars = append(s.vars, "QUOTA_CONFIG="+config)
	s.upstream()
	s.ends(75, "once")
	l, err := ledger.Open(t.Context(), "sqlite://"+filepath.Join(s.state, "ledger.db"))
	must(t, err)
	must(t, l.Suspend(t.Context(), quota.Suspension{Credential: "key1", Bucket: "search_list",
		Until: time.Now().Add(3 * time.Hour)}))
	must(t, l.Close())
	b := open(t, s.start("serve", "--listen", "127.0.0.1:0"))
	for _, dark := range []bool{false, true} {
		b.view(1280, 800, dark)
		b.visit("/")
		b.shows("h1", "default is exhausted")
		b.shows(".alert", "search_list is suspended until")
		b.shows("main", "Left out until the reset")
		b.shows(".tile.warn", "incomplete")
		b.usable("board that is short")
		b.picture(fmt.Sprintf("short-dark-%v", dark))
	}
	b.view(320, 700, false)
	b.fits("board that is short")
	b.visit("/plan")
	b.shows("h1", "lose pages")
	b.usable("plan that does not fit")
}

// Titles from the upstream are shown as text, and run nothing.
func TestHostile(t *testing.T) {
	s := newEnv(t)
	titles := []string{`<script>window.hacked = 1; alert(1)</script>`,
		`"><img src=x onerror="window.hacked = 2">`, `<svg onload=alert(3)>`,
		"\u202egnp.exe \u2066isolate\u2069\u2069", "\x00\x1b[31mred\u009b", `javascript:alert(4)`,
		`</title><script>alert(5)</script>`, "{{7*7}} ${7*7}",
		"Z" + strings.Repeat("\u0300\u0301\u0302\u0303", 60), strings.Repeat("W", 400)}
	var videos []catalog.Video
	for i, title := range titles {
		videos = append(videos, catalog.Video{ID: fmt.Sprintf("hostile-%d", i), Title: title,
			ChannelTitle: title, ChannelID: title, Description: title, Tags: []string{title}})
	}
	c := s.catalog()
	store(t, c, "US", time.Now().Add(-time.Hour), videos)
	store(t, c, "US", time.Now(), append(videos[3:], videos[0]))
	b := open(t, s.start("serve", "--listen", "127.0.0.1:0"))
	b.view(320, 700, false)
	paths := []string{"/", "/charts", "/charts/US", "/search?q=alert",
		"/search?q=%22%3E%3Cscript%3Ealert(6)%3C/script%3E"}
	for _, v := range videos {
		paths = append(paths, "/videos/"+v.ID)
	}
	for _, path := range paths {
		b.visit(path)
		if get(b, chromedp.Evaluate[bool](`"hacked" in window`)) {
			t.Errorf("%s: a title was run", path)
		}
		b.fits(path)
		b.quiet(path)
	}
	b.visit("/charts/US")
	b.usable("a chart of hostile titles")
	b.visit("/videos/hostile-0")
	b.shows("h1", titles[0])
	b.visit("/videos/hostile-3")
	b.shows("h1", "gnp.exe isolate")
}

// Everything can be reached by keyboard, first the link that skips the menu, and the focus is
// visible.
func TestKeyboard(t *testing.T) {
	b := open(t, newEnv(t).demo())
	b.visit("/")
	get(b, chromedp.KeyEvent(kb.Tab))
	at := func() string {
		return get(b, chromedp.Evaluate[string](`document.activeElement.innerText.trim()`))
	}
	if got := at(); got != "Skip to the content" {
		t.Errorf("the first stop is %q", got)
	}
	if !get(b, chromedp.Evaluate[bool](`document.activeElement.getBoundingClientRect().top >= 0`)) {
		t.Error("the way past the menu cannot be seen")
	}
	get(b, chromedp.KeyEvent(kb.Enter))
	get(b, chromedp.KeyEvent(kb.Tab))
	inside := `document.querySelector("main").contains(document.activeElement)`
	if !get(b, chromedp.Evaluate[bool](inside)) {
		t.Errorf("the next stop is %q, which is not in the content", at())
	}
	for range 30 {
		get(b, chromedp.KeyEvent(kb.Tab))
		outlined := `document.activeElement === document.body ||
			getComputedStyle(document.activeElement).outlineStyle !== "none"`
		if !get(b, chromedp.Evaluate[bool](outlined)) {
			t.Errorf("the focus on %q cannot be seen", at())
		}
	}
}

// Without scripts, pages show the same, and searching works.
func TestWithoutScripts(t *testing.T) {
	b := open(t, newEnv(t).demo())
	_, err := chromedp.Call(b.ctx, emulation.SetScriptExecutionDisabled,
		emulation.SetScriptExecutionDisabledParams{Value: true})
	must(t, err)
	b.visit("/")
	b.shows(".alert", "search_list is exhausted")
	b.click(".bucket details summary")
	b.shows(".bucket details", "Until")
	get(b, chromedp.SendKeys("#q", "hours"+kb.Enter))
	b.shows("main", "Videos with hours")
}

// TestRealCharts shows real charts, whose titles can contain anything. It does nothing if the data
// is missing.
func TestRealCharts(t *testing.T) {
	data := standin.SharedData(os.Getenv("QUOTA_SHARED_DATA"), "trending")
	if data == "" {
		return
	}
	charts, err := standin.LoadDir(data)
	must(t, err)
	regions := charts.Regions(charts.Days() - 1)
	s := newEnv(t)
	s.upstream("--data", data)
	s.run("once", "--region", strings.Join(regions, ","))
	b := open(t, s.start("serve", "--listen", "127.0.0.1:0"))
	b.view(390, 844, true)
	for _, region := range regions {
		b.visit("/charts/" + region)
		b.shows(".facts", "videos")
		b.quiet("the chart of " + region)
	}
}
