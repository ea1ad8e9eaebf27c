package main

import (
	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/regions"
)

// inForce is the configuration as it is printed: the keys of quota.yaml, and where they come from.
type inForce struct {
	File        *string      `json:"file"`
	Environment []string     `json:"environment"`
	Ledger      string       `json:"ledger"`
	Catalog     string       `json:"catalog"`
	Costs       costsShown   `json:"costs"`
	Credentials []credential `json:"credentials"`
	YouTube     youtubeShown `json:"youtube"`
	Ingest      ingestShown  `json:"ingest"`
}

type costsShown struct {
	File    *string `json:"file"`
	Profile string  `json:"profile"`
	Version string  `json:"version"`
}

type credential struct {
	Name            string       `json:"name"`
	APIKey          keyShown     `json:"api_key"`
	Limits          []limitShown `json:"limits"`
	Mode            string       `json:"mode"`
	WhenUnreachable openShown    `json:"when_unreachable"`
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
}

type openShown struct {
	Open []string `json:"open"`
}

type youtubeShown struct {
	Endpoint string `json:"endpoint"`
}

type ingestShown struct {
	Credential *string          `json:"credential"`
	Regions    []regions.Region `json:"regions"`
	Pages      int              `json:"pages"`
	Schedule   string           `json:"schedule"`
	Timezone   string           `json:"timezone"`
	Stagger    string           `json:"stagger"`
}

func (a *app) config() *cobra.Command {
	c := &cobra.Command{
		Use:   "config",
		Short: "The configuration",
	}
	c.AddCommand(&cobra.Command{
		Use:   "check",
		Short: "Show the configuration in force, secrets hidden, or everything that is wrong with it",
		Example: `  quotactl config check
  quotactl config check --config quota.yaml -o json`,
		Args: cli.Args(),
		RunE: func(*cobra.Command, []string) error {
			cfg, err := a.Load(a.getenv)
			if err != nil {
				return err
			}
			if a.Output == "table" {
				a.Output = "yaml" // people read it best as they write it
			}
			return a.Print(a.stdout, newInForce(cfg), nil)
		},
	})
	return c
}

func newInForce(cfg *config.Config) inForce {
	in := cfg.Ingest
	out := inForce{
		File: orNull(cfg.File), Environment: append([]string{}, cfg.Environment...),
		Ledger: config.HidePassword(cfg.Ledger), Catalog: cfg.Catalog,
		Costs:   costsShown{orNull(cfg.CostsFile), cfg.Costs.ProfileName(), cfg.Costs.Version},
		YouTube: youtubeShown{cfg.YouTube.Endpoint},
		Ingest:  ingestShown{orNull(in.Credential), in.Regions, in.Pages, in.Schedule, in.Timezone.String(), in.Stagger.String()},
	}
	for _, c := range cfg.Credentials {
		_, err := c.APIKey.Key()
		shown := credential{
			Name: c.Name, APIKey: keyShown{c.APIKey.Env, c.APIKey.File, err == nil}, Mode: c.Mode(),
			WhenUnreachable: openShown{append([]string{}, c.Open...)},
		}
		for _, l := range c.Limits {
			shown.Limits = append(shown.Limits, limitShown{l.Bucket, l.Units, l.Headroom, l.Window.Text(), orNull(l.Window.ZoneName())})
		}
		out.Credentials = append(out.Credentials, shown)
	}
	return out
}
