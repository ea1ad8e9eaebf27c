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
	"quotabudget/internal/words"
)

// Config is the configuration in force.
type Config struct {
	File        string       // that was read; "" when there is none
	Empty       bool         // the file says nothing
	Environment []string     // names of the variables that override it
	Ledger      string       // URL, which may hold a password: print HidePassword of it
	Catalog     string       // sqlite: URL
	StateDir    string       // where other files go; "" when no variable names a folder
	Prices      *costs.List  // of all upstreams
	Costs       *costs.Table // of the default upstream, in the profile chosen
	CostsFile   string       // their file; "" for the price lists that ship
	Upstreams   map[string]Upstream
	Credentials []Credential // at least one, of different names
	YouTube     YouTube
	Ingest      Ingest
	Daemon      Daemon
	Jobs        []OwnJob // besides the sweeps of a daemon
	Serve       Serve
	Notify      Notify
}

// Credential is the named owner of an upstream quota, and how it is spent.
type Credential struct {
	Name     string
	Upstream string // whose quota it is
	APIKey   Secret
	AdminKey Secret // reads the upstream's own count
	Account  ServiceAccount
	Project  string        // "" for that of the account, or none
	Limits   []quota.Limit // at least one
	PerLabel []quota.LabelLimit
	Allow    []quota.LabelAllowance
	Observe  bool     // mode: observe
	Open     []string // methods that pass when the ledger cannot be reached
	AtMost   int64    // units of each bucket that a host may spend so; 0 for no bound
	Pace     *Pace    // nil: units may be spent at any time of the day
}

// Mode is the word of the configuration for Observe.
func (c Credential) Mode() string {
	if c.Observe {
		return modeObserve
	}
	return modeEnforce
}

// Budget is the gate in front of the credential's quota, on an open ledger.
func (c Credential) Budget(l quota.BudgetLedger, table *costs.Table, log *slog.Logger) *quota.Budget {
	prices := make(map[string][]quota.Cost)
	for _, m := range table.Methods() {
		if m.Known() {
			prices[m.ID] = m.Costs
		}
	}
	b := &quota.Budget{
		Ledger: l, Credential: c.Name, Limits: c.Limits, PerLabel: c.PerLabel, Allow: c.Allow, Paces: c.Pace.lines(c.Limits),
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

// YouTube is where the upstream answers.
type YouTube struct {
	Endpoint string `json:"endpoint"` // URL that ends in a slash
}

// Ingest is what a sweep fetches, and when.
type Ingest struct {
	Credential string           // "" when there are several and none was chosen
	Regions    []regions.Region `yaml:"-"` // each once
	Pages      int              // of each chart, at most; 1 or more
	Parallel   int              // regions that ingestor once reads side by side; 1 or more
	Schedule   string           // cron spec, as robfig/cron reads it
	Timezone   *time.Location   `yaml:"-"` // of the schedule
	Stagger    time.Duration    `yaml:"-"` // between the regions' beginnings; 0 for none
	Scheduled  bool             `yaml:"-"` // the file has ingest:, or a daemon reads it
}

// The defaults of Ingest and YouTube.
const (
	DefaultEndpoint = "https://youtube.googleapis.com/"
	DefaultPages    = 4
	DefaultParallel = 4
	DefaultSchedule = "0 */3 * * *"
	DefaultStagger  = 5 * time.Minute
)

// DefaultRegions are the regions of a sweep when none are configured.
func DefaultRegions() []regions.Region {
	return []regions.Region{"US", "GB", "DE", "FR", "IN", "BR", "AU", "CA"}
}

// DefaultCredential is the name of the credential where none is configured.
const DefaultCredential = "default"

// KeyVariable is the environment variable that holds the key of DefaultCredential.
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

// Load reads the configuration that a program finds without --config, or the file at path.
func Load(ctx context.Context, path string, getenv func(string) string) (*Config, error) {
	return Search{Path: path, Getenv: getenv}.Load(ctx)
}

// Load reads the file that the search finds, if there is one. The environment overrides it, and
// defaults fill it up. Every error is an *Error with all problems at once, except when ctx ends,
// which ends the wait for a file that is a pipe.
func (s Search) Load(ctx context.Context) (*Config, error) {
	r := newReader(s.Getenv)
	if err := r.open(ctx, s); err != nil {
		return nil, err
	}
	return r.read(ctx)
}

func newReader(getenv func(string) string) *reader {
	return &reader{getenv: getenv, cfg: &Config{
		YouTube: YouTube{Endpoint: DefaultEndpoint},
		Ingest: Ingest{
			Regions: DefaultRegions(), Pages: DefaultPages, Parallel: DefaultParallel,
			Schedule: DefaultSchedule, Timezone: time.UTC, Stagger: DefaultStagger,
		},
		Daemon: defaultDaemon(),
		Serve:  Serve{Listen: DefaultServe},
	}, buckets: make(map[string]map[string]costs.Bucket), credentials: make(map[string]bool),
		jobNames: make(map[string]bool), jobOf: make(map[regions.Region]string)}
}

func (r *reader) read(ctx context.Context) (*Config, error) {
	jobs := r.configure(ctx)
	if ctx.Err() != nil { // while it waited for the price list
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
		return nil, &Error{problems}
	}
	return r.cfg, nil
}

func (r *reader) defaults() {
	c := r.cfg
	if len(c.Credentials) == 0 {
		c.Credentials = []Credential{{Name: DefaultCredential}}
	}
	for i := range c.Credentials {
		c.Credentials[i].APIKey = r.keyOf(c.Credentials[i])
		if c.Prices == nil {
			continue
		}
		table := c.Table(c.Credentials[i])
		c.Credentials[i].Upstream = table.Upstream
		c.Credentials[i].Limits = limitsOf(c.Credentials[i], table)
	}
	r.usualCredential()
}

// limitsOf are the limits of a credential: those configured, else those of the list. Where other
// buckets need no limit, one that is required has the list's own if none is configured.
func limitsOf(c Credential, table *costs.Table) []quota.Limit {
	if c.Limits != nil && !table.Unlimited() {
		return c.Limits
	}
	limits := c.Limits
	for _, l := range table.DefaultLimits() {
		is := func(own quota.Limit) bool { return own.Bucket == l.Bucket }
		if !slices.ContainsFunc(c.Limits, is) {
			limits = append(limits, l)
		}
	}
	return limits
}

// usualCredential chooses the only one of the default upstream, where none is chosen.
func (r *reader) usualCredential() {
	c := r.cfg
	if c.Ingest.Credential != "" || c.Costs == nil {
		return
	}
	var usual []string
	for _, cred := range c.Credentials {
		if cred.Upstream == c.Costs.Upstream {
			usual = append(usual, cred.Name)
		}
	}
	if len(usual) == 1 {
		c.Ingest.Credential = usual[0]
	}
}

// keyOf is where the credential's key is; DefaultCredential has a default for it.
func (r *reader) keyOf(c Credential) Secret {
	switch {
	case c.APIKey.Placed():
		return c.APIKey
	case c.Name == DefaultCredential:
		return EnvSecret(KeyVariable, r.getenv)
	}
	return Secret{owner: c.Name}
}
