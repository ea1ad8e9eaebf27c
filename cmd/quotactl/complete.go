package main

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/words"
)

const completeWithin = 2 * time.Second

type completion func(context.Context) []string

// complete registers shell completions of methods, buckets, credentials and reservations, from the
// configuration and the ledger. If these cannot be read, it offers nothing.
func (a *app) complete(root *cobra.Command) {
	methods := a.configured(func(cfg *config.Config) (names []string) {
		for _, m := range cfg.Costs.Methods() {
			names = append(names, m.ID)
		}
		return names
	})
	flags := map[string]completion{
		"method": methods,
		"bucket": a.configured(func(cfg *config.Config) []string {
			chosen, err := a.Chosen(cfg)
			if err != nil {
				return nil
			}
			return chosen.Budget(nil, cfg.Table(chosen), nil).Buckets()
		}),
		"by": func(context.Context) []string {
			return []string{"method", "region", "job", "source", "run", "label:"}
		},
	}
	flags["credential"] = a.configured(func(cfg *config.Config) (names []string) {
		for _, c := range cfg.Credentials {
			names = append(names, c.Name)
		}
		return names
	})
	flag(root, "credential", flags["credential"])
	for _, c := range root.Commands() {
		for name, words := range flags {
			if c.Flags().Lookup(name) != nil && (name != "by" || c.Name() != "adjust") {
				flag(c, name, words)
			}
		}
		switch c.Name() {
		case "draw", "commit", "release":
			c.ValidArgsFunction = offer(a.reservationIDs, 1)
		case "costs":
			c.ValidArgsFunction = offer(methods, 1)
		}
	}
}

func flag(c *cobra.Command, name string, complete completion) {
	cli.Bound(c.RegisterFlagCompletionFunc(name, offer(complete, math.MaxInt)))
}

// offer completes up to most arguments, if the words are found in time.
func offer(complete completion, maxArgs int) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		ctx, done := context.WithTimeout(c.Context(), completeWithin)
		defer done()
		if len(args) >= maxArgs {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(ctx), cobra.ShellCompDirectiveNoFileComp
	}
}

func (a *app) configured(words func(*config.Config) []string) completion {
	return func(ctx context.Context) []string {
		cfg, err := a.Load(ctx)
		if err != nil {
			return nil
		}
		return words(cfg)
	}
}

func (a *app) reservationIDs(ctx context.Context) (ids []string) {
	// words found before an error are offered
	_ = a.with(ctx, func(g *gate) error {
		for _, b := range g.Buckets() {
			list, err := g.Ledger.Reservations(ctx, g.Credential, b)
			if err != nil {
				return err
			}
			for _, r := range list {
				ids = append(ids, fmt.Sprintf("%s\t%d units left %s", words.Plain(r.ID), r.Left,
					words.Plain(r.Note)))
			}
		}
		return nil
	})
	return ids
}
