package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/words"
)

// tried is the result of pricing one call.
type tried struct {
	method        string
	table         *costs.Table // of the upstream
	quote         costs.Quote
	answered      bool
	costs.Outcome // zero without a response
}

// tryFlags are the files of one call, and details that the files lack.
type tryFlags struct{ request, response, lines, upstream, method string }

func (a *app) costsTest() *cobra.Command {
	var f tryFlags
	c := a.Command("costs test", func(c *cobra.Command, args []string) error {
		if f.request == "" {
			return misuse(c, "--request is missing")
		}
		list, err := config.Prices(c.Context(), args[0])
		if err != nil {
			return err
		}
		out, err := f.try(c.Context(), list)
		if err != nil {
			return err
		}
		return a.Print(out.shown(), out.draw)
	})
	cli.Flags(c.Flags(), "request", &f.request, "response", &f.response, "lines", &f.lines,
		"upstream", &f.upstream, "method", &f.method)
	return c
}

// try quotes the request and observes the response.
func (f tryFlags) try(ctx context.Context, list *costs.List) (out tried, err error) {
	verb, target := "", ""
	if f.method != "" {
		_, m, err := list.Lookup(f.method)
		if err != nil {
			return out, err
		}
		verb, target = m.Verb, templates.ReplaceAllString(m.Path, "x")
	}
	r, body, err := readRequest(ctx, f.request, verb, target)
	if err != nil {
		return out, err
	}
	if out.table, err = f.table(list, r.Host); err != nil {
		return out, err
	}
	if out.method = f.method; out.method == "" {
		out.method, err = out.table.Method(r)
		if errors.Is(err, quota.ErrUnpriced) && f.upstream == "" && r.Host != "" &&
			!hasHost(out.table, r.Host) {
			err = fmt.Errorf("%w; %w", err, unknownHost(r.Host))
		}
		if err != nil {
			return out, err
		}
	}
	out.table = out.table.WithFiles(f.file(out.table))
	out.quote, err = out.table.Quote(out.method, r, body, nil)
	if unclear, ok := errors.AsType[*costs.PriceError](err); ok && unclear.Formula() != "" {
		err = fmt.Errorf("%w (%s)", err, unclear.Formula())
	}
	if err != nil {
		return out, err
	}
	if f.response == "" {
		return out, nil
	}
	resp, body, err := readResponse(ctx, f.response)
	if err != nil {
		return out, err
	}
	observed := out.quote.Observe(resp.StatusCode, resp.Header)
	observed.Write(body)
	out.Outcome, out.answered = observed.Close(), true
	return out, nil
}

// file returns a source of the uploaded file that the request names.
func (f tryFlags) file(t *costs.Table) func(context.Context, string) (costs.Lines, error) {
	return func(_ context.Context, name string) (lines costs.Lines, err error) {
		if f.lines == "" {
			return lines, fmt.Errorf("name a copy of the file %.100q with --lines", name)
		}
		file, err := os.Open(f.lines)
		if err != nil {
			return lines, err
		}
		defer file.Close()
		return t.ReadLines(file), nil
	}
}

// templates matches the names in a path, such as {name}.
var templates = regexp.MustCompile(`\{[^}]*\}`)

// table returns the price list of the named upstream, otherwise of the named method's, otherwise of
// the host's.
func (f tryFlags) table(list *costs.List, host string) (*costs.Table, error) {
	if f.upstream != "" || f.method == "" {
		name := f.upstream
		if name == "" && host != "" {
			all := list.Upstreams()
			at := slices.IndexFunc(all, func(name string) bool {
				t, err := list.Upstream(name)
				return err == nil && hasHost(t, host)
			})
			if at >= 0 {
				name = all[at]
			} else if len(all) > 1 {
				return nil, cli.Hint(unknownHost(host), "name the upstream with --upstream: %s",
					strings.Join(all, ", "))
			}
		}
		t, err := list.Upstream(name)
		if err != nil && f.upstream != "" {
			err = cli.Usagef("%w", err)
		}
		return t, err
	}
	t, _, err := list.Lookup(f.method)
	return t, err
}

func hasHost(t *costs.Table, host string) bool {
	host = strings.ToLower(host)
	bare, _, _ := strings.Cut(host, ":")
	return slices.Contains(t.Hosts, host) || slices.Contains(t.Hosts, bare)
}

func unknownHost(host string) error {
	return cli.Usagef("no upstream of the price list has the host %s", words.Plain(host))
}

