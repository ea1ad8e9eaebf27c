package serve

import (
	"cmp"
	"context"
	"net"
	"net/http"
	"slices"
	"time"

	"quotabudget/internal/limit"
	"quotabudget/internal/plan"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/schedule"
)

// boardBody is the content of the board.
type boardBody struct {
	Headline string
	Grade    string
	Budgets  bool // whether the reader may see budgets
	Trouble  string
	Outages  []report.Outage // of this host, while the ledger is away or the journal has lines
	Accounts []*account
	More     []string // a sentence for each split bucket with parts not in Accounts
	Daemon   string   // whether a daemon responds; "" if none is expected
	DaemonOK bool
	Refused  []string // a sentence for each credential that denied jobs in the last 24 hours
	Short    []string // a sentence for each bucket that is short
	LeftOut  []leftOut
	Ticks    []schedule.Tick
	Regions  []regionTile
	Limits   []limit.Counts // of this server
	Denied   []limit.Denied // callers these limits denied most often
}

// Busy returns the buckets to draw: units of them are spent, held or missing.
func (b *boardBody) Busy() []*account { return b.of(true) }

// Idle returns the other buckets.
func (b *boardBody) Idle() []*account { return b.of(false) }

func (b *boardBody) of(busy bool) (some []*account) {
	for _, a := range b.Accounts {
		if a.Busy() == busy {
			some = append(some, a)
		}
	}
	return some
}

// leftOut is a region that will lose runs before the reset.
type leftOut struct {
	Region, Job string
	Runs        int
	First       time.Time
	Limit       string
}

const (
	mostTicks   = 8
	mostLeftOut = 12
	mostDenied  = 5
)

func (p *site) board(ctx context.Context, r *http.Request, now time.Time) (page, error) {
	tiles, err := p.tiles(ctx, 0)
	if err != nil {
		return page{}, err
	}
	body := &boardBody{Regions: tiles, Headline: "Charts", Grade: "good"}
	if p.Guard != nil && p.Guard.Stats != nil && p.private(r) {
		body.Limits, body.Denied = p.Guard.Stats.Counts(), p.Guard.Stats.TopDenied(mostDenied)
	}
	if p.private(r) {
		body.Budgets = true
		if err := p.fillBoard(ctx, body, now); err != nil {
			if ctx.Err() == nil { // otherwise the client has disconnected
				p.logFailure(err)
			}
			body.Headline, body.Grade = "The ledger cannot be read", "bad"
			body.Trouble = "Budgets, forecast and ticks are missing here; " +
				"the charts are up to date."
		}
		body.Outages = p.outages(ctx, body.Trouble != "")
	}
	return page{Title: body.Headline, Section: "board", Live: true, Body: body}, nil
}

// outages returns this host's current outages: the ledger is away, or the journal has lines.
func (p *site) outages(ctx context.Context, away bool) []report.Outage {
	all, err := p.Source().Outages(ctx)
	if err != nil {
		p.Log.Warn("cannot read the journal", "error", err)
	}
	if away {
		return all
	}
	return report.Unposted(all)
}

func (p *site) fillBoard(ctx context.Context, body *boardBody, now time.Time) (err error) {
	if body.Accounts, body.More, err = p.accounts(ctx); err != nil {
		return err
	}
	if body.Refused, err = p.deniedJobs(ctx, now); err != nil {
		return err
	}
	lanes, err := p.Source().AllLanes(ctx)
	if err != nil {
		return err
	}
	next := make(map[string]time.Time)
	for _, l := range lanes {
		tick := l.Next(now)
		if tick.At.IsZero() {
			continue
		}
		body.Ticks = append(body.Ticks, tick)
		if at := next[l.Region]; at.IsZero() || tick.At.Before(at) {
			next[l.Region] = tick.At
		}
	}
	slices.SortStableFunc(body.Ticks, func(a, b schedule.Tick) int { return a.At.Compare(b.At) })
	body.Ticks = body.Ticks[:min(len(body.Ticks), mostTicks)]
	for i := range body.Regions {
		body.Regions[i].Next = next[body.Regions[i].Region]
	}
	body.judge()
	if address := p.Source().Config.Daemon.Listen; len(lanes) > 0 && address != "" {
		p.lookFor(ctx, body, address)
	}
	return nil
}

