package main

import (
	"cmp"
	"errors"
	"fmt"
	"math"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/costs"
	"quotabudget/internal/job"
	"quotabudget/internal/quota"
	"quotabudget/internal/report"
	"quotabudget/internal/words"
)

func (a *app) reserve() *cobra.Command {
	var request quota.ReserveRequest
	request.Bucket, request.Lapse = quota.DefaultBucket, quota.LapseRelease
	var ttl string
	var quiet bool
	c := a.Command("reserve", func(c *cobra.Command, args []string) error {
		var err error
		if request.Units, err = parseUnits(args[0]); err != nil {
			return err
		}
		if ttl == "" {
			return cli.Hint(cli.Usagef("--ttl is missing"),
				"set how long the units are needed: --ttl 1h")
		}
		if request.TTL, err = words.ParseSpan(ttl); err != nil {
			return cli.Usagef("--ttl %s: not a duration such as 90s, 1h or 2d", ttl)
		}
		if request.Lapse != quota.LapseRelease && request.Lapse != quota.LapseCharge {
			return cli.Usagef("--lapse %s: write release or charge", request.Lapse)
		}
		return a.with(c.Context(), func(g *gate) error {
			if err := g.charged(request.Bucket); err != nil {
				return err
			}
			d, err := g.Reserve(c.Context(), request)
			p := g.phrasing(c.Context(), request.Manual, d)
			p.quiet = quiet
			return a.setAside(d, err, p)
		})
	})
	flags := c.Flags()
	cli.Flags(flags, "bucket", &request.Bucket, "ttl", &ttl,
		"lapse", (*string)(&request.Lapse), "note", &request.Note, "id", &request.Key,
		"manual", &request.Manual,
		"label", newLabels(&request.Labels), "quiet,q", &quiet)
	return c
}

func (a *app) setAside(d quota.Decision, err error, p phrasing) error {
	printed := struct {
		report.Decision
		Reservation *string    `json:"reservation"`
		ExpiresAt   words.Time `json:"expires_at"`
	}{report.NewDecision(d, false), words.OrNull(d.Reservation), words.Time(d.ExpiresAt)}
	return a.answer(d, err, printed, func(s cli.Screen) {
		more := ""
		if d.Allowed {
			more = fmt.Sprintf("\nreservation %s, until %s", d.Reservation,
				s.At(words.Time(d.ExpiresAt)).Text)
		}
		a.drawDecision(s, "set aside", d, p, more)
	})
}

func (a *app) draw() *cobra.Command {
	var labels quota.Labels
	var quiet bool
	c := a.Command("draw", func(c *cobra.Command, args []string) error {
		units, err := parseUnits(args[1])
		if err != nil {
			return err
		}
		ofJob, err := quota.ParseLabels(a.Getenv(job.EnvLabels)) // labels of the run whose command draws
		if err != nil {
			return cli.Usagef("%s: %w", job.EnvLabels, err)
		}
		labels = ofJob.With(labels)
		return a.with(c.Context(), func(g *gate) error {
			d, err := g.Draw(c.Context(), args[0], units, labels)
			if errors.Is(err, quota.ErrReservationShort) {
				_, buckets, _ := quota.ParseReservation(args[0])
				d = quota.Decision{Units: map[string]int64{buckets[0]: units}, Never: true}
				if a.Getenv(job.EnvMax) != "" {
					// The ceiling, exec --max, denies the draw: a run never holds more than that.
					d.Never, d.Limit, err = false, quota.RunMax, nil
				}
			}
			p := g.phrasing(c.Context(), false, d)
			p.quiet = quiet
			return a.decided("drew", d, err, p)
		})
	})
	cli.Flags(c.Flags(), "label", newLabels(&labels), "quiet,q", &quiet)
	return c
}