func (out tried) shown() object {
	var lapse, ttl, refusal any
	if !out.quote.Known {
		lapse, ttl = out.quote.Lapse, words.Seconds(out.quote.TTL)
	}
	units := cli.Each(out.rows(), func(c triedCost) object {
		return object{"bucket", c.Bucket, "unit", c.unit.String(), "before", c.Units, "most", c.most,
			"settled", c.settled}
	})
	if r := out.Refusal; r != nil {
		until := object{"kind", r.Kind, "as", words.OrNull(r.As), "reason", words.OrNull(r.Reason),
			"message", words.OrNull(r.Message), "bucket", words.OrNull(r.Bucket),
			"metric", words.OrNull(r.Metric), "until_window_ends", r.Window}
		refusal = moment(until, "until", r.Until)
	}
	lessons := cli.Each(out.Lessons, func(l costs.Lesson) object {
		window := ""
		if l.Window != (quota.Window{}) {
			window = l.Window.String()
		}
		o := object{"bucket", l.Bucket, "window", words.OrNull(window), "limit", atLeast(l.Limit, 1),
			"remaining", atLeast(l.Remaining, 0)}
		return append(moment(o, "reset", l.Reset), "from", l.Why)
	})
	return object{"upstream", out.table.Upstream, "method", out.method, "known", out.quote.Known,
		"lapse", lapse, "ttl_seconds", ttl, "units", units, "unlisted", out.unlisted(),
		"missing", list(out.Missing), "pending", words.OrNull(out.Pending), "lessons", lessons,
		"unread", list(out.Unread), "refusal", refusal}
}

// triedCost is a cost of a test call.
type triedCost struct {
	quota.Cost
	unit    costs.Unit
	most    *int64 // maximum units, if they differ from Units
	settled *int64 // nil without a response, or while the call's end is unreported
}

func (out tried) rows() (rows []triedCost) {
	for i, c := range out.quote.Costs {
		b, _ := out.table.Bucket(c.Bucket)
		row := triedCost{Cost: c, unit: b.Unit, most: atLeast(c.Most, 1)}
		if out.answered && out.Pending == "" {
			row.settled = &out.Costs[i].Units
		}
		rows = append(rows, row)
	}
	return rows
}

func (out tried) unlisted() []string {
	all := slices.Concat(out.quote.Unlisted, out.Unlisted)
	return cli.Each(all, func(u costs.Unlisted) string {
		return fmt.Sprintf("%s %s in %s", u.Fact, u.Value, u.Table)
	})
}

// atLeast returns nil for a number that is smaller.
func atLeast(n, least int64) *int64 {
	if n < least {
		return nil
	}
	return &n
}

// moment adds a time that a response reports: a moment, a duration, or neither.
func moment(o object, key string, m costs.Moment) object {
	var at, in any
	switch {
	case m.After > 0:
		in = words.Seconds(m.After)
	case !m.At.IsZero():
		at = words.Time(m.At)
	}
	return append(o, key+"_at", at, key+"_in_seconds", in)
}

func (out tried) draw(s cli.Screen) {
	price := "held before the call, settled after it"
	if out.quote.Known {
		price = "known before the call"
	}
	s.Say("%s of %s: %s\n\n", out.method, out.table.Upstream, price)
	s.Draw(cli.View(out.rows(), func(c triedCost) cli.Row {
		text := func(units *int64) string {
			if units == nil {
				return ""
			}
			return c.unit.Text(*units)
		}
		return cli.Row{"bucket", c.Bucket, "before", text(&c.Units), "at most", text(c.most),
			"after", text(c.settled)}
	}))
	if lines := out.lines(s); len(lines) > 0 {
		s.Say("\n%s\n", strings.Join(lines, "\n"))
	}
}

// lines returns the other results of the response.
func (out tried) lines(s cli.Screen) (lines []string) {
	if out.Pending != "" {
		lines = append(lines, "stays held until a GET of "+out.Pending+" reports the end")
	}
	for _, text := range out.unlisted() {
		lines = append(lines, "no row of its own, so another row sets the price: "+text)
	}
	for _, path := range out.Missing {
		lines = append(lines, "not in the response, so the most is booked: "+path)
	}
	for _, text := range out.Unread {
		lines = append(lines, "cannot be read, so it is ignored: "+text)
	}
	until := func(m costs.Moment) string {
		switch {
		case m.After > 0:
			return " in " + m.After.String()
		case !m.At.IsZero():
			return " at " + s.Moment(m.At)
		}
		return ""
	}
	for _, l := range out.Lessons {
		line := "the response reports " + l.Bucket
		if l.Remaining >= 0 {
			line += fmt.Sprintf(": %d left", l.Remaining)
		}
		if reset := until(l.Reset); reset != "" {
			line += ", reset" + reset
		}
		lines = append(lines, line+" ("+l.Why+")")
	}
	if r := out.Refusal; r != nil {
		line := "refused: " + cmp.Or(r.As, string(r.Kind))
		if r.Bucket != "" {
			line += " (" + r.Bucket + ")"
		}
		if r.Window {
			line += " until its window ends"
		} else if at := until(r.Until); at != "" {
			line += ", again" + at
		}
		lines = append(lines, strings.TrimRight(line+": "+cmp.Or(r.Message, r.Reason), ": "))
	}
	return lines
}
