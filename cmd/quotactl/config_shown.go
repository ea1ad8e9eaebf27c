package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/config"
	"quotabudget/internal/limit"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/words"
)

// object is a JSON object: keys and values alternate.
type object []any

// MarshalJSON implements json.Marshaler.
func (o object) MarshalJSON() ([]byte, error) {
	var out bytes.Buffer
	to := json.NewEncoder(&out)
	to.SetEscapeHTML(false)
	out.WriteByte('{')
	for i, part := range o {
		switch {
		case i%2 == 1:
			out.WriteByte(':')
		case i > 0:
			out.WriteByte(',')
		}
		if err := to.Encode(part); err != nil {
			return nil, err
		}
	}
	out.WriteByte('}')
	return out.Bytes(), nil
}

// with adds a key if it has a value.
func (o object) with(key string, value any, has bool) object {
	if has {
		return append(o, key, value)
	}
	return o
}

// duration adds a duration as a text and in seconds.
func (o object) duration(key string, d time.Duration) object {
	return append(o, key, d.String(), key+"_seconds", words.Seconds(d))
}

// shownConfig returns the configuration with the keys of quota.yaml, without secrets.
func shownConfig(cfg *config.Config) object {
	o := object{"file", words.OrNull(cfg.File), "environment", list(cfg.Environment),
		"ledger", config.HidePassword(cfg.Ledger), "catalog", cfg.Catalog,
		"costs", object{"file", words.OrNull(cfg.CostsFile), "profile", cfg.Costs.ProfileName(),
			"version", cfg.Costs.Version},
		"credentials", each(cfg.Credentials, shownCredential), "youtube", cfg.YouTube}
	o = o.with("upstreams", cfg.Upstreams, len(cfg.Upstreams) > 0)
	o = append(o, "ingest", shownIngest(cfg))
	job := func(j config.OwnJob) object { return shownJob(cfg, j) }
	o = o.with("jobs", each(cfg.Jobs, job), len(cfg.Jobs) > 0)
	o = o.with("serve", shownServe(cfg.Serve), cfg.Serve.Configured)
	return o.with("notify", shownNotify(cfg.Notify), cfg.Notify.Set())
}

// list returns an empty list for nil, which JSON would write as null.
func list[T any](all []T) []T { return append([]T{}, all...) }

// orEmpty returns an empty map for nil.
func orEmpty[K comparable, V any](m map[K]V) map[K]V {
	if m == nil {
		m = map[K]V{}
	}
	return m
}

func each[T any](all []T, show func(T) object) []object {
	shown := []object{}
	for _, one := range all {
		shown = append(shown, show(one))
	}
	return shown
}

func shownCredential(c config.Credential) object {
	perLabel := each(c.PerLabel, func(l quota.LabelLimit) object {
		return append(shownLimit(l.Limit), "per", "label:"+l.Label).
			with("parts", l.Parts, len(l.Parts) > 0)
	})
	o := object{"name", c.Name, "api_key", shownKey(c.APIKey),
		"limits", append(each(c.Limits, shownLimit), perLabel...),
		"pace", shownPace(c.Pace), "mode", c.Mode(),
		"when_unreachable", object{"open", list(c.Open)}.with("at_most", c.AtMost, c.AtMost > 0),
		"upstream", c.Upstream}
	o = o.with("admin_key", shownKey(c.AdminKey), c.AdminKey.Placed())
	account := object{"file", c.Account.File}
	o = o.with("service_account",
		account.with("endpoint", c.Account.Endpoint, c.Account.Endpoint != ""), c.Account.File != "")
	o = o.with("project", c.Project, c.Project != "")
	return o.with("allow", each(c.Allow, shownAllowed), len(c.Allow) > 0)
}

func shownAllowed(a quota.LabelAllowance) object {
	o := object{"label", a.Label + "=" + a.Value}.with("methods", a.Methods, len(a.Methods) > 0)
	o = o.with("models", a.Models, len(a.Models) > 0)
	return o.with("most", a.Most, len(a.Most) > 0)
}

