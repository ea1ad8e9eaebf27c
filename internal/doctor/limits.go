package doctor

import (
	"context"
	"errors"
	"fmt"
	"time"

	"quotabudget/internal/bill"
	"quotabudget/internal/config"
	"quotabudget/internal/costs"
	"quotabudget/internal/report"
)

// limits compares the limits with the upstream's: the real ones if a service account can read them,
// otherwise the defaults.
func (e *exam) limits(ctx context.Context) {
	for _, c := range e.Config.Credentials {
		e.judge("credential "+c.Name, []check{
			{c.Observe, Warning, "observe", "its mode is observe",
				"charges over its limits are allowed",
				"set mode: enforce when you have seen enough"},
			{len(c.Limits) == 0, Warning, "limit-missing", "it has no limits",
				"its spending is recorded, and nothing is denied",
				"write your account's limits: [{bucket: …, units: …, window: …}]"},
		})
		t := e.Config.Table(c)
		compared := e.google(ctx, c, t)
		for _, l := range c.Limits {
			b, ok := t.Bucket(l.Bucket)
			aboveDefault := ok && b.Daily > 0 && l.Units > b.Daily &&
				l.Window.Longest() <= 25*time.Hour
			e.judge(fmt.Sprintf("limit %s of %s", l.Name(), c.Name), []check{
				{!compared && aboveDefault, Warning, "limit-default", fmt.Sprintf(
					"it allows %d units, and a new account is given %d a day", l.Units, b.Daily),
					tooMuch,
					"look up your account's quota; if it is less, lower units in quota.yaml"},
				{l.Units > 0 && l.Headroom >= l.Units, Warning, "limit-headroom",
					"its headroom is the whole limit", "scheduled work gets nothing",
					"lower headroom in quota.yaml"},
			})
		}
	}
}

const tooMuch = "the upstream refuses calls over its quota, and bills them"

// google compares the limits of a credential with those Google reports for its project. It returns
// whether Google was asked.
func (e *exam) google(ctx context.Context, c config.Credential, t *costs.Table) bool {
	if c.Account.File == "" || !bill.Asks(t, "service_account") {
		return false
	}
	about := "credential " + c.Name
	e.exposed(about, config.FileSecret(c.Account.File, nobody),
		"a user with the key can read all that its account can")
	limits, err := googleLimits(ctx, c, t)
	if err != nil {
		e.add(Finding{Warning, "google", about, "Google's limits cannot be read: " + err.Error(),
			"its limits may differ from its project's",
			"quotactl reconcile --credential " + c.Name + " explains what to do"})
		return false
	}
	for _, d := range bill.Differ(c.Limits, limits) {
		if d.Theirs >= 0 && d.Theirs < d.Ours.Units {
			e.add(Finding{Warning, "limit-google", fmt.Sprintf("limit %s of %s", d.Ours.Name(),
				c.Name), fmt.Sprintf("it allows %d units, and Google gives its project %d",
				d.Ours.Units, d.Theirs), tooMuch,
				fmt.Sprintf("lower it to units: %d in quota.yaml", d.Theirs)})
		}
	}
	return true
}

func nobody(string) string { return "" }

func googleLimits(ctx context.Context, c config.Credential, t *costs.Table) (
	[]bill.Limit, error) {
	a := c.Account
	text, err := a.Key(bill.MaxKey)
	if err != nil {
		return nil, err
	}
	account, err := bill.ParseAccount(text)
	if err != nil {
		return nil, fmt.Errorf("file %s %w", a.File, err)
	}
	client := &bill.Client{Table: t, Account: account, Project: c.Project, Cloud: a.Endpoint}
	if client.ProjectName() == "" {
		return nil, errors.New("the key of its service account has no project")
	}
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	return client.Limits(ctx)
}

// unmetered reports methods that may pass without the ledger and without a bound, and charges
// waiting to be booked.
func (e *exam) unmetered(ctx context.Context) {
	for _, c := range e.Config.Credentials {
		if len(c.Open) > 0 && c.AtMost == 0 {
			e.add(Finding{Warning, "unmetered", "credential " + c.Name,
				report.Few(c.Open) + " may pass without the ledger, and nothing bounds them",
				"an outage can spend the budget many times over",
				"add at_most: N next to open under when_unreachable: the units that each host may " +
					"spend"})
		}
	}
	all, err := e.Outages(ctx)
	if err != nil {
		e.add(Finding{Error, "journal", "journal of this host", err.Error(),
			"nothing is allowed while the ledger cannot be reached", "look at that file"})
	}
	for _, o := range report.Unposted(all) {
		e.add(Finding{Warning, "journal", "credential " + o.Credential, o.Text(),
			"the ledger has not recorded them yet",
			"the next call books them, once the ledger can be reached"})
	}
}
