package main

import (
	"cmp"
	"os"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
)

func (a *app) serve() *cobra.Command {
	var address string
	c := a.Command("serve", func(c *cobra.Command, _ []string) error {
		if err := cli.CheckAddress("listen", address, config.DefaultServe); err != nil {
			return err
		}
		cfg, err := a.Load(c.Context())
		if err != nil {
			return err
		}
		cfg.Serve.Listen = cmp.Or(address, cfg.Serve.Listen)
		return a.ServeLedger(c.Context(), cfg, nil, os.Environ())
	})
	cli.Flags(c.Flags(), "listen", &address)
	return c
}
