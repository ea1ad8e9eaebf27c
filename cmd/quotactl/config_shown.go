package main

import (
	"cmp"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"quotabudget/internal/config"
	"quotabudget/internal/limit"
	"quotabudget/internal/words"
)

// ownJobShown is a job without what may be secret: the values of its variables, and what a request
// carries.
type ownJobShown struct {
	Name        string      `json:"name"`
	Command     []string    `json:"command,omitempty"`
	URL         string      `json:"url,omitempty"`
	Elsewhere   string      `json:"elsewhere,omitempty"`
	Method      string      `json:"method,omitempty"`
	Success     []int       `json:"success,omitempty"`
	Schedule    string      `json:"schedule"`
	Timezone    string      `json:"timezone"`
	Jitter      string      `json:"jitter"`
	JitterS     int64       `json:"jitter_seconds"`
	Timeout     string      `json:"timeout"`
	TimeoutS    int64       `json:"timeout_seconds"`
	Cost        []shownCost `json:"cost"`
	Learned     bool        `json:"learned"`
	Max         *shownCost  `json:"max,omitempty"`
	Settle      string      `json:"settle"`
	Weight      int64       `json:"weight"`
	Priority    int64       `json:"priority"`
	Floor       int64       `json:"floor"`
	Pace        *paceShown  `json:"pace"`
	Credential  string      `json:"credential"`
	Environment []string    `json:"environment"`
	Directory   string      `json:"directory,omitempty"`
	User        string      `json:"user,omitempty"`
	Overlap     string      `json:"overlap"`
	Retry       int         `json:"retry"`
	CatchUp     bool        `json:"catch_up"`
}

func newOwnJobs(cfg *config.Config) (shown []ownJobShown) {
	for _, j := range cfg.Jobs {
		out := ownJobShown{
			Name: j.Name, Command: j.Command, URL: withoutQuery(j.Request.URL),
			Elsewhere: j.Elsewhere,
			Method:    j.Request.Method, Success: j.Request.Success, Schedule: j.Schedule, Timezone: j.Timezone.String(),
			Jitter: j.Jitter.String(), JitterS: words.Seconds(j.Jitter),
			Timeout: j.Timeout.String(), TimeoutS: words.Seconds(j.Timeout),
			Cost: shownCosts(j.Cost.Costs), Learned: j.Cost.Learned, Settle: j.Settle,
			Weight: j.Weight, Priority: j.Priority, Floor: j.Floor, Pace: paceOf(cfg, j),
			Credential: j.Credential, Directory: j.Directory, User: j.User, Overlap: "skip",
			Environment: append([]string{}, slices.Sorted(maps.Keys(j.Environment))...),
			Retry:       j.Retry, CatchUp: j.CatchUp,
		}
		if j.Max.Units > 0 {
			out.Max = &shownCost{j.Max.Bucket, j.Max.Units}
		}
		if j.Queue {
			out.Overlap = "queue"
		}
		shown = append(shown, out)
	}
	return shown
}

// paceOf returns the pace of a job, by default that of its credential.
func paceOf(cfg *config.Config, j config.OwnJob) *paceShown {
	if j.Pace != nil || j.Unpaced {
		return newPace(j.Pace)
	}
	cred, _ := cfg.Credential(j.Credential) // the file was checked
	return newPace(cred.Pace)
}

// withoutQuery leaves out where a token may be.
func withoutQuery(url string) string {
	if before, _, cut := strings.Cut(url, "?"); cut {
		return before + "?…"
	}
	return url
}

// serveShown is the section serve of the configuration in force.
type serveShown struct {
	Listen    string         `json:"listen"`
	Public    bool           `json:"public"`
	TokenFile *string        `json:"token_file"`
	Hosts     []string       `json:"hosts"`
	Store     string         `json:"store"`
	Proxies   []netip.Prefix `json:"trusted_proxies"`
	Keys      []callerShown  `json:"keys"` // without their hashes
	Limits    []guardShown   `json:"limits"`
	Policies  []guardShown   `json:"policies"`
}

type callerShown struct {
	Name         string `json:"name"`
	Organisation string `json:"organisation,omitempty"`
	Tier         string `json:"tier,omitempty"`
}

// guardShown is a limit on callers, or a policy for decisions, which has no per.
type guardShown struct {
	Name            string           `json:"name"`
	Per             limit.By         `json:"per,omitempty"`
	Route           []string         `json:"route,omitempty"`
	Requests        int64            `json:"requests"`
	Window          string           `json:"window"`
	WindowS         int64            `json:"window_seconds"`
	Algorithm       limit.Algorithm  `json:"algorithm"`
	Cost            int64            `json:"cost"`
	Tiers           map[string]int64 `json:"tiers,omitempty"`
	CountDenied     bool             `json:"count_denied"`
	Observe         bool             `json:"observe"`
	Shards          int              `json:"shards"`
	WhenUnreachable string           `json:"when_unreachable"`
}

// newServe returns the section serve in JSON; nil if it is not configured.
func newServe(s config.Serve) *serveShown {
	if !s.Configured {
		return nil
	}
	out := &serveShown{Listen: s.Listen, Public: s.Public, TokenFile: words.OrNull(s.TokenFile),
		Hosts: append([]string{}, s.Hosts...), Store: "memory",
		Proxies: append([]netip.Prefix{}, s.Known.Proxies...),
		Keys:    []callerShown{}, Limits: []guardShown{}, Policies: []guardShown{}}
	if s.OnRedis {
		out.Store = "redis"
	}
	byName := func(a, b limit.APIKey) int { return cmp.Compare(a.Name, b.Name) }
	for _, k := range slices.SortedFunc(maps.Values(s.Known.Keys), byName) {
		out.Keys = append(out.Keys, callerShown(k))
	}
	for _, l := range s.Limits {
		if shown := newGuard(l); l.By == limit.ByDecision {
			shown.Per = ""
			out.Policies = append(out.Policies, shown)
		} else {
			out.Limits = append(out.Limits, shown)
		}
	}
	return out
}

func newGuard(l limit.Rule) guardShown {
	out := guardShown{Name: l.Name, Per: l.By, Route: l.Routes, Requests: l.Units,
		Window: l.Window.String(), WindowS: words.Seconds(l.Window), Algorithm: l.Algorithm,
		Cost: l.Cost, Tiers: make(map[string]int64), CountDenied: l.CountDenied,
		Observe: l.Observe, Shards: max(l.Shards, 1), WhenUnreachable: "closed"}
	if l.Open {
		out.WhenUnreachable = "open"
	}
	for tier, p := range l.Tiers {
		out.Tiers[tier] = p.Units
	}
	return out
}
