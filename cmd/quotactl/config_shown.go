package main

import (
	"cmp"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/limit"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/words"
)

type object = cli.Object

// duration adds a duration as a text and in seconds.
func duration(o object, key string, d time.Duration) object {
	return append(o, key, d.String(), key+"_seconds", words.Seconds(d))
}

// shownConfig returns the configuration with the keys of quota.yaml, without secrets.
func shownConfig(cfg *config.Config) object {
	o := object{"file", words.OrNull(cfg.File), "environment", list(cfg.Environment),
		"ledger", config.HidePassword(cfg.Ledger), "catalog", cfg.Catalog,
		"costs", object{"file", words.OrNull(cfg.CostsFile), "profile", cfg.Costs.ProfileName(),
			"version", cfg.Costs.Version},
		"credentials", cli.Each(cfg.Credentials, shownCredential), "youtube", cfg.YouTube}
	job := func(j config.OwnJob) object { return shownJob(cfg, j) }
	o = o.NonEmpty("upstreams", cfg.Upstreams, "ingest", shownIngest(cfg),
		"jobs", cli.Each(cfg.Jobs, job))
	o = o.With("serve", shownServe(cfg.Serve), cfg.Serve.Configured)
	return o.With("notify", shownNotify(cfg.Notify), cfg.Notify.Set())
}

// list returns an empty list for nil, which JSON would write as null.
func list[T any](all []T) []T { return append([]T{}, all...) }

func shownCredential(c config.Credential) object {
	perLabel := cli.Each(c.PerLabel, func(l quota.LabelLimit) object {
		return append(shownLimit(l.Limit), "per", "label:"+l.Label).
			With("parts", l.Parts, len(l.Parts) > 0)
	})
	o := object{"name", c.Name, "api_key", shownKey(c.APIKey),
		"limits", append(cli.Each(c.Limits, shownLimit), perLabel...),
		"pace", shownPace(c.Pace), "mode", c.Mode(),
		"when_unreachable", object{"open", list(c.Open)}.NonEmpty("at_most", c.AtMost),
		"upstream", c.Upstream}
	o = o.With("admin_key", shownKey(c.AdminKey), c.AdminKey.Placed())
	account := object{"file", c.Account.File}.NonEmpty("endpoint", c.Account.Endpoint)
	o = o.With("service_account", account, c.Account.File != "")
	allow := cli.Each(c.Allow, func(a quota.LabelAllowance) object {
		return object{"label", a.Label + "=" + a.Value}.NonEmpty("methods", a.Methods,
			"models", a.Models, "most", a.Most)
	})
	return o.NonEmpty("project", c.Project, "allow", allow)
}

// shownKey returns the place of a key, and whether there is one; never the key.
func shownKey(s config.Secret) object {
	_, err := s.Key()
	return append(object{}.NonEmpty("env", s.Env, "file", s.File), "set", err == nil)
}

func shownLimit(l quota.Limit) object {
	return object{"bucket", l.Bucket, "units", l.Units, "headroom", l.Headroom,
		"window", l.Window.Text(), "timezone", words.OrNull(l.Window.ZoneName()),
	}.With("across", "all", l.Across).NonEmpty("mode", report.LimitMode(l))
}

// shownPace returns nil if units may be spent at any time of day.
func shownPace(p *config.Pace) any {
	if p == nil {
		return nil
	}
	curve := any("even")
	if len(p.Curve) > 0 {
		curve = p.Curve
	}
	return object{"curve", curve, "slack", fmt.Sprintf("%d%%", p.Slack)}
}

