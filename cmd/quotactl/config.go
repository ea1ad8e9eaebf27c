package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"quotabudget"
	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/quota"
	"quotabudget/internal/regions"
	"quotabudget/internal/report"
	"quotabudget/internal/serve"
	"quotabudget/internal/words"
)

// inForce is the configuration as it is printed: the keys of quota.yaml, and where they come from.
type inForce struct {
	File        *string        `json:"file"`
	Environment []string       `json:"environment"`
	Ledger      string         `json:"ledger"`
	Catalog     string         `json:"catalog"`
	Costs       costsShown     `json:"costs"`
	Credentials []credential   `json:"credentials"`
	YouTube     config.YouTube `json:"youtube"`

	Upstreams map[string]config.Upstream `json:"upstreams,omitempty"`
	Ingest    ingestShown                `json:"ingest"`
	Jobs      []ownJobShown              `json:"jobs,omitempty"`
	Serve     *serveShown                `json:"serve,omitempty"`
	Notify    *notifyShown               `json:"notify,omitempty"`
}

type costsShown struct {
	File    *string `json:"file"`
	Profile string  `json:"profile"`
	Version string  `json:"version"`
}

type credential struct {
	Name            string              `json:"name"`
	APIKey          keyShown            `json:"api_key"`
	Limits          []limitShown        `json:"limits"`
	Pace            *paceShown          `json:"pace"`
	Mode            string              `json:"mode"`
	WhenUnreachable map[string][]string `json:"when_unreachable"`
	Upstream        string              `json:"upstream"`
	AdminKey        *keyShown           `json:"admin_key,omitempty"`
	Account         *accountShown       `json:"service_account,omitempty"`
	Project         string              `json:"project,omitempty"`
	Allow           []allowShown        `json:"allow,omitempty"`
}

type allowShown struct {
	Label   string           `json:"label"`
	Methods []string         `json:"methods,omitempty"`
	Models  []string         `json:"models,omitempty"`
	Most    map[string]int64 `json:"most,omitempty"`
}

// accountShown says where the key of a service account is; never what it is.
type accountShown struct {
	File     string `json:"file"`
	Endpoint string `json:"endpoint,omitempty"`
}

// keyShown says where the key is, and whether there is one; never what it is.
type keyShown struct {
	Env  string `json:"env,omitempty"`
	File string `json:"file,omitempty"`
	Set  bool   `json:"set"`
}

type limitShown struct {
	Bucket   string  `json:"bucket"`
	Units    int64   `json:"units"`
	Headroom int64   `json:"headroom"`
	Window   string  `json:"window"`
	Timezone *string `json:"timezone"`
	Across   string  `json:"across,omitempty"`
	Mode     string  `json:"mode,omitempty"`
	Per      string  `json:"per,omitempty"`

	Parts map[string]int64 `json:"parts,omitempty"`
}

func newLimitShown(l quota.Limit) limitShown {
	limit := limitShown{Bucket: l.Bucket, Units: l.Units, Headroom: l.Headroom,
		Window: l.Window.Text(), Timezone: words.OrNull(l.Window.ZoneName()),
		Mode: report.LimitMode(l)}
	if l.Across {
		limit.Across = "all"
	}
	return limit
}

// paceShown is null where units may be spent at any time of the day.
type paceShown struct {
	Curve any    `json:"curve"` // even, or 24 weights
	Slack string `json:"slack"`
}

type ingestShown struct {
	Credential *string                  `json:"credential"`
	Regions    []regions.Region         `json:"regions"`
	Pages      int                      `json:"pages"`
	Parallel   int                      `json:"parallel"`
	Schedule   string                   `json:"schedule"`
	Timezone   string                   `json:"timezone"`
	Stagger    string                   `json:"stagger"`
	StaggerS   *int64                   `json:"stagger_seconds"` // null for "auto"
	Jitter     string                   `json:"jitter"`
	JitterS    int64                    `json:"jitter_seconds"`
	CatchUp    bool                     `json:"catch_up"`
	Weights    map[regions.Region]int64 `json:"weights"`
	Priorities map[regions.Region]int64 `json:"priorities"`
	Floors     map[regions.Region]int64 `json:"floors"`
	Jobs       []jobShown               `json:"jobs"`
	Lease      string                   `json:"lease"`
	LeaseS     int64                    `json:"lease_seconds"`
	Grace      string                   `json:"grace"`
	GraceS     int64                    `json:"grace_seconds"`
	Listen     string                   `json:"listen"`
}

type jobShown struct {
	Name     string           `json:"name"`
	Regions  []regions.Region `json:"regions"`
	Schedule string           `json:"schedule"`
	Timezone string           `json:"timezone"`
	Pages    int              `json:"pages"`
}

