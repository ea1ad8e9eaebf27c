// Package config reads quota.yaml, the environment and the defaults into plain structs.
package config

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/regions"
	"quotabudget/internal/schedule"
	"quotabudget/internal/words"
)

// Config is the configuration of a process.
type Config struct {
	File        string       // path of the file read; "" if there is none
	Empty       bool         // the file sets nothing
	Environment []string     // names of the variables that override the file
	Ledger      string       // URL, which may contain a password: print HidePassword(Ledger)
	Catalog     string       // sqlite: URL
	StateDir    string       // folder of other files; "" if no variable names one
	Prices      *costs.List  // of all upstreams
	Costs       *costs.Table // of the default upstream, in its chosen profile
	CostsFile   string       // its path; "" for the built-in price lists
	Upstreams   map[string]Upstream
	Credentials []Credential // at least one, with distinct names
	YouTube     Upstream
	Ingest      Ingest
	Daemon      Daemon
	Jobs        []OwnJob // in addition to a daemon's sweeps
	Serve       Serve
	Notify      Notify
}

// Credential is the named owner of an upstream quota, and how it is spent.
type Credential struct {
	Name     string
	Upstream string         // the upstream of the quota
	APIKey   Secret         `yaml:"api_key"`
	AdminKey Secret         `yaml:"admin_key"` // reads the upstream's own usage figures
	Account  ServiceAccount `yaml:"service_account"`
	Project  string         // "" for the project of the account, or none
	Pace     *Pace          // nil if units may be spent at any time of day

	Limits   []quota.Limit          `yaml:"-"` // at least one
	PerLabel []quota.LabelLimit     `yaml:"-"`
	Allow    []quota.LabelAllowance `yaml:"-"`
	Observe  bool                   `yaml:"-"` // mode: observe
	Open     []string               `yaml:"-"` // methods allowed while the ledger is away
	// AtMost is the maximum units per bucket that a host may spend while the ledger is away; 0
	// means no maximum.
	AtMost int64 `yaml:"-"`
}

// Mode returns the configuration's word for Observe.
func (c Credential) Mode() string {
	if c.Observe {
		return modeObserve
	}
	return "enforce"
}

// Budget returns the gate in front of the credential's quota, on an open ledger.
func (c Credential) Budget(l quota.BudgetLedger, table *costs.Table,
	log *slog.Logger) *quota.Budget {
	prices := make(map[string][]quota.Cost)
	for _, m := range table.Methods() {
		if m.Known() {
			prices[m.ID] = m.Costs
		}
	}
	b := &quota.Budget{
		Ledger: l, Credential: c.Name, Limits: c.Limits, PerLabel: c.PerLabel,
		Allow: c.Allow, Paces: c.Pace.lines(c.Limits),
		Prices: prices, Unlimited: table.Unlimited(), Observe: c.Observe,
		Open: c.Open, AtMost: c.AtMost, Log: log,
	}
	for _, bucket := range table.Buckets() {
		if len(bucket.Split) > 0 {
			b.Split = append(b.Split, bucket.Name)
		}
	}
	return b
}

// Ingest configures what a sweep fetches, and when.
type Ingest struct {
	Credential string           // "" if several exist and none is chosen
	Regions    []regions.Region `yaml:"-"` // without duplicates
	Pages      int              // maximum pages per chart; at least 1
	Parallel   int              // regions that ingestor once reads in parallel; at least 1
	Schedule   string           // cron spec, as robfig/cron reads it
	Timezone   *time.Location   `yaml:"-"` // of the schedule
	Stagger    schedule.Stagger `yaml:"-"` // between the starts of regions
	Scheduled  bool             `yaml:"-"` // the file has ingest:, or a daemon reads it
}

// DefaultCredential is the name of the credential if none is configured.
const DefaultCredential = "default"

// KeyVariable is the environment variable that contains the key of DefaultCredential.
const KeyVariable = "YOUTUBE_API_KEY"

