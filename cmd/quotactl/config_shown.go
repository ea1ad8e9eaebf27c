package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"net/netip"
	"reflect"
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

// nonEmpty adds the pairs of a key and a value whose value is not empty.
func (o object) nonEmpty(pairs ...any) object {
	for i := 0; i < len(pairs); i += 2 {
		v := reflect.ValueOf(pairs[i+1])
		isList := v.Kind() == reflect.Slice || v.Kind() == reflect.Map
		o = o.with(pairs[i].(string), pairs[i+1], !v.IsZero() && !(isList && v.Len() == 0))
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
	job := func(j config.OwnJob) object { return shownJob(cfg, j) }
	o = o.nonEmpty("upstreams", cfg.Upstreams, "ingest", shownIngest(cfg), "jobs", each(cfg.Jobs, job))
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
		"when_unreachable", object{"open", list(c.Open)}.nonEmpty("at_most", c.AtMost),
		"upstream", c.Upstream}
	o = o.with("admin_key", shownKey(c.AdminKey), c.AdminKey.Placed())
	account := object{"file", c.Account.File}.nonEmpty("endpoint", c.Account.Endpoint)
	o = o.with("service_account", account, c.Account.File != "")
	allow := each(c.Allow, func(a quota.LabelAllowance) object {
		return object{"label", a.Label + "=" + a.Value}.nonEmpty("methods", a.Methods,
			"models", a.Models, "most", a.Most)
	})
	return o.nonEmpty("project", c.Project, "allow", allow)
}

// shownKey returns the place of a key, and whether there is one; never the key.
func shownKey(s config.Secret) object {
	_, err := s.Key()
	return append(object{}.nonEmpty("env", s.Env, "file", s.File), "set", err == nil)
}

func shownLimit(l quota.Limit) object {
	return object{"bucket", l.Bucket, "units", l.Units, "headroom", l.Headroom,
		"window", l.Window.Text(), "timezone", words.OrNull(l.Window.ZoneName()),
	}.with("across", "all", l.Across).nonEmpty("mode", report.LimitMode(l))
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
		o = o.duration("stagger", in.Stagger.Step)
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
	url, _, cut := strings.Cut(j.Request.URL, "?")
	if cut { // the query may contain a token
		url += "?…"
	}
	o := object{"name", j.Name}.nonEmpty("command", j.Command, "url", url,
		"elsewhere", j.Elsewhere, "method", j.Request.Method, "success", j.Request.Success)
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
	o = o.nonEmpty("directory", j.Directory, "user", j.User)
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
	keys := each(slices.SortedFunc(maps.Values(s.Known.Keys), byName), func(k limit.APIKey) object {
		return object{"name", k.Name}.nonEmpty("organisation", k.Organisation, "tier", k.Tier)
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
	o := object{"name", l.Name}.with("per", l.By, l.By != limit.ByDecision).nonEmpty("route", l.Routes)
	o = append(o, "requests", l.Units).duration("window", l.Window)
	o = append(o, "algorithm", l.Algorithm, "cost", l.Cost).nonEmpty("tiers", tiers)
	return append(o, "count_denied", l.CountDenied, "observe", l.Observe,
		"shards", max(l.Shards, 1), "when_unreachable", choose(l.Open, "open", "closed"))
}
