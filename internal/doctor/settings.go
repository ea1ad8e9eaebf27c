package doctor

import (
	"cmp"
	"context"
	"fmt"
	"net/url"
	"os"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/config"
	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
)

// exposed reports a file of secrets that other users can read.
func (e *exam) exposed(about string, s config.Secret, why string) {
	if mode, exposed := s.Exposed(); exposed {
		e.add(Finding{Warning, "key-exposed", about,
			fmt.Sprintf("other users can read %s (mode %04o)", s.File, mode), why,
			"chmod 600 " + s.File})
	}
}

// server checks the token file of a public server, and the secret that signs notifications.
func (e *exam) server() {
	e.exposed("token_file of serve:", config.FileSecret(e.Config.Serve.TokenFile, nobody),
		"a token opens budgets, plan and log of a public server")
	secret := e.Config.Notify.Secret
	if _, err := secret.Key(); secret.Placed() && err != nil {
		e.add(Finding{Warning, "notify-secret", "url of notify:", err.Error(),
			"nothing is sent to it", secret.Advice()})
	}
	e.exposed("secret of notify:", secret, "a user with it can forge notifications")
}

// keys checks the API keys of the credentials, and never shows one.
func (e *exam) keys() {
	type account struct{ upstream, key string }
	owners := map[account][]config.Credential{}
	for _, c := range e.Config.Credentials {
		about := "credential " + c.Name
		e.exposed(about, c.APIKey, "a user with the key can spend its quota")
		key, err := c.APIKey.Key()
		if err != nil {
			problem := strings.TrimPrefix(err.Error(), about+" ")
			e.add(Finding{Error, "key-missing", about, problem,
				"its calls are refused without a key", c.APIKey.Advice()})
			continue
		}
		owner := account{c.Upstream, key}
		owners[owner] = append(owners[owner], c)
	}
	for _, c := range e.Config.Credentials {
		key, _ := c.APIKey.Key()
		owner := account{c.Upstream, key}
		all := owners[owner]
		if delete(owners, owner); len(all) < 2 || shareQuota(all, e.Config.Table(c)) {
			continue
		}
		for _, other := range all[1:] {
			e.add(Finding{Warning, "key-shared", "credential " + other.Name,
				"it has the same API key as " + all[0].Name,
				"the upstream has one quota for both, but each is counted separately",
				"merge them into one credential, or let their limits add up to at most " +
					"the account's quota"})
		}
	}
}

// shareQuota reports whether the limits of credentials with one key add up to at most the account's
// limits in the price list, in every bucket.
func shareQuota(all []config.Credential, table *costs.Table) bool {
	for _, c := range all {
		for _, own := range c.Limits {
			b, ok := table.Bucket(own.Bucket)
			if !ok || len(b.Limits) == 0 {
				return false
			}
			for _, has := range b.Limits {
				if sum, bounded := sumUnder(all, b, has.Window); !bounded || sum > has.Units {
					return false
				}
			}
		}
	}
	return true
}

// sumUnder returns the units that the credentials may take together in a window. A limit with a
// longer window also bounds shorter windows. A day counts as 24 hours.
func sumUnder(all []config.Credential, b costs.Bucket, w quota.Window) (sum int64, bounded bool) {
	length := w.Longest()
	if w.Calendar == "day" {
		length = 24 * time.Hour
	}
	for _, c := range all {
		own := int64(-1)
		for _, l := range c.Limits {
			covers := l.Window.Longest() >= length || l.Window.String() == w.String()
			if l.Bucket == b.Name && covers && (own < 0 || l.Units < own) {
				own = l.Units
			}
		}
		switch {
		case own >= 0:
			sum += own
		case !b.Required || slices.ContainsFunc(c.Limits,
			func(l quota.Limit) bool { return l.Bucket == b.Name }):
			return 0, false
		}
	}
	return sum, true
}

