package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/config"
	"quotabudget/internal/notify"
	"quotabudget/internal/report"
	"quotabudget/internal/words"
)

func (a *app) notifyTest() *cobra.Command { return a.Command("notify test", a.testNotify) }

func (a *app) testNotify(c *cobra.Command, _ []string) error {
	cfg, err := a.Load(c.Context())
	if err != nil {
		return err
	}
	if !cfg.Notify.Set() {
		return cli.Misconfigured(errors.New("notifications have no target"),
			"set url, mail or command under notify: in quota.yaml")
	}
	cfg.Notify.Secret.WarnExposed(a.Logger())
	results := notify.Test(c.Context(), cfg, os.Environ())
	err = a.Print(map[string]any{"targets": results}, func(s cli.Screen) {
		for _, r := range results {
			what := "sent " + r.ID
			if !r.Sent {
				what = "not sent: " + *r.Error
			}
			s.Say("%s %s: %s\n", r.Target, words.Plain(r.To), what)
			if r.Sent && r.Answer != "" {
				s.Say("  answer: %s\n", r.Answer)
			}
		}
	})
	var remedies []string
	for _, r := range results {
		if !r.Sent {
			remedies = append(remedies, r.Do)
		}
	}
	if err != nil || len(remedies) == 0 {
		return err
	}
	return &cli.Coded{Code: cli.ExitUnavailable, Err: cli.Hint(
		errors.New("a notification was not sent"), "%s", strings.Join(remedies, "; "))}
}

// notice notifies people of events that a charge of this command caused.
func (a *app) notice(ctx context.Context, g *gate, quick bool) {
	cfg := *g.cfg
	cfg.Credentials = []config.Credential{g.cred}
	notify.Notice(ctx, report.Source{Config: &cfg, Ledger: g.Ledger}, os.Environ(), a.Logger(), quick)
}

// shownNotify omits the path of the URL.
func shownNotify(n config.Notify) object {
	at := cli.Each(n.At, func(percent int64) string { return fmt.Sprintf("%d%%", percent) })
	o := object{}.With("url", n.Host(), n.URL != "")
	o = o.With("secret", shownKey(n.Secret), n.Secret.Placed())
	o = o.NonEmpty("mail", n.Mail, "command", n.Command)
	return append(o, "at", at, "on", list(n.On))
}
