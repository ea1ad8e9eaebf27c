package main

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/report"
	"quotabudget/internal/words"
)

func (a *app) reportChargeback() *cobra.Command {
	var month, by string
	c := a.Command("report chargeback", func(c *cobra.Command, _ []string) error {
		if month == "" || by == "" {
			return usagef(c, "--month or --by is missing")
		}
		begin, err := time.Parse("2006-01", month)
		if err != nil || begin.After(time.Now()) {
			return cli.Usagef("--month %s: write a month that has begun, such as 2026-11",
				words.Plain(month))
		}
		label, _, err := parseBy(by)
		if err != nil {
			return err
		}
		return a.withLedger(c.Context(), func(src report.Source) error {
			out, err := src.Chargeback(c.Context(), begin, by, label)
			if err != nil {
				return err
			}
			return a.printChargeback(out)
		})
	})
	cli.Flag(c.Flags(), &month, "month")
	c.Flags().Var(onceFlag{&by}, "by", "")
	a.PrintsLines(c)
	return c
}

func (a *app) printChargeback(out report.Chargeback) (err error) {
	if a.InLines() {
		lines := a.Lines("credential", "bucket", "key", "units", "entries", "share", "usd", "complete")
		for _, r := range out.Rows {
			usd := ""
			if r.USD != nil {
				usd = strconv.FormatFloat(*r.USD, 'f', -1, 64)
			}
			err = cmp.Or(err, lines.Add(r, r.Credential, r.Bucket, r.Key,
				strconv.FormatInt(r.Units, 10), strconv.FormatInt(r.Entries, 10),
				strconv.FormatFloat(r.Share, 'f', 4, 64), usd, strconv.FormatBool(r.Complete)))
		}
		return cmp.Or(err, lines.Flush())
	}
	return a.Print(out, func(s cli.Screen) {
		if len(out.Rows) == 0 {
			s.Say("nothing was spent in %s\n", out.Month)
			return
		}
		t := s.Table("credential", "bucket", out.By, ">spent", ">share", ">entries")
		var incomplete []string
		for _, r := range out.Rows {
			t.Row(r.Credential, r.Bucket, cmp.Or(r.Key, "(none)"),
				s.Amount(r.Counts, r.Units), words.Percent(r.Share), r.Entries)
			if name := r.Credential + "/" + r.Bucket; !r.Complete && !slices.Contains(incomplete, name) {
				incomplete = append(incomplete, name)
			}
		}
		s.Draw(t, cli.Cut(out.By, 12), cli.Cut("bucket", 12))
		if len(incomplete) > 0 {
			s.Say("incomplete, because the ledger may have dropped entries of the month: %s\n",
				strings.Join(incomplete, ", "))
		}
	})
}
