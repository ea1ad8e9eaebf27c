package main

import (
	"cmp"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/costs"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/words"
)

type reservationList struct {
	Reservations []reservation `json:"reservations"`
}

type reservation struct {
	Reservation string     `json:"reservation"`
	Bucket      string     `json:"bucket"`
	Units       int64      `json:"units"`
	Drawn       int64      `json:"drawn"`
	Left        int64      `json:"left"`
	CreatedAt   words.Time `json:"created_at"`
	ExpiresAt   words.Time `json:"expires_at"`
	Manual      bool       `json:"manual"`
	Note        string     `json:"note"`
	Most        int64      `json:"most"`  // what an estimate can turn out to be
	Lapse       string     `json:"lapse"` // release or charge
}

func (a *app) reservations() *cobra.Command {
	var bucket string
	c := &cobra.Command{
		Use:   "reservations",
		Short: "List the reservations",
		Example: `  quotactl reservations
  quotactl reservations --bucket search_list -o json`,
		Args: cli.Args(),
		RunE: func(c *cobra.Command, _ []string) error {
			return a.with(c.Context(), func(g *gate) error {
				buckets, err := g.chosen(c.Context(), bucket)
				if err != nil {
					return err
				}
				list := reservationList{Reservations: []reservation{}}
				for _, b := range buckets {
					some, err := g.Ledger.Reservations(c.Context(), g.Credential, b)
					if err != nil {
						return err
					}
					for _, r := range some {
						list.Reservations = append(list.Reservations, newReservation(r))
					}
				}
				return a.Print(list, func() error { return a.reservationTable(g.prices(), list) })
			})
		},
	}
	c.Flags().StringVar(&bucket, "bucket", "", "only of this `BUCKET`")
	return c
}

func newReservation(r quota.Reservation) reservation {
	return reservation{r.ID, r.Bucket, r.Units, r.Drawn, r.Left, words.Time(r.CreatedAt),
		words.Time(r.ExpiresAt), r.Manual, r.Note, r.Most,
		string(cmp.Or(r.Lapse, quota.LapseRelease))}
}

func (a *app) reservationTable(table *costs.Table, list reservationList) error {
	if len(list.Reservations) == 0 {
		return a.Screen().Say("no reservations\n")
	}
	s := a.Screen()
	t := s.Table("reservation", ">units", ">drawn", ">left", "expires", "note")
	for _, r := range list.Reservations {
		amount := func(n int64) string { return s.Amount(report.UnitOf(table, r.Bucket), n) }
		t.AppendRow([]any{r.Reservation, amount(r.Units), amount(r.Drawn), amount(r.Left),
			s.At(r.ExpiresAt), r.Note})
	}
	return s.Draw(t, cli.Shorten("expires"), cli.Cut("note", 12), cli.Drop("drawn"),
		cli.Drop("units"), cli.Cut("note", 4))
}
