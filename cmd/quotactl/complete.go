package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
)

// completeWithin is how long a shell waits for us at most.
const completeWithin = 2 * time.Second

type completion func(context.Context) []string

// within gives the words that are found in time.
func (words completion) within(c *cobra.Command) []string {
	ctx, done := context.WithTimeout(c.Context(), completeWithin)
	defer done()
	return words(ctx)
}

// complete tells the shell what can stand for methods, buckets, credentials and reservations. It
// reads the configuration and the ledger; where these cannot be read it says nothing.
func (a *app) complete(root *cobra.Command) {
	flag(root, "credential", a.credentialNames)
	for _, c := range root.Commands() {
		if c.Flags().Lookup("method") != nil {
			flag(c, "method", a.methodNames)
		}
		if c.Flags().Lookup("bucket") != nil {
			flag(c, "bucket", a.bucketNames)
		}
		if c.Flags().Lookup("by") != nil {
			flag(c, "by", func(context.Context) []string {
				return []string{"method", "region",
					"job", "label:"}
			})
		}
		switch c.Name() {
		case "draw", "commit", "release":
			c.ValidArgsFunction = first(a.reservationIDs)
		case "costs":
			c.ValidArgsFunction = first(a.methodNames)
		}
	}
}

func flag(c *cobra.Command, name string, words completion) {
	err := c.RegisterFlagCompletionFunc(name,
		func(c *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
			return words.within(c), cobra.ShellCompDirectiveNoFileComp
		})
	if err != nil {
		panic(err) // the flag was looked up before
	}
}

// first completes the first argument alone.
func first(words completion) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return words.within(c), cobra.ShellCompDirectiveNoFileComp
	}
}

func (a *app) credentialNames(ctx context.Context) []string {
	cfg, err := a.Load(ctx, a.getenv)
	if err != nil {
		return nil
	}
	var names []string
	for _, c := range cfg.Credentials {
		names = append(names, c.Name)
	}
	return names
}

func (a *app) methodNames(ctx context.Context) []string {
	cfg, err := a.Load(ctx, a.getenv)
	if err != nil {
		return nil
	}
	var names []string
	for _, m := range cfg.Costs.Methods() {
		names = append(names, m.ID)
	}
	return names
}

func (a *app) bucketNames(ctx context.Context) []string {
	cfg, err := a.Load(ctx, a.getenv)
	if err != nil {
		return nil
	}
	chosen, err := a.Chosen(cfg)
	if err != nil {
		return nil
	}
	return chosen.Budget(nil, cfg.Costs, nil).Buckets()
}

func (a *app) reservationIDs(ctx context.Context) []string {
	var ids []string
	err := a.with(ctx, func(g *gate) error {
		for _, b := range g.Buckets() {
			list, err := g.Ledger.Reservations(ctx, g.Credential, b)
			if err != nil {
				return err
			}
			for _, r := range list {
				ids = append(ids, fmt.Sprintf("%s\t%d units left %s", cli.Plain(r.ID), r.Left,
					cli.Plain(r.Note)))
			}
		}
		return nil
	})
	if err != nil {
		return nil
	}
	return ids
}