// deniedJobs returns a sentence for each credential whose jobs were denied in the last 24 hours.
func (p *site) deniedJobs(ctx context.Context, now time.Time) (all []string, err error) {
	from := p.Source()
	for _, c := range from.Config.Credentials {
		denied, err := from.Denied(ctx, c.Name, "", quota.LabelJob,
			report.Span{Since: now.Add(-24 * time.Hour)})
		if err != nil {
			return nil, err
		}
		if jobs := report.DeniedJobs(denied.Rows); jobs != "" {
			all = append(all, c.Name+": denied in the last 24h: "+jobs)
		}
	}
	return all, nil
}

// lookFor sets on the board whether this machine's daemon responds at its health-check address.
func (p *site) lookFor(ctx context.Context, body *boardBody, address string) {
	const answered, patience = 10 * time.Second, 500 * time.Millisecond
	host, port, _ := net.SplitHostPort(address)
	body.DaemonOK, _ = p.alive.get(ctx, answered, func(ctx context.Context) (bool, error) {
		ctx, done := context.WithTimeout(ctx, patience)
		defer done()
		r, err := http.NewRequestWithContext(ctx, http.MethodGet,
			"http://"+net.JoinHostPort(cmp.Or(host, "127.0.0.1"), port)+"/healthz", nil)
		if err != nil {
			return false, nil
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return false, nil
		}
		return answer.StatusCode == http.StatusOK, answer.Body.Close()
	})
	body.Daemon = "The daemon is alive (" + address + ")"
	if !body.DaemonOK {
		body.Daemon = "No daemon answers at " + address + " of this machine: jobs run only from cron or " +
			"elsewhere"
	}
}

// Title returns the title of the lane.
func (l leftOut) Title() string { return schedule.Title(l.Job, l.Region) }

// judge finds short buckets and lost runs, and sets the headline.
func (b *boardBody) judge() {
	b.Headline = "Nothing is spent or scheduled yet"
	worst := 0
	for _, a := range b.Accounts {
		f := a.Forecast
		if worst == 0 && f.Verdict != plan.Unused {
			b.Headline = "Every bucket lasts to its reset"
		}
		if !f.Short() && f.Verdict != plan.Closed {
			continue
		}
		b.Short = append(b.Short, a.Credential+sep(a.Credential)+f.Text())
		b.leave(f.LostRuns)
		if text, weight := sentence(a); weight > worst {
			b.Headline, b.Grade, worst = text, a.Grade(), weight
		}
	}
	slices.SortStableFunc(b.LeftOut, func(x, y leftOut) int { return cmp.Compare(y.Runs, x.Runs) })
	b.LeftOut = b.LeftOut[:min(len(b.LeftOut), mostLeftOut)]
}

func sep(credential string) string {
	if credential == "" {
		return ""
	}
	return ": "
}

// sentence returns the problem of a bucket in a few words, and its weight: lost runs weigh more
// than a bucket that nothing uses.
func sentence(a *account) (text string, weight int) {
	text, weight = wrong(a)
	if a.Forecast.Lost.Runs > 0 {
		weight += 10
	}
	return text, weight
}

func wrong(a *account) (text string, weight int) {
	switch a.Forecast.Verdict {
	case plan.Suspended:
		return a.Name() + " is suspended until " + endClock(a.At, a.SuspendedUntil), 5
	case plan.Exhausted:
		return a.Name() + " is exhausted", 4
	case plan.RunsDry:
		return a.Name() + " runs dry about " + shortClock(a.At, a.Forecast.DryAt), 3
	case plan.Closed:
		return a.Name() + " is closed", 1
	}
	return "Some runs will be left out", 2
}

// leave counts the lost runs by lane.
func (b *boardBody) leave(runs []plan.LostRun) {
	for _, r := range runs {
		same := func(l leftOut) bool {
			return l.Region == r.Region && l.Job == r.Job && l.Limit == r.Limit
		}
		if i := slices.IndexFunc(b.LeftOut, same); i >= 0 {
			b.LeftOut[i].Runs++
			continue
		}
		b.LeftOut = append(b.LeftOut, leftOut{r.Region, r.Job, 1, r.At, r.Limit})
	}
}
