package main

import (
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"quotabudget/internal/regions"
)

// completeRegions offers the configured regions, or all regions if no configured one has the
// prefix. In a list with commas it completes the last item.
func (a *app) completeRegions(c *cobra.Command, args []string,
	word string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	before, begun := "", strings.ToUpper(word)
	if at := strings.LastIndex(word, ","); at >= 0 {
		before, begun = word[:at+1], begun[at+1:]
	}
	var configured []regions.Region
	if cfg, err := a.Load(c.Context()); err == nil {
		configured = cfg.Ingest.Regions
	}
	for _, list := range [][]regions.Region{configured, regions.All()} {
		var words []string
		for _, r := range list {
			if strings.HasPrefix(string(r), begun) &&
				!slices.Contains(strings.Split(strings.ToUpper(before), ","), string(r)) {
				words = append(words, before+string(r))
			}
		}
		if len(words) > 0 {
			return words, cobra.ShellCompDirectiveNoFileComp
		}
	}
	return nil, cobra.ShellCompDirectiveNoFileComp
}
