package pages

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"net/http"
	"strconv"
	"sync"
	"time"
)

const (
	// lookEvery is how often the streams look for what changed, all together.
	lookEvery = time.Second
	// aliveEvery is how often a stream without news sends a comment, so that proxies keep it open.
	aliveEvery = 15 * time.Second
	// mostStreams is how many pages can follow at once, and mostOfOne how many of one reader;
	// others stay as they were loaded.
	mostStreams = 512
	mostOfOne   = 64
)

// changes tells the streams that something changed: each compares a stamp, which is made once a
// second for all of them, with the previous one.
type changes struct {
	mu    sync.Mutex
	open  int
	of    map[string]int // open ones of each reader
	stamp string
	at    time.Time
}

var errStreams = errors.New("too many pages are open")

func (c *changes) enter(reader string) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.open == mostStreams || c.of[reader] == mostOfOne {
		return errStreams
	}
	if c.of == nil {
		c.of = make(map[string]int)
	}
	c.open++
	c.of[reader]++
	return nil
}

func (c *changes) leave(reader string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open--
	if c.of[reader]--; c.of[reader] == 0 {
		delete(c.of, reader)
	}
}

// look returns the current stamp, or the last one if it cannot be made.
func (c *changes) look(ctx context.Context, make func(context.Context) (string, error)) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if now := time.Now(); now.Sub(c.at) >= lookEvery*9/10 {
		if stamp, err := make(ctx); err == nil {
			c.stamp = stamp
		}
		c.at = now
	}
	return c.stamp
}

// events serves server-sent events: "changed" at the beginning and whenever the catalogue or a
// budget changed. The page then loads itself again.
func (p *Pages) events(w http.ResponseWriter, r *http.Request) {
	KeepPrivate(w.Header())
	reader := ""
	if p.Reader != nil {
		reader = p.Reader(r)
	}
	if err := p.streams.enter(reader); err != nil {
		w.Header().Set("Retry-After", "60")
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer p.streams.leave(reader)
	w.Header().Set("Content-Type", "text/event-stream")
	w.Header().Set("X-Accel-Buffering", "no")
	out := http.NewResponseController(w)
	fmt.Fprint(w, "retry: 3000\n")
	last, said := "", time.Time{}
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for {
		now, stamp := time.Now(), p.streams.look(r.Context(), p.stamp)
		text := ""
		switch {
		case stamp != last || said.IsZero():
			text = fmt.Sprintf("event: changed\ndata: %s\n\n", stamp)
		case now.Sub(said) >= aliveEvery:
			text = ": nothing new\n\n"
		}
		if text != "" {
			last, said = stamp, now
			_ = out.SetWriteDeadline(now.Add(10 * time.Second)) // that of the server is for pages
			if _, err := fmt.Fprint(w, text); err != nil || out.Flush() != nil {
				return
			}
		}
		select {
		case <-tick.C:
		case <-r.Context().Done():
			return
		case <-p.Done:
			return
		}
	}
}

// stamp differs whenever something that pages show has changed.
func (p *Pages) stamp(ctx context.Context) (string, error) {
	const recent = 10 // runs that may still go on
	runs, err := p.Catalog.Runs(ctx, time.Time{}, recent)
	if err != nil {
		return "", err
	}
	sum := fnv.New64a()
	for _, run := range runs {
		fmt.Fprintln(sum, run.ID, run.EndedAt.UnixMicro(), run.Pages, run.Complete)
	}
	if p.Source != nil {
		if err := p.stampBudgets(ctx, sum); err != nil {
			fmt.Fprintln(sum, "unreadable") // which is news, too
		}
	}
	return strconv.FormatUint(sum.Sum64(), 36), nil
}