// Credential finds a credential by its name; "" means the only one.
func (c *Config) Credential(name string) (Credential, error) {
	var names []string
	for _, cred := range c.Credentials {
		if cred.Name == name || name == "" && len(c.Credentials) == 1 {
			return cred, nil
		}
		names = append(names, cred.Name)
	}
	if name == "" {
		return Credential{}, fmt.Errorf("several credentials are configured: %s",
			strings.Join(names, ", "))
	}
	return Credential{}, fmt.Errorf("no credential %q%s; configured: %s", name,
		words.DidYouMean(name, names), strings.Join(names, ", "))
}

// Load reads the file at path or, without --config, the file that Search finds.
func Load(ctx context.Context, path string, getenv func(string) string) (*Config, error) {
	return Search{Path: path, Getenv: getenv}.Load(ctx)
}

// Load reads the file that the search finds, if any. The environment overrides it, and defaults
// fill the gaps. Every error is an *Error with all problems, unless ctx ends while Load waits for a
// pipe.
func (s Search) Load(ctx context.Context) (*Config, error) {
	r := &reader{getenv: s.Getenv, cfg: &Config{
		YouTube: Upstream{Endpoint: "https://youtube.googleapis.com/"},
		Ingest: Ingest{
			Regions: []regions.Region{"US", "GB", "DE", "FR", "IN", "BR", "AU", "CA"},
			Pages:   4, Parallel: 4, Schedule: "0 */3 * * *", Timezone: time.UTC,
			Stagger: schedule.Stagger{Step: 5 * time.Minute},
		},
		Daemon: Daemon{CatchUp: true, Lease: 2 * time.Minute, Grace: 20 * time.Second,
			Listen: DefaultListen},
		Serve: Serve{Listen: DefaultServe},
	}, credentials: make(map[string]bool),
		jobNames: make(map[string]bool), jobOf: make(map[regions.Region]string)}
	if err := r.open(ctx, s); err != nil {
		return nil, err
	}
	jobs := r.configure(ctx)
	if ctx.Err() != nil { // while waiting for the price list
		return nil, context.Cause(ctx)
	}
	r.cfg.Empty = r.cfg.File != "" && r.file.Empty()
	r.environment()
	r.defaults()
	for i, j := range jobs {
		r.cfg.Jobs = append(r.cfg.Jobs, r.ownJob(j, r.file.Top().Key("jobs").Item(i)))
	}
	r.stateDefaults()
	if problems := r.allProblems(); len(problems) > 0 {
		return nil, &Error{Problems: problems}
	}
	return r.cfg, nil
}

// defaults fills in what the credentials leave out. Only DefaultCredential has a default place for
// its key. If ingest names no credential, sweeps spend from the only one of the default upstream.
func (r *reader) defaults() {
	c := r.cfg
	if len(c.Credentials) == 0 {
		c.Credentials = []Credential{{Name: DefaultCredential}}
	}
	var usual []string
	for i := range c.Credentials {
		cred := &c.Credentials[i]
		switch {
		case cred.APIKey.Placed():
		case cred.Name == DefaultCredential:
			cred.APIKey = Secret{Env: KeyVariable, getenv: r.getenv}
		default:
			cred.APIKey = Secret{owner: cred.Name}
		}
		if c.Prices == nil {
			continue
		}
		table := c.Table(*cred)
		cred.Upstream, cred.Limits = table.Upstream, limitsOf(*cred, table)
		if cred.Upstream == c.Costs.Upstream {
			usual = append(usual, cred.Name)
		}
	}
	if c.Ingest.Credential == "" && len(usual) == 1 {
		c.Ingest.Credential = usual[0]
	}
}

// limitsOf returns a credential's limits: the configured ones, otherwise the price list's. A bucket
// that requires a limit gets the list's own if none is configured.
func limitsOf(c Credential, table *costs.Table) []quota.Limit {
	if c.Limits != nil && !table.Unlimited() {
		return c.Limits
	}
	limits := c.Limits
	for _, l := range table.DefaultLimits() {
		matches := func(own quota.Limit) bool { return own.Bucket == l.Bucket }
		if !slices.ContainsFunc(c.Limits, matches) {
			limits = append(limits, l)
		}
	}
	return limits
}
