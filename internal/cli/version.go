package cli

import (
	"fmt"

	"github.com/spf13/cobra"

	"quotabudget/internal/report"
)

type build struct {
	Version string `json:"version"`
	Go      string `json:"go"`
}

func (c *Common) version(root *cobra.Command) {
	var b build
	b.Version, b.Go = report.Version()
	text := fmt.Sprintf("%s %s (%s)\n", root.Name(), b.Version, b.Go)
	root.Version = b.Version
	root.SetVersionTemplate(text)
	root.Flags().Bool("version", false, "show the version")
	root.AddCommand(&cobra.Command{
		Use:     "version",
		Short:   "Show the version",
		Example: "  " + root.Name() + " version",
		RunE: func(*cobra.Command, []string) error {
			return c.Print(b, func(s Screen) { s.Say("%s", text) })
		},
	})
}
