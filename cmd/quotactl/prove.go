package main

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redisstore"
	"quotabudget/internal/limit"
)

var scenes = []string{"boundary", "counter", "retry", "all"}

// proof holds what to prove, and on which store.
type proof struct {
	scene, on string
	seed      uint64
}

func (a *app) prove() *cobra.Command {
	p := proof{scene: "all", on: "memory"}
	c := a.Command("prove", func(c *cobra.Command, args []string) error {
		if len(args) == 1 {
			p.scene = args[0]
		}
		if !c.Flags().Changed("seed") {
			p.seed = rand.Uint64() >> 11 // a JSON number that is exact
		}
		stage, end, err := a.stage(c.Context(), p.on)
		if err != nil {
			return err
		}
		defer end()
		r, err := limit.Prove(c.Context(), stage, p.scene, p.seed)
		if err != nil {
			return err
		}
		if err := a.Print(r, func(s cli.Screen) { drawProof(s, r) }); err != nil {
			return err
		}
		if !r.Kept {
			return errors.New("an algorithm broke its guarantee")
		}
		return nil
	})
	c.ValidArgs = scenes
	c.Args = func(_ *cobra.Command, args []string) error {
		if len(args) > 1 || len(args) == 1 && !slices.Contains(scenes, args[0]) {
			return cli.Usagef("prove %s: write boundary, counter, retry or all",
				strings.Join(args, " "))
		}
		return nil
	}
	cli.Flags(c.Flags(), "on", &p.on, "seed", &p.seed)
	return c
}

// stage opens the store to test. Call end afterwards.
func (a *app) stage(ctx context.Context, store string) (s limit.Stage, end func(), err error) {
	switch store {
	case "memory":
		return limit.MemoryStage(), func() {}, nil
	case "sqlite":
		return sqliteStage(ctx)
	case "redis":
		return a.redisStage(ctx)
	}
	return s, nil, cli.Usagef("--on %s: write memory, sqlite or redis", store)
}

func sqliteStage(ctx context.Context) (s limit.Stage, end func(), err error) {
	dir, err := os.MkdirTemp("", "quotactl-prove-")
	if err != nil {
		return s, nil, err
	}
	l, err := ledger.OpenFile(ctx, filepath.Join(dir, "ledger.db"))
	if err != nil {
		os.RemoveAll(dir)
		return s, nil, err
	}
	var now time.Time
	l.Now = func() time.Time { return now }
	return limit.LedgerStage("sqlite", l, func(at time.Time) { now = at }),
		func() { l.Close(); os.RemoveAll(dir) }, nil
}

func (a *app) redisStage(ctx context.Context) (s limit.Stage, end func(), err error) {
	cfg, err := a.Load(ctx)
	if err != nil {
		return s, nil, err
	}
	if strings.HasPrefix(cfg.Ledger, "sqlite:") {
		return s, nil, cli.Hint(
			cli.Usagef("--on redis: the configured ledger is %s", config.HidePassword(cfg.Ledger)),
			"set QUOTA_LEDGER to the address of a server, such as redis://127.0.0.1:6379/0")
	}
	client, err := redisstore.Connect(ctx, cfg.Ledger)
	if err != nil {
		return s, nil, err
	}
	var key limit.Key
	for i := range key {
		key[i] = byte(rand.Uint32())
	}
	clock := func(ctx context.Context) (time.Time, error) { return client.Time(ctx).Result() }
	return limit.RedisStage(limit.NewRedis(client), key, clock), func() { client.Close() }, nil
}

func drawProof(s cli.Screen, r *limit.Proof) {
	if b := r.Boundary; b != nil {
		s.Say("50 calls just before and 50 just after a boundary of the clock, "+
			"%d allowed in any %gs:\n\n", b.Limit, b.Window)
		for _, row := range []struct {
			algorithm limit.Algorithm
			allowed   int64
		}{{limit.Fixed, b.Fixed}, {limit.Counter, b.Counter}, {limit.Log, b.Log}} {
			over := ""
			if n := row.allowed - b.Limit; n > 0 {
				over = fmt.Sprintf("  %d too many", n)
			}
			s.Say("  %-8s %3d  %s%s\n", row.algorithm, row.allowed,
				strings.Repeat("█", int(row.allowed/4)), over)
		}
		s.Say("\n")
	}
	if len(r.Traffic) > 0 {
		drawTraffic(s, r)
	}
	if t := r.Retry; t != nil {
		s.Say("%d denied calls, tried again:\n\n", t.Denials)
		s.Say("  %-12s %3d allowed\n", fmt.Sprintf("%d µs early", t.Micros), t.Early)
		s.Say("  %-12s %3d denied\n\n", "on time", t.Late)
	}
	if r.Kept {
		s.Say("every promise was kept\n")
	}
}

func drawTraffic(s cli.Screen, r *limit.Proof) {
	s.Say("The counter and the log, %d allowed in a window (--seed %d):\n\n",
		r.Traffic[0].Limit, r.Seed)
	table := new(cli.Table)
	for _, row := range r.Traffic {
		off := fmt.Sprintf("-%d +%d", row.Under, row.Over)
		for _, result := range []struct {
			name string
			limit.Admitted
			off string
		}{{"log", row.Log, "0"}, {"counter", row.Counter, off}} {
			table.Add(cli.Row{"calls", row.Traffic, "algorithm", result.name,
				">allowed", result.Calls, ">most in a window", result.Most,
				">denied with room", result.DeniedWithRoom,
				">allowed over limit", result.AllowedOverfull, ">estimate off by", result.off})
		}
	}
	s.Draw(table)
	s.Say("\n")
}
