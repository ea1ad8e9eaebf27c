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
	Busy     []*account      // buckets to draw: units of them are spent, held or missing
	Idle     []*account
	More     []string // a sentence for each split bucket with parts that are not shown
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

// leftOut is a region that will lose runs before the reset.
type leftOut struct {
	schedule.LaneID
	Runs  int
	First time.Time
	Limit string
}

const (
	maxTicks   = 8
	maxLeftOut = 12
	maxDenied  = 5
)

func (p *site) board(ctx context.Context, r *http.Request, now time.Time) (page, error) {
	tiles, err := p.tiles(ctx, 0)
	if err != nil {
		return page{}, err
	}
	body := &boardBody{Regions: tiles, Headline: "Charts", Grade: "good"}
	if p.private(r) {
		body.Budgets = true
		if p.Guard != nil && p.Guard.Stats != nil {
			body.Limits, body.Denied = p.Guard.Stats.Counts(), p.Guard.Stats.TopDenied(maxDenied)
		}
		if err := p.fillBoard(ctx, body, now); err != nil {
			if ctx.Err() == nil { // otherwise the client has disconnected
				p.logFailure(err)
			}
			body.Headline, body.Grade = "The ledger cannot be read", "bad"
			body.Trouble = "Budgets, forecast and ticks are missing here; " +
				"the charts are up to date."
		}
		body.Outages, err = p.Source().Outages(ctx)
		if err != nil {
			p.Log.Warn("cannot read the journal", "error", err)
		}
		if body.Trouble == "" {
			body.Outages = report.Unposted(body.Outages)
		}
	}
	return page{Title: body.Headline, Section: "board", Live: true, Body: body}, nil
}

func (p *site) fillBoard(ctx context.Context, body *boardBody, now time.Time) error {
	accounts, more, err := p.accounts(ctx)
	if err != nil {
		return err
	}
	body.More = more
	for _, a := range accounts {
		if a.Busy() {
			body.Busy = append(body.Busy, a)
		} else {
			body.Idle = append(body.Idle, a)
		}
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
	body.Ticks = body.Ticks[:min(len(body.Ticks), maxTicks)]
	for i := range body.Regions {
		body.Regions[i].Next = next[body.Regions[i].Region]
	}
	body.judge(accounts)
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

// judge finds short buckets and lost runs, and sets the headline.
func (b *boardBody) judge(accounts []*account) {
	b.Headline = "Nothing is spent or scheduled yet"
	worst := 0
	for _, a := range accounts {
		f := a.Forecast
		if worst == 0 && f.Verdict != plan.Unused {
			b.Headline = "Every bucket lasts to its reset"
		}
		if !f.Short() && f.Verdict != plan.Closed {
			continue
		}
		text := f.Text()
		if a.Credential != "" {
			text = a.Credential + ": " + text
		}
		b.Short = append(b.Short, text)
		b.leave(f.LostRuns)
		if text, weight := a.problem(); weight > worst {
			b.Headline, b.Grade, worst = text, a.Grade(), weight
		}
	}
	slices.SortStableFunc(b.LeftOut, func(x, y leftOut) int { return cmp.Compare(y.Runs, x.Runs) })
	b.LeftOut = b.LeftOut[:min(len(b.LeftOut), maxLeftOut)]
}

// problem returns the problem of a bucket in a few words, and its weight: lost runs weigh more than
// a bucket that nothing uses.
func (a *account) problem() (text string, weight int) {
	text, weight = "Some runs will be left out", 2
	switch a.Forecast.Verdict {
	case plan.Suspended:
		text, weight = a.Name()+" is suspended until "+endClock(a.At, a.SuspendedUntil), 5
	case plan.Exhausted:
		text, weight = a.Name()+" is exhausted", 4
	case plan.RunsDry:
		text, weight = a.Name()+" runs dry about "+shortClock(a.At, a.Forecast.DryAt), 3
	case plan.Closed:
		text, weight = a.Name()+" is closed", 1
	}
	if a.Forecast.Lost.Runs > 0 {
		weight += 10
	}
	return text, weight
}

// leave counts the lost runs by lane.
func (b *boardBody) leave(runs []plan.Run) {
	for _, r := range runs {
		same := func(l leftOut) bool {
			return l.LaneID == r.LaneID && l.Limit == r.Limit
		}
		if i := slices.IndexFunc(b.LeftOut, same); i >= 0 {
			b.LeftOut[i].Runs++
			continue
		}
		b.LeftOut = append(b.LeftOut, leftOut{r.LaneID, 1, r.At, r.Limit})
	}
}
