package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
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

// tried is what a price list makes of one call.
type tried struct {
	Upstream string         `json:"upstream"`
	Method   string         `json:"method"`
	Known    bool           `json:"known"` // the price, before the call
	Lapse    *string        `json:"lapse"`
	TTL      *int64         `json:"ttl_seconds"`
	Units    []triedUnits   `json:"units"`
	Unlisted []string       `json:"unlisted"`
	Missing  []string       `json:"missing"`
	Pending  *string        `json:"pending"`
	Lessons  []triedLesson  `json:"lessons"`
	Unread   []string       `json:"unread"`
	Refusal  *triedRefusal  `json:"refusal"`
	table    *costs.Table   // of the upstream
	answered *costs.Outcome // nil without a response
}

type triedUnits struct {
	Bucket  string `json:"bucket"`
	Unit    string `json:"unit"`
	Before  int64  `json:"before"`
	Most    *int64 `json:"most"`
	Settled *int64 `json:"settled"`
}

type triedLesson struct {
	Bucket    string      `json:"bucket"`
	Window    *string     `json:"window"`
	Limit     *int64      `json:"limit"`
	Remaining *int64      `json:"remaining"`
	ResetAt   *words.Time `json:"reset_at"`
	ResetIn   *int64      `json:"reset_in_seconds"`
	From      string      `json:"from"`
}

type triedRefusal struct {
	Kind    string      `json:"kind"`
	As      *string     `json:"as"`
	Reason  *string     `json:"reason"`
	Message *string     `json:"message"`
	Bucket  *string     `json:"bucket"`
	Metric  *string     `json:"metric"`
	Window  bool        `json:"until_window_ends"`
	UntilAt *words.Time `json:"until_at"`
	UntilIn *int64      `json:"until_in_seconds"`
}

// tryFlags are the files of one call, and what it is where they do not say.
type tryFlags struct{ request, response, upstream, method string }

func (a *app) costsTest() *cobra.Command {
	var f tryFlags
	c := &cobra.Command{
		Use:   "test FILE --request REQ [--response RESP]",
		Short: "Show what a price list makes of one call, without making it",
		Long: `test reads a request and its response from files, as they were sent, and shows what
the price list makes of them: which method it is, what would be set aside before the call and
settled after it, what the answer tells about the buckets, or why it refuses. Nothing is sent and
nothing is charged.

A file has an HTTP message, as curl -i prints it; or, if its name ends in .json, a body alone. Name
the method of such a request with --method.`,
		Example: `  quotactl costs test anthropic.yaml --request call.http --response answer.http
  quotactl costs test costs.yaml --method openai.chat.completions.create \
    --request body.json`,
		Args: cli.Args("FILE"),
		RunE: func(c *cobra.Command, args []string) error {
			if f.request == "" {
				return cli.Hint(cli.Usagef("--request is missing"), "usage: %s", c.UseLine())
			}
			list, err := config.Prices(c.Context(), args[0])
			if err != nil {
				return err
			}
			out, err := f.try(c.Context(), list)
			if err != nil {
				return err
			}
			return a.Print(out, func() error { return a.sayTried(out) })
		},
	}
	c.Flags().StringVar(&f.request, "request", "", "`FILE` with the request")
	c.Flags().StringVar(&f.response, "response", "", "`FILE` with the response")
	c.Flags().StringVar(&f.upstream, "upstream", "",
		"`NAME` of the upstream (default: by the request's Host)")
	c.Flags().StringVar(&f.method, "method", "",
		"`ID` of the method that it calls (default: by its route)")
	return c
}

// try quotes the request and observes the response.
func (f tryFlags) try(ctx context.Context, list *costs.List) (out tried, err error) {
	verb, target, err := f.route(list)
	if err != nil {
		return out, err
	}
	r, body, err := readRequest(ctx, f.request, verb, target)
	if err != nil {
		return out, err
	}
	if out.table, err = f.table(list, r.Host); err != nil {
		return out, err
	}
	if out.Method = f.method; out.Method == "" {
		out.Method, err = out.table.Method(r)
		if errors.Is(err, quota.ErrUnpriced) && f.upstream == "" && r.Host != "" &&
			!hasHost(out.table, r.Host) {
			err = fmt.Errorf("%w; %w", err, unknownHost(r.Host))
		}
		if err != nil {
			return out, err
		}
	}
	quote, err := out.table.Quote(out.Method, r, body, nil)
	if unclear, ok := errors.AsType[*costs.PriceError](err); ok && unclear.Formula() != "" {
		err = fmt.Errorf("%w (%s)", err, unclear.Formula())
	}
	if err != nil {
		return out, err
	}
	out.quoted(quote)
	if f.response == "" {
		return out, nil
	}
	resp, body, err := readResponse(ctx, f.response)
	if err != nil {
		return out, err
	}
	observed := quote.Observe(resp.StatusCode, resp.Header)
	observed.Write(body)
	out.observed(observed.Close())
	return out, nil
}

var templates = regexp.MustCompile(`\{[^}]*\}`)

// route returns verb and path of the named method, with "x" for each {name}.
func (f tryFlags) route(list *costs.List) (verb, target string, err error) {
	if f.method == "" {
		return "", "", nil
	}
	_, m, err := list.Lookup(f.method)
	if err != nil {
		return "", "", err
	}
	return m.Verb, templates.ReplaceAllString(m.Path, "x"), nil
}

