package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"quotabudget/internal/cli"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/words"
)

func (a *app) top() *cobra.Command {
	every := time.Second
	c := a.Command("top", func(c *cobra.Command, _ []string) error {
		switch {
		case a.Output != "table":
			return cli.Hint(cli.Usagef("top is for people"), "quotactl status -o %s and "+
				"quotactl log -o jsonl are for programs", a.Output)
		case every < 100*time.Millisecond || every > 24*time.Hour:
			return cli.Usagef("--interval %s: must be from 100ms to 24h", every)
		}
		return a.withLedger(c.Context(), func(src report.Source) error {
			if cli.IsTerminal(a.Stdout) && a.Getenv("TERM") != "dumb" {
				return a.topOnTerminal(c.Context(), src, every, c.InOrStdin())
			}
			if !c.Flags().Changed("interval") {
				every = 0
			}
			state := new(outage)
			return a.pictures(c.Context(), src, every, func(p []byte, away error) error {
				if err := a.bridge(state, away); err != nil || away != nil {
					return err
				}
				_, err := a.Stdout.Write(p)
				return err
			})
		})
	})
	cli.Flags(c.Flags(), "interval", &every)
	return c
}

// pictures calls show with a picture per interval until ctx ends, or once if every is 0. During a
// ledger outage, show gets the last picture with the error.
func (a *app) pictures(ctx context.Context, src report.Source, every time.Duration,
	show func(picture []byte, away error) error) error {
	var last []byte
	for outlook := new(topOutlook); ; {
		next, err := a.picture(ctx, src, outlook)
		if ctx.Err() != nil {
			return nil
		}
		if err == nil {
			last = next
		} else if last == nil || !errors.Is(err, quota.ErrUnreachable) {
			return err
		}
		if err = show(last, err); err != nil || every == 0 {
			return err
		}
		if !quota.Pause(ctx, every) {
			return nil
		}
	}
}

// topCharges is the number of latest charges per credential in a picture.
const topCharges = 60

// picture draws the tables.
func (a *app) picture(ctx context.Context, src report.Source, outlook *topOutlook) ([]byte, error) {
	list, err := src.Status(ctx)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	s := a.ScreenOn(a.Stdout)
	s.W = &out
	s.Say("quotactl top  %s\n", words.Moment(time.Now().Truncate(time.Second)))
	statusTable(s, list)
	outlook.say(ctx, s, src)
	for _, c := range src.Config.Credentials {
		table := src.Config.Table(c)
		g := &gate{c.Budget(src.Ledger, table, nil), src.Ledger, src.Config, c}
		entries, err := g.entries(ctx, question{limit: topCharges})
		if err != nil {
			return nil, err
		}
		if len(src.Config.Credentials) > 1 {
			s.Say("\nlatest charges of %s", c.Name)
		}
		s.Say("\n")
		slices.Reverse(entries)
		drawEntries(s, new(cli.Table), table, cli.Each(entries, report.NewEntry))
	}
	return append(out.Bytes(), '\n'), nil
}

// topOutlook caches the forecast for a minute, because making one takes longer than reading.
type topOutlook struct {
	text string
	at   time.Time
}

func (o *topOutlook) say(ctx context.Context, s cli.Screen, src report.Source) {
	if time.Since(o.at) >= time.Minute {
		var out strings.Builder
		onto := s
		onto.W = &out
		results, err := src.Forecasts(ctx, "")
		sayOutlook(onto, results, err)
		o.text, o.at = out.String(), time.Now()
	}
	io.WriteString(s.W, o.text)
}

// topOnTerminal shows pictures on the alternate screen, cut to its lines, until the user types q or
// Ctrl-C.
func (a *app) topOnTerminal(ctx context.Context, src report.Source, every time.Duration,
	in io.Reader) error {
	ctx, quit := context.WithCancel(ctx)
	defer quit()
	if keys, ok := in.(*os.File); ok && cli.IsTerminal(keys) {
		state, err := term.MakeRaw(int(keys.Fd()))
		if err != nil {
			return err
		}
		defer term.Restore(int(keys.Fd()), state)
		go func() { // ends with the program
			for key := []byte{0}; ; {
				if n, err := keys.Read(key); err != nil || n == 1 && strings.ContainsAny("q\x03",
					string(key)) {
					quit()
					return
				}
			}
		}()
	}
	fmt.Fprint(a.Stdout, "\x1b[?1049h\x1b[?25l") // the alternate screen, without a cursor
	defer fmt.Fprint(a.Stdout, "\x1b[?25h\x1b[?1049l")
	var since time.Time
	return a.pictures(ctx, src, every, func(picture []byte, away error) error {
		s, lines := a.ScreenOn(a.Stdout), strings.Split(string(picture), "\n")
		if away == nil {
			since = time.Time{}
		} else {
			if since.IsZero() {
				since = time.Now()
			}
			var head strings.Builder
			onto := s
			onto.W = &head
			onto.Say("waiting for the ledger since %s: %v", since.UTC().Format("15:04:05Z"), away)
			lines = append(strings.Split(head.String(), "\n"), lines[1:]...)
		}
		if s.Height > 0 {
			lines = lines[:min(len(lines), s.Height)]
		}
		_, err := io.WriteString(a.Stdout, "\x1b[H"+strings.Join(lines, "\x1b[K\r\n")+"\x1b[J")
		return err
	})
}