func (a *app) commit() *cobra.Command {
	var units int64
	var labels quota.Labels
	c := a.Command("commit", func(c *cobra.Command, args []string) error {
		if !c.Flags().Changed("units") {
			units = quota.AllUnits
		}
		return a.with(c.Context(), func(g *gate) error {
			g.Labels = g.Labels.With(labels)
			d, err := g.Commit(c.Context(), args[0], units)
			return a.settled("committed", g.phrasing(c.Context(), false, d), d, err)
		})
	})
	cli.Flags(c.Flags(), "units", &units, "label", newLabels(&labels))
	cli.Limit(c.Flags(), 0, math.MaxInt64, "units")
	return c
}

func (a *app) settle() *cobra.Command {
	var labels quota.Labels
	c := a.Command("settle", func(c *cobra.Command, args []string) error {
		costs, err := parseCosts(args[1:])
		if err != nil {
			return err
		}
		return a.with(c.Context(), func(g *gate) error {
			d, err := g.Settle(c.Context(), args[0], quota.Call{Costs: costs, Labels: labels})
			return a.settled("settled", g.phrasing(c.Context(), false, d), d, err)
		})
	})
	c.Args = func(_ *cobra.Command, args []string) error {
		if len(args) < 2 {
			return cli.Hint(cli.Usagef("settle needs the ID of a reservation and BUCKET=UNITS"),
				"quotactl reservations lists them")
		}
		return nil
	}
	cli.Flags(c.Flags(), "label", newLabels(&labels))
	return c
}

func (a *app) settled(verb string, p phrasing, d quota.Decision, err error) error {
	if errors.Is(err, quota.ErrKeyReused) {
		err = cli.Hint(err, "it was settled with other units or labels, which quotactl log shows")
	}
	return a.decided(verb, d, err, p)
}

func (a *app) release() *cobra.Command {
	return a.Command("release", func(c *cobra.Command, args []string) error {
		return a.with(c.Context(), func(g *gate) error {
			units, err := g.Release(c.Context(), args[0])
			if err != nil {
				return err
			}
			var all int64
			for _, n := range units {
				all += n
			}
			out := object{"reservation", args[0], "released", all, "units", units}
			return a.Print(out, func(s cli.Screen) {
				s.Say("released %d units of %s\n", all, args[0])
			})
		})
	})
}

func (a *app) reservations() *cobra.Command {
	var bucket string
	c := a.Command("reservations", func(c *cobra.Command, _ []string) error {
		return a.with(c.Context(), func(g *gate) error {
			buckets, err := g.chosen(c.Context(), bucket)
			if err != nil {
				return err
			}
			var list []quota.Reservation
			for _, b := range buckets {
				some, err := g.Ledger.Reservations(c.Context(), g.Credential, b)
				if err != nil {
					return err
				}
				list = append(list, some...)
			}
			out := object{"reservations", cli.Each(list, func(r quota.Reservation) object {
				return object{"reservation", r.ID, "bucket", r.Bucket, "units", r.Units,
					"drawn", r.Drawn, "left", r.Left, "created_at", words.Time(r.CreatedAt),
					"expires_at", words.Time(r.ExpiresAt), "manual", r.Manual, "note", r.Note,
					"most", r.Most, // maximum use, if Units is an estimate
					"lapse", cmp.Or(r.Lapse, quota.LapseRelease)}
			})}
			return a.Print(out, func(s cli.Screen) { drawReservations(s, g.prices(), list) })
		})
	})
	cli.Flags(c.Flags(), "bucket", &bucket)
	return c
}

func drawReservations(s cli.Screen, prices *costs.Table, list []quota.Reservation) {
	if len(list) == 0 {
		s.Say("no reservations\n")
		return
	}
	t := cli.View(list, func(r quota.Reservation) cli.Row {
		amount := func(n int64) string { return s.Amount(report.UnitOf(prices, r.Bucket), n) }
		return cli.Row{"reservation", r.ID, ">units", amount(r.Units), ">drawn", amount(r.Drawn),
			">left", amount(r.Left), "expires", s.At(words.Time(r.ExpiresAt)), "note", r.Note}
	})
	s.Draw(t, cli.Shorten("expires"), cli.Cut("note", 12), cli.Drop("drawn"),
		cli.Drop("units"), cli.Cut("note", 4))
}