// table returns the price list of the named upstream, else of the named method's, else of the
// host's.
func (f tryFlags) table(list *costs.List, host string) (*costs.Table, error) {
	if f.upstream != "" || f.method == "" {
		name := f.upstream
		if name == "" && host != "" {
			name = upstreamAt(list, host)
			if all := list.Upstreams(); name == "" && len(all) > 1 {
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

// upstreamAt returns the name of the upstream that has a host, "" if there is none.
func upstreamAt(list *costs.List, host string) string {
	for _, name := range list.Upstreams() {
		if t, err := list.Upstream(name); err == nil && hasHost(t, host) {
			return name
		}
	}
	return ""
}

func hasHost(t *costs.Table, host string) bool {
	host = strings.ToLower(host)
	bare, _, _ := strings.Cut(host, ":")
	return slices.Contains(t.Hosts, host) || slices.Contains(t.Hosts, bare)
}

func unknownHost(host string) error {
	return cli.Usagef("no upstream of the price list has the host %s", words.Plain(host))
}

func (out *tried) quoted(q costs.Quote) {
	out.Upstream, out.Known = out.table.Upstream, q.Known
	out.Missing, out.Lessons, out.Unread = []string{}, []triedLesson{}, []string{}
	if !q.Known {
		out.Lapse, out.TTL = new(string(q.Lapse)), new(words.Seconds(q.TTL))
	}
	out.Unlisted = []string{}
	out.unlisted(q.Unlisted)
	for _, c := range q.Costs {
		b, _ := out.table.Bucket(c.Bucket)
		units := triedUnits{Bucket: c.Bucket, Unit: b.Unit.String(), Before: c.Units}
		if c.Most > 0 {
			units.Most = new(c.Most)
		}
		out.Units = append(out.Units, units)
	}
}

func (out *tried) unlisted(all []costs.Unlisted) {
	for _, u := range all {
		out.Unlisted = append(out.Unlisted, fmt.Sprintf("%s %s in %s", u.Fact, u.Value, u.Table))
	}
}

func (out *tried) observed(o costs.Outcome) {
	out.answered = &o
	out.unlisted(o.Unlisted)
	out.Pending = words.OrNull(o.Pending)
	for i, c := range o.Costs {
		if o.Pending == "" {
			out.Units[i].Settled = new(c.Units)
		}
	}
	out.Missing, out.Unread = append(out.Missing, o.Missing...), append(out.Unread, o.Unread...)
	for _, l := range o.Lessons {
		lesson := triedLesson{Bucket: l.Bucket, From: l.Why}
		if l.Window != (quota.Window{}) {
			lesson.Window = new(l.Window.String())
		}
		if l.Limit > 0 {
			lesson.Limit = new(l.Limit)
		}
		if l.Remaining >= 0 {
			lesson.Remaining = new(l.Remaining)
		}
		lesson.ResetAt, lesson.ResetIn = moment(l.Reset)
		out.Lessons = append(out.Lessons, lesson)
	}
	if r := o.Refusal; r != nil {
		out.Refusal = &triedRefusal{Kind: string(r.Kind), As: words.OrNull(r.As),
			Reason: words.OrNull(r.Reason), Message: words.OrNull(r.Message),
			Bucket: words.OrNull(r.Bucket), Metric: words.OrNull(r.Metric), Window: r.Window}
		out.Refusal.UntilAt, out.Refusal.UntilIn = moment(r.Until)
	}
}

// moment returns a time that a response reports: a moment, a duration, or neither.
func moment(m costs.Moment) (at *words.Time, in *int64) {
	if m.After > 0 {
		return nil, new(words.Seconds(m.After))
	}
	if !m.At.IsZero() {
		at = new(words.Time(m.At))
	}
	return at, nil
}

func (a *app) sayTried(out tried) error {
	s := a.Screen()
	price := "held before the call, settled after it"
	if out.Known {
		price = "known before the call"
	}
	if err := s.Say("%s of %s: %s\n\n", out.Method, out.Upstream, price); err != nil {
		return err
	}
	t := s.Table("bucket", "before", "at most", "after")
	for _, u := range out.Units {
		b, _ := out.table.Bucket(u.Bucket)
		text := func(units *int64) string {
			if units == nil {
				return ""
			}
			return b.Unit.Text(*units)
		}
		t.AppendRow([]any{u.Bucket, text(&u.Before), text(u.Most), text(u.Settled)})
	}
	if err := s.Draw(t); err != nil {
		return err
	}
	if lines := out.lines(s); len(lines) > 0 {
		return s.Say("\n%s\n", strings.Join(lines, "\n"))
	}
	return nil
}

// lines returns what else the list makes of the response.
func (out tried) lines(s cli.Screen) (lines []string) {
	if out.Pending != nil {
		lines = append(lines, "stays held until a GET of "+*out.Pending+" reports the end")
	}
	for _, text := range out.Unlisted {
		lines = append(lines, "no row of its own, so another row sets the price: "+text)
	}
	for _, path := range out.Missing {
		lines = append(lines, "not in the answer, so the most is booked: "+path)
	}
	for _, text := range out.Unread {
		lines = append(lines, "cannot be read, so it tells nothing: "+text)
	}
	if out.answered == nil {
		return lines
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
	for _, l := range out.answered.Lessons {
		line := "the answer tells of " + l.Bucket
		if l.Remaining >= 0 {
			line += fmt.Sprintf(": %d left", l.Remaining)
		}
		if reset := until(l.Reset); reset != "" {
			line += ", reset" + reset
		}
		lines = append(lines, line+" ("+l.Why+")")
	}
	if r := out.answered.Refusal; r != nil {
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