// endpoints reports upstreams that are stand-ins.
func (e *exam) endpoints() {
	var checked []string
	for _, c := range e.Config.Credentials {
		endpoint := e.Config.Endpoint(c.Upstream)
		u, err := url.Parse(endpoint)
		if err != nil || !local(u.Hostname()) || slices.Contains(checked, endpoint) {
			continue
		}
		checked = append(checked, endpoint)
		do := "remove endpoint from quota.yaml"
		if variable := "YOUTUBE_ENDPOINT"; slices.Contains(e.Config.Environment, variable) &&
			endpoint == e.Config.YouTube.Endpoint {
			do = "unset " + variable
		}
		e.add(Finding{Warning, "endpoint", "upstream " + c.Upstream, "its endpoint is " + endpoint +
			", on this machine", "a stand-in answers instead of the upstream",
			"once you are done with it, " + do})
	}
}

// prices checks the price lists of the credentials.
func (e *exam) prices() {
	var checked []string
	for _, c := range e.Config.Credentials {
		t := e.Config.Table(c)
		if slices.Contains(checked, t.Upstream) {
			continue
		}
		checked = append(checked, t.Upstream)
		about := "price list of " + t.Upstream
		if report.StalePrices(t, e.Now) {
			e.add(Finding{Warning, "price-age", about, "its newest price dates from " + t.Date,
				"upstreams change their prices",
				"compare it with the upstream's own page, and update " +
					cmp.Or(e.Config.CostsFile, "this program")})
		}
		if lacks := e.lacking(t); len(lacks) > 0 {
			e.add(Finding{Warning, "price-methods", about,
				fmt.Sprintf("it lacks %d methods of the upstream: %s", len(lacks),
					report.Few(lacks)),
				"a call of these has no price and is refused", "add them to " + e.Config.CostsFile})
		}
	}
}

// unlisted reports facts, such as models, of last week's calls without a row in the price list.
func (e *exam) unlisted(ctx context.Context) {
	now, err := e.Ledger.Time(ctx)
	if err != nil { // reported by entries
		return
	}
	for _, c := range e.Config.Credentials {
		if names := e.Unlisted(ctx, c.Name, now.AddDate(0, 0, -7)); len(names) > 0 {
			e.add(Finding{Warning, "price-unlisted", "credential " + c.Name, fmt.Sprintf(
				"calls of the last 7 days were priced by another row: the price list of %s "+
					"has no row for %s", e.Config.Table(c).Upstream, report.Few(names)),
				"a limit on money ends too early or too late",
				"add rows to a copy of the price list, and name it in quota.yaml: costs: FILE"})
		}
	}
}

// lacking returns the methods that the configured list lacks. The shipped list has them from the
// upstream's discovery document.
func (e *exam) lacking(own *costs.Table) (names []string) {
	if e.Config.CostsFile == "" || own.Service == "" {
		return nil
	}
	for _, name := range costs.Shipped().Upstreams() {
		shipped, err := costs.Shipped().Upstream(name)
		if err != nil || shipped.Service != own.Service {
			continue
		}
		for _, m := range shipped.Methods() {
			if _, err := own.Lookup(m.ID); err != nil {
				names = append(names, m.ID)
			}
		}
	}
	return names
}

// zones reports a system without time zones, which uses the zones of the program's build.
func (e *exam) zones() {
	for _, dir := range []string{"/usr/share/zoneinfo", "/usr/share/lib/zoneinfo",
		"/usr/lib/locale/TZ", "/etc/zoneinfo"} { // where package time looks
		if _, err := os.Stat(dir); err == nil {
			return
		}
	}
	e.add(Finding{Warning, "zones", "this host", "it has no time zone database",
		"the program uses the zones of its build; when a country changes its summer time, " +
			"windows end at the wrong hour", "install the package tzdata"})
}

// schedule plans the sweep and the jobs against the budget, if anything is scheduled.
func (e *exam) schedule(ctx context.Context) {
	if _, assumed, err := e.Assumed(ctx); err != nil || assumed {
		return
	}
	p, err := e.Plan(ctx, report.PlanQuery{Days: e.Days})
	if err != nil { // no sweep is configured, or the ledger is unreachable
		return
	}
	if lostRuns := p.Report.Counts.Lost(); lostRuns > 0 {
		e.add(Finding{Warning, "schedule", "the schedule", fmt.Sprintf(
			"%d of its %d runs in the next %d days will not get all their pages", lostRuns,
			p.Report.Counts.Runs, e.Days), "charts will be missing or cut short",
			"quotactl forecast shows when; ingestor plan --suggest finds a schedule that fits"})
	}
}
