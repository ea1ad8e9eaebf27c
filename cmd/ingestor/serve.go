package main

import (
	"cmp"
	"errors"
	"os"

	"github.com/spf13/cobra"

	"quotabudget/internal/catalog"
	"quotabudget/internal/cli"
	"quotabudget/internal/config"
)

func serveCommand(a *app) *cobra.Command {
	var address string
	var demo bool
	c := a.Command("serve", func(c *cobra.Command, _ []string) error {
		ctx := c.Context()
		if err := cli.CheckAddress("listen", address, config.DefaultServe); err != nil {
			return err
		}
		cfg, stop, err := a.loadOrDemo(ctx, demo)
		if err != nil {
			return err
		}
		defer stop()
		cfg.Serve.Listen = cmp.Or(address, cfg.Serve.Listen)
		if demo {
			if err := errors.Join(a.demoDay(ctx, cfg), a.demoTrouble(ctx, cfg)); err != nil {
				return err
			}
		}
		charts, err := catalog.Open(ctx, cfg.Catalog)
		if err != nil {
			return err
		}
		return errors.Join(a.ServeLedger(ctx, cfg, charts, os.Environ()), charts.Close())
	})
	cli.Flags(c.Flags(), "listen", &address, "demo", &demo)
	return c
}