func shownIngest(cfg *config.Config) object {
	in, d := cfg.Ingest, cfg.Daemon
	o := object{"credential", words.OrNull(in.Credential), "regions", list(in.Regions),
		"pages", in.Pages, "parallel", in.Parallel, "schedule", in.Schedule,
		"timezone", in.Timezone.String()}
	if in.Stagger.Auto {
		o = append(o, "stagger", "auto", "stagger_seconds", nil)
	} else {
		o = duration(o, "stagger", in.Stagger.Step)
	}
	o = append(duration(o, "jitter", d.Jitter), "catch_up", d.CatchUp,
		"weights", cli.NonNil(d.Weights), "priorities", cli.NonNil(d.Priorities),
		"floors", cli.NonNil(d.Floors),
		"jobs", cli.Each(d.Jobs, func(j config.Job) object {
			return object{"name", j.Name, "regions", j.Regions, "schedule", j.Schedule,
				"timezone", j.Timezone.String(), "pages", j.Pages}
		}))
	return append(duration(duration(o, "lease", d.Lease), "grace", d.Grace), "listen", d.Listen)
}

// shownJob omits possible secrets: the values of variables, and the content of a request.
func shownJob(cfg *config.Config, j config.OwnJob) object {
	url, _, cut := strings.Cut(j.Request.URL, "?")
	if cut { // the query may contain a token
		url += "?…"
	}
	o := object{"name", j.Name}.NonEmpty("command", j.Command, "url", url,
		"elsewhere", j.Elsewhere, "method", j.Request.Method, "success", j.Request.Success)
	o = append(o, "schedule", j.Schedule, "timezone", j.Timezone.String())
	o = append(duration(duration(o, "jitter", j.Jitter), "timeout", j.Timeout),
		"cost", shownCosts(j.Cost.Costs), "learned", j.Cost.Learned)
	o = o.With("max", shownCost{j.Max.Bucket, j.Max.Units}, j.Max.Units > 0)
	pace := j.Pace
	if pace == nil && !j.Unpaced {
		cred, _ := cfg.Credential(j.Credential) // the file was checked
		pace = cred.Pace
	}
	o = append(o, "settle", j.Settle, "weight", j.Weight, "priority", j.Priority, "floor", j.Floor,
		"pace", shownPace(pace), "credential", j.Credential,
		"environment", list(slices.Sorted(maps.Keys(j.Environment))))
	o = o.NonEmpty("directory", j.Directory, "user", j.User)
	return append(o, "overlap", choose(j.Queue, "queue", "skip"), "retry", j.Retry,
		"catch_up", j.CatchUp)
}

func choose(condition bool, yes, no string) string {
	if condition {
		return yes
	}
	return no
}

// shownServe omits the hashes of keys.
func shownServe(s config.Serve) object {
	byName := func(a, b limit.APIKey) int { return cmp.Compare(a.Name, b.Name) }
	named := slices.SortedFunc(maps.Values(s.Known.Keys), byName)
	keys := cli.Each(named, func(k limit.APIKey) object {
		return object{"name", k.Name}.NonEmpty("organisation", k.Organisation, "tier", k.Tier)
	})
	limits, policies := []object{}, []object{}
	for _, l := range s.Limits {
		if l.By == limit.ByDecision {
			policies = append(policies, shownRule(l))
		} else {
			limits = append(limits, shownRule(l))
		}
	}
	return object{"listen", s.Listen, "public", s.Public, "token_file", words.OrNull(s.TokenFile),
		"hosts", list(s.Hosts), "store", choose(s.OnRedis, "redis", "memory"),
		"trusted_proxies", append([]netip.Prefix{}, s.Known.Proxies...), "keys", keys,
		"limits", limits, "policies", policies}
}

func shownRule(l limit.Rule) object {
	tiers := make(map[string]int64)
	for tier, p := range l.Tiers {
		tiers[tier] = p.Units
	}
	o := object{"name", l.Name}.With("per", l.By, l.By != limit.ByDecision)
	o = o.NonEmpty("route", l.Routes)
	o = duration(append(o, "requests", l.Units), "window", l.Window)
	o = append(o, "algorithm", l.Algorithm, "cost", l.Cost).NonEmpty("tiers", tiers)
	return append(o, "count_denied", l.CountDenied, "observe", l.Observe,
		"shards", max(l.Shards, 1), "when_unreachable", choose(l.Open, "open", "closed"))
}
