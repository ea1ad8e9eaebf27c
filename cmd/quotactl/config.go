package main

import (
	"github.com/spf13/cobra"

	"quotabudget"
	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/serve"
)

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
			return a.Print(shownConfig(cfg), nil)
		},
	}, &cobra.Command{
		Use:     "schema",
		Short:   "Print the JSON Schema of quota.yaml, for editors",
		Example: `  quotactl config schema > quota.schema.json`,
		RunE: func(*cobra.Command, []string) error {
			_, err := a.Stdout.Write(quotabudget.Schema)
			return err
		},
	}, a.configInit())
	return c
}

// warn logs valid settings that are probably not intended.
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
