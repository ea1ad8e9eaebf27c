package main

import (
	"os"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
)

func (a *app) serve() *cobra.Command {
	var address string
	c := &cobra.Command{
		Use:   "serve",
		Short: "Serve the ledger over HTTP",
		Long: `serve lets programs in any language charge, hold and settle over HTTP, and read the budgets.
/openapi.json describes the API. ingestor serve has the same API, and the catalogue and pages.

It listens on this machine alone unless serve: in quota.yaml says otherwise. Programs on other
machines need a token of token_file: with the scope charge.`,
		Example: `  quotactl serve
  curl -s http://127.0.0.1:8080/v1/charges -H 'Content-Type: application/json' \
    -H "Idempotency-Key: $(uuidgen)" -d '{"method":"youtube.videos.list"}'`,
		RunE: func(c *cobra.Command, _ []string) error {
			cfg, err := a.Load(c.Context())
			if err == nil {
				err = cli.Listens(cfg, address)
			}
			if err != nil {
				return err
			}
			return a.ServeLedger(c.Context(), cfg, nil, os.Environ())
		},
	}
	c.Flags().StringVar(&address, "listen", "", "`ADDR` to listen on instead of that of serve:")
	return c
}
