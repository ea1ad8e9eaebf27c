package main

import (
	"context"
	"database/sql"
	"errors"
	"path/filepath"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
	"github.com/rogpeppe/go-internal/testscript"
)

// spoil total|state: raises the newest total of the bucket default by hand, or changes its state.
func spoil(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 1 {
		ts.Fatalf("usage: spoil total|state")
	}
	if ledger := ts.Getenv("QUOTA_LEDGER"); strings.HasPrefix(ledger, "redis:") {
		ts.Check(spoilRedis(ledger, args[0]))
		return
	}
	ts.Check(spoilSQLite(filepath.Join(ts.Getenv("QUOTA_STATE_DIR"), "ledger.db"), args[0]))
}

func spoilSQLite(path, what string) error {
	db, err := sql.Open("sqlite", path)
	if err != nil {
		return err
	}
	_, err = db.Exec(map[string]string{
		"total": "UPDATE entries SET total = total + 35 WHERE total = (SELECT max(total) FROM entries)",
		"state": "UPDATE buckets SET keep = 3 WHERE bucket = 'default'",
	}[what])
	return errors.Join(err, db.Close())
}

func spoilRedis(ledger, what string) error {
	o, err := redis.ParseURL(ledger)
	if err != nil {
		return err
	}
	c := redis.NewClient(o)
	defer c.Close()
	ctx, key := context.Background(), "quota:{default}:default:"
	if what == "state" {
		digit := "9"
		if c.GetRange(ctx, key+"state", 12, 12).Val() == digit {
			digit = "8"
		}
		return c.SetRange(ctx, key+"state", 12, digit).Err()
	}
	newest, err := c.ZPopMax(ctx, key+"log").Result()
	if err != nil {
		return err
	}
	member := newest[0].Member.(string)
	_, rest, _ := strings.Cut(member, ":")
	newest[0].Member = "95:" + rest
	return c.ZAdd(ctx, key+"log", newest[0]).Err()
}

// On a terminal, a repair prints its changes and asks. Only yes confirms.
func TestRepairAsks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "ledger.db")
	s := newShell(t, "sqlite:"+file, "")
	for range 3 {
		s.want(0, "", "spend", "--units", "20")
	}
	must(t, spoilSQLite(file, "total"))
	for _, c := range []struct {
		answer, says string
		code         int // of a charge afterwards
	}{
		{"n\n", "nothing was changed", 69}, {"\n", "nothing was changed", 69},
		{"yes please\n", "nothing was changed", 69}, {"y\n", "repaired: nothing is wrong now", 0},
	} {
		cmd := s.command("ledger", "check", "--repair")
		term := newTerminal(s, 100, cmd, "TERM=dumb")
		term.types(c.answer, c.says)
		ended, text := cmd.Wait(), term.seen.String()
		if !strings.Contains(text, "1 of 3 running totals do not follow") ||
			!strings.Contains(text, "write these changes (1 of 1 findings)? [y/N]") ||
			(ended == nil) != (c.code == 0) {
			t.Errorf("answered %q: %v\n%s", c.answer, ended, text)
		}
		s.want(c.code, "", "spend", "--units", "20")
	}
}
