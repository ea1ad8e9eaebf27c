package main

import (
	"fmt"
	"runtime/debug"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
)

type build struct {
	Version string `json:"version"`
	Go      string `json:"go"`
}

func (a *app) version() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Which version this is",
		Example: `  quotactl version`,
		Args:    cli.Args(),
		RunE: func(*cobra.Command, []string) error {
			b := build{Version: "unknown"}
			if info, ok := debug.ReadBuildInfo(); ok {
				b = build{info.Main.Version, info.GoVersion}
			}
			return a.Print(a.stdout, b, func() error {
				_, err := fmt.Fprintf(a.stdout, "quotactl %s (%s)\n", b.Version, b.Go)
				return err
			})
		},
	}
}
