package main

import (
	"os"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
)

func (a *app) serve() *cobra.Command {
	var address string
	c := a.Command("serve", func(c *cobra.Command, _ []string) error {
		cfg, err := a.Load(c.Context())
		if err == nil {
			err = cli.Listens(cfg, address)
		}
		if err != nil {
			return err
		}
		return a.ServeLedger(c.Context(), cfg, nil, os.Environ())
	})
	cli.Flag(c.Flags(), &address, "listen")
	return c
}
