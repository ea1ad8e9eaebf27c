//go:build browser

// Package browser tests the pages in a real browser.
package browser

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// root is the folder of the module.
const root = ".."

// tab is one page of a real browser. Output in its console fails the test.
type tab struct {
	*testing.T
	ctx context.Context
	url string // of the server

	mu     sync.Mutex
	output []string // of the console
}

// open opens a browser for the test.
func open(t *testing.T, url string) *tab {
	t.Helper()
	ctx, closeBrowser := chromedp.NewExecAllocator(t.Context(), chromedp.Headless,
		chromedp.NoSandbox, chromedp.NoFirstRun, chromedp.NoDefaultBrowserCheck,
		chromedp.Flag("hide-scrollbars", true), chromedp.Flag("disable-dev-shm-usage", true),
		chromedp.Flag("disable-background-networking", true),
		chromedp.Flag("force-prefers-reduced-motion", true))
	t.Cleanup(closeBrowser)
	ctx, closeTab := chromedp.NewContext(ctx)
	t.Cleanup(closeTab)
	b := &tab{T: t, ctx: ctx, url: url}
	must(t, chromedp.Listen(ctx, b.listen))
	get(b, chromedp.Location()) // enables the events that listen reads
	return b
}

// get returns the result of an action, within half a minute.
func get[T any](b *tab, action chromedp.Action[T]) T {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 30*time.Second)
	defer cancel()
	result, err := chromedp.Run(ctx, action)
	must(b, err)
	return result
}

// listen records the output of the console and the errors of scripts.
func (b *tab) listen(event any) {
	text := ""
	switch e := event.(type) {
	case *log.EventEntryAdded:
		text = fmt.Sprintf("%s: %s %s", e.Entry.Level, e.Entry.Text, e.Entry.URL)
	case *runtime.EventConsoleAPICalled:
		text = fmt.Sprintf("console.%s", e.Type)
		for _, arg := range e.Args {
			text += " " + string(arg.Value)
		}
	case *runtime.EventExceptionThrown:
		text = e.ExceptionDetails.Text
	case *page.EventJavascriptDialogOpening:
		text = "dialog: " + e.Message
	default:
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.output = append(b.output, text)
}

// quiet reports each line of the console as an error, and empties the console.
func (b *tab) quiet(where string) {
	b.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, text := range b.output {
		b.Errorf("%s: %s", where, text)
	}
	b.output = nil
}

// visit opens a page of the server.
func (b *tab) visit(path string) {
	b.Helper()
	get(b, chromedp.Steps(chromedp.Navigate(b.url+path), chromedp.WaitReady("main")))
}

// click clicks the first element that matches the selector, and waits for the page that follows, if
// any. A page that updates itself may replace the element before it is clicked: then click looks
// for it again.
func (b *tab) click(selector string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 20*time.Second)
	defer cancel()
	for {
		_, err := chromedp.Run(ctx,
			chromedp.Steps(chromedp.ScrollIntoView(selector), chromedp.Click(selector)))
		var replaced *cdproto.Error
		if err == nil {
			return
		}
		if !errors.As(err, &replaced) {
			b.Fatalf("%s: %v", selector, err)
		}
	}
}

// shows waits until an element contains a text.
func (b *tab) shows(selector, text string) {
	b.Helper()
	ctx, cancel := context.WithTimeout(b.ctx, 20*time.Second)
	defer cancel()
	for {
		got, err := chromedp.Run(ctx, chromedp.Evaluate[string](fmt.Sprintf(
			`[...document.querySelectorAll(%q)].map(e => e.innerText).join(" ")`, selector)))
		got = strings.Join(strings.Fields(got), " ")
		if err == nil && strings.Contains(got, text) {
			return
		}
		select {
		case <-ctx.Done():
			b.Fatalf("%s does not show %q: %q", selector, text, got)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// waits waits until an expression is true.
func (b *tab) waits(expression string) {
	b.Helper()
	get(b, chromedp.Poll[chromedp.Void](expression,
		chromedp.WithPollingInterval(100*time.Millisecond)))
}

// usable reports lines of the console and accessibility problems of the page as errors.
func (b *tab) usable(where string) {
	b.Helper()
	b.quiet(where)
	get(b, chromedp.Evaluate[chromedp.Void](axe(b.T)))
	type problem struct{ ID, Help, Where string }
	for _, p := range get(b, chromedp.Evaluate[[]problem](`axe.run().then(r => r.violations.flatMap(
		v => v.nodes.map(n => ({ID: v.id, Help: v.help, Where: n.html}))))`,
		chromedp.EvalAwaitPromise)) {
		b.Errorf("%s: %s: %s: %s", where, p.ID, p.Help, p.Where)
	}
	b.quiet(where + ", in axe")
}

// axe returns the source of axe-core, which scripts/install-browser installs.
func axe(t *testing.T) string {
	t.Helper()
	dir, err := os.UserCacheDir()
	must(t, err)
	source, err := os.ReadFile(filepath.Join(dir, "quotabudget", "browser", "node_modules",
		"axe-core", "axe.min.js"))
	must(t, err)
	return string(source)
}

// view sets the width of the window, and light or dark mode.
func (b *tab) view(width, height int64, dark bool) {
	b.Helper()
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	get(b, chromedp.EmulateViewport(width, height))
	_, err := chromedp.Call(b.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}}})
	must(b, err)
}

// fits reports a page that is wider than the window, or a table that is cut off, as an error.
func (b *tab) fits(where string) {
	b.Helper()
	if beyond := get(b, chromedp.Evaluate[float64](`Math.max(document.documentElement.scrollWidth,
		...[...document.querySelectorAll(".flush table")].map(e => e.getBoundingClientRect().right)
		) - innerWidth`)); beyond > 0 {
		b.Errorf("%s: %g pixels wider than the window", where, beyond)
	}
}

// picture saves the whole page as a picture.
func (b *tab) picture(name string) {
	b.Helper()
	path := filepath.Join(screens(b.T), name+".png")
	must(b, os.WriteFile(path, get(b, chromedp.FullScreenshot(100)), 0o644))
}

// screens returns the folder of the pictures, which is not committed.
func screens(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(root, "bin", "screens")
	must(t, os.MkdirAll(dir, 0o755))
	return dir
}

var sizes = []struct {
	name          string
	width, height int64
}{{"desk", 1280, 800}, {"phone", 390, 844}}