// shownKey returns the place of a key, and whether there is one; never the key.
func shownKey(s config.Secret) object {
	_, err := s.Key()
	o := object{}.with("env", s.Env, s.Env != "").with("file", s.File, s.File != "")
	return append(o, "set", err == nil)
}

func shownLimit(l quota.Limit) object {
	mode := report.LimitMode(l)
	return object{"bucket", l.Bucket, "units", l.Units, "headroom", l.Headroom,
		"window", l.Window.Text(), "timezone", words.OrNull(l.Window.ZoneName()),
	}.with("across", "all", l.Across).with("mode", mode, mode != "")
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
	if d.StaggerAuto {
		o = append(o, "stagger", "auto", "stagger_seconds", nil)
	} else {
		o = o.duration("stagger", in.Stagger)
	}
	o = append(o.duration("jitter", d.Jitter), "catch_up", d.CatchUp, "weights", orEmpty(d.Weights),
		"priorities", orEmpty(d.Priorities), "floors", orEmpty(d.Floors),
		"jobs", each(d.Jobs, func(j config.Job) object {
			return object{"name", j.Name, "regions", j.Regions, "schedule", j.Schedule,
				"timezone", j.Timezone.String(), "pages", j.Pages}
		}))
	return append(o.duration("lease", d.Lease).duration("grace", d.Grace), "listen", d.Listen)
}

// shownJob omits possible secrets: the values of variables, and the content of a request.
func shownJob(cfg *config.Config, j config.OwnJob) object {
	o := object{"name", j.Name}.with("command", j.Command, len(j.Command) > 0)
	o = o.with("url", withoutQuery(j.Request.URL), j.Request.URL != "")
	o = o.with("elsewhere", j.Elsewhere, j.Elsewhere != "")
	o = o.with("method", j.Request.Method, j.Request.Method != "")
	o = o.with("success", j.Request.Success, len(j.Request.Success) > 0)
	o = append(o, "schedule", j.Schedule, "timezone", j.Timezone.String())
	o = append(o.duration("jitter", j.Jitter).duration("timeout", j.Timeout),
		"cost", shownCosts(j.Cost.Costs), "learned", j.Cost.Learned)
	o = o.with("max", shownCost{j.Max.Bucket, j.Max.Units}, j.Max.Units > 0)
	pace := j.Pace
	if pace == nil && !j.Unpaced {
		cred, _ := cfg.Credential(j.Credential) // the file was checked
		pace = cred.Pace
	}
	o = append(o, "settle", j.Settle, "weight", j.Weight, "priority", j.Priority, "floor", j.Floor,
		"pace", shownPace(pace), "credential", j.Credential,
		"environment", list(slices.Sorted(maps.Keys(j.Environment))))
	o = o.with("directory", j.Directory, j.Directory != "").with("user", j.User, j.User != "")
	return append(o, "overlap", choose(j.Queue, "queue", "skip"), "retry", j.Retry,
		"catch_up", j.CatchUp)
}

func choose(condition bool, yes, no string) string {
	if condition {
		return yes
	}
	return no
}

// withoutQuery removes the part of a URL that may contain a token.
func withoutQuery(url string) string {
	if before, _, cut := strings.Cut(url, "?"); cut {
		return before + "?…"
	}
	return url
}

// shownServe omits the hashes of keys.
func shownServe(s config.Serve) object {
	byName := func(a, b limit.APIKey) int { return cmp.Compare(a.Name, b.Name) }
	keys := each(slices.SortedFunc(maps.Values(s.Known.Keys), byName), func(k limit.APIKey) object {
		return object{"name", k.Name}.with("organisation", k.Organisation, k.Organisation != "").
			with("tier", k.Tier, k.Tier != "")
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
	o := object{"name", l.Name}.with("per", l.By, l.By != limit.ByDecision)
	o = o.with("route", l.Routes, len(l.Routes) > 0)
	o = append(o, "requests", l.Units).duration("window", l.Window)
	o = append(o, "algorithm", l.Algorithm, "cost", l.Cost).with("tiers", tiers, len(tiers) > 0)
	return append(o, "count_denied", l.CountDenied, "observe", l.Observe,
		"shards", max(l.Shards, 1), "when_unreachable", choose(l.Open, "open", "closed"))
}