func newIngest(cfg *config.Config) ingestShown {
	in, d := cfg.Ingest, cfg.Daemon
	out := ingestShown{
		Credential: words.OrNull(in.Credential),
		Regions:    append([]regions.Region{}, in.Regions...),
		Pages:      in.Pages, Parallel: in.Parallel,
		Schedule: in.Schedule, Timezone: in.Timezone.String(), Stagger: in.Stagger.String(),
		Jitter: d.Jitter.String(), JitterS: words.Seconds(d.Jitter),
		CatchUp: d.CatchUp, Weights: orEmpty(d.Weights),
		Priorities: orEmpty(d.Priorities), Floors: orEmpty(d.Floors), Jobs: []jobShown{},
		Lease: d.Lease.String(), LeaseS: words.Seconds(d.Lease),
		Grace: d.Grace.String(), GraceS: words.Seconds(d.Grace), Listen: d.Listen,
	}
	if out.StaggerS = new(words.Seconds(in.Stagger)); d.StaggerAuto {
		out.Stagger, out.StaggerS = "auto", nil
	}
	for _, j := range d.Jobs {
		out.Jobs = append(out.Jobs,
			jobShown{j.Name, j.Regions, j.Schedule, j.Timezone.String(), j.Pages})
	}
	return out
}

// orEmpty returns an empty map for nil, which JSON would write as null.
func orEmpty(m map[regions.Region]int64) map[regions.Region]int64 {
	if m == nil {
		m = make(map[regions.Region]int64)
	}
	return m
}

func newPace(p *config.Pace) *paceShown {
	if p == nil {
		return nil
	}
	shown := &paceShown{Curve: "even", Slack: fmt.Sprintf("%d%%", p.Slack)}
	if len(p.Curve) > 0 {
		shown.Curve = p.Curve
	}
	return shown
}

func (a *app) config() *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "Check or create the configuration",
	}
	c.AddCommand(&cobra.Command{
		Use:   "check",
		Short: "Show the configuration in force, without secrets, or all that is wrong with it",
		Example: `  quotactl config check
  quotactl config check --config quota.yaml -o json`,
		Args: cli.Args(),
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := a.Load(c.Context())
			if err != nil {
				return err
			}
			if cfg.Serve.Configured {
				if err := serve.Check(cfg); err != nil {
					return &cli.Coded{Code: cli.ExitConfig, Err: err}
				}
			}
			a.warn(cfg)
			if a.Output == "table" {
				a.Output = "yaml" // people read it best as they write it
			}
			return a.Print(newInForce(cfg), nil)
		},
	}, &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of quota.yaml, for editors",
		Example: `  quotactl config schema > quota.schema.json`,
		Args:    cli.Args(),
		RunE: func(*cobra.Command, []string) error {
			_, err := a.Stdout.Write(quotabudget.Schema)
			return err
		},
	}, a.configInit())
	return c
}

// warn logs what is no error, but probably not what was meant.
func (a *app) warn(cfg *config.Config) {
	log := a.Logger()
	for _, c := range cfg.Credentials {
		if _, err := c.APIKey.Key(); err != nil {
			log.Warn("no API key: this credential cannot fetch anything", "credential", c.Name,
				"error", err)
		}
		c.APIKey.WarnExposed(log)
		for _, text := range c.PartsAboveWhole() {
			log.Warn(text, "credential", c.Name)
		}
	}
	config.FileSecret(cfg.Serve.TokenFile, a.Getenv).WarnExposed(log)
	cfg.Notify.Secret.WarnExposed(log)
}

func newInForce(cfg *config.Config) inForce {
	out := inForce{
		File: words.OrNull(cfg.File), Environment: append([]string{}, cfg.Environment...),
		Ledger: config.HidePassword(cfg.Ledger), Catalog: cfg.Catalog,
		Costs: costsShown{words.OrNull(cfg.CostsFile), cfg.Costs.ProfileName(),
			cfg.Costs.Version},
		YouTube: cfg.YouTube, Upstreams: cfg.Upstreams, Ingest: newIngest(cfg),
		Jobs: newOwnJobs(cfg), Serve: newServe(cfg.Serve), Notify: newNotify(cfg.Notify),
	}
	for _, c := range cfg.Credentials {
		_, err := c.APIKey.Key()
		shown := credential{
			Name: c.Name, APIKey: keyShown{c.APIKey.Env, c.APIKey.File, err == nil},
			Mode: c.Mode(), Pace: newPace(c.Pace),
			WhenUnreachable: map[string][]string{"open": append([]string{}, c.Open...)},
			Upstream:        c.Upstream, Project: c.Project,
		}
		if c.AdminKey.Placed() {
			_, err := c.AdminKey.Key()
			shown.AdminKey = &keyShown{c.AdminKey.Env, c.AdminKey.File, err == nil}
		}
		if at := c.Account; at.File != "" {
			shown.Account = &accountShown{at.File, at.Endpoint}
		}
		for _, l := range c.Limits {
			shown.Limits = append(shown.Limits, newLimitShown(l))
		}
		for _, of := range c.Allow {
			shown.Allow = append(shown.Allow,
				allowShown{of.Label + "=" + of.Value, of.Methods, of.Models, of.Most})
		}
		for _, l := range c.PerLabel {
			limit := newLimitShown(l.Limit)
			limit.Per, limit.Parts = "label:"+l.Label, l.Parts
			shown.Limits = append(shown.Limits, limit)
		}
		out.Credentials = append(out.Credentials, shown)
	}
	return out
}
