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
	var ttl, lapse string
	var quiet bool
	c := &cobra.Command{
		Use:   "reserve UNITS --ttl DURATION",
		Short: "Set units aside for later",
		Long: `reserve sets units aside: they count against every limit until they are committed or
released, or until --ttl has passed. draw charges against them; settle books what a call took, more
or less than was set aside.

With --lapse charge, units that nobody commits, settles or releases in time are charged when --ttl
has passed, because a call that was sent has usually been billed.`,
		Example: `  id=$(quotactl reserve 500 --ttl 2h --note "backfill of March" -o json |
    jq -r .reservation)
  quotactl draw "$id" 50
  quotactl commit "$id"                    all of it was used
  quotactl release "$id"                   or: none of the rest is needed`,
		Args: cli.Args("UNITS"),
		RunE: func(c *cobra.Command, args []string) error {
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
			request.Lapse = quota.Lapse(lapse)
			if request.Lapse != quota.LapseRelease && request.Lapse != quota.LapseCharge {
				return cli.Usagef("--lapse %s: write release or charge", lapse)
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
		},
	}
	flags := c.Flags()
	flags.StringVar(&request.Bucket, "bucket", quota.DefaultBucket,
		"`BUCKET` to take the units from")
	flags.StringVar(&ttl, "ttl", "", "`DURATION` after which the reservation expires, such as 1h")
	flags.StringVar(&lapse, "lapse", string(quota.LapseRelease),
		"`WHAT` becomes of units that nobody settles: release or charge")
	flags.StringVar(&request.Note, "note", "", "`TEXT` that describes its purpose")
	flags.StringVar(&request.Key, "id", "",
		"idempotency `KEY`: repeating the key returns the same reservation")
	bindManual(flags, &request.Manual)
	bindLabels(flags, &request.Labels)
	bindQuiet(flags, &quiet)
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
	c := &cobra.Command{
		Use:   "draw ID UNITS",
		Short: "Charge units of a reservation",
		Example: `  quotactl draw default.06fmjq2kx4a9bc 50
  quotactl draw default.06fmjq2kx4a9bc 50 --label region=BR`,
		Args: cli.Args("ID", "UNITS"),
		RunE: func(c *cobra.Command, args []string) error {
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
				if errors.Is(err, quota.ErrReservationShort) && a.Getenv(job.EnvMax) != "" {
					d, err = ceilingDenies(args[0], units), nil
				}
				p := g.phrasing(c.Context(), false, d)
				p.quiet = quiet
				return a.decided("drew", d, err, p)
			})
		},
	}
	bindLabels(c.Flags(), &labels)
	bindQuiet(c.Flags(), &quiet)
	return c
}

// ceilingDenies returns the denial of a draw beyond exec --max: a run never holds more than its
// ceiling.
func ceilingDenies(reservation string, units int64) quota.Decision {
	_, buckets, _ := quota.ParseReservation(reservation)
	return quota.Decision{Units: map[string]int64{buckets[0]: units}, Limit: quota.RunMax}
}

func (a *app) commit() *cobra.Command {
	var units int64
	var labels quota.Labels
	c := &cobra.Command{
		Use:   "commit ID",
		Short: "Settle a reservation: charge what was used of it, give the rest back",
		Example: `  quotactl commit default.06fmjq2kx4a9bc                everything left was used
  quotactl commit default.06fmjq2kx4a9bc --units 120   120 were used`,
		Args: cli.Args("ID"),
		RunE: func(c *cobra.Command, args []string) error {
			if !c.Flags().Changed("units") {
				units = quota.AllUnits
			}
			return a.with(c.Context(), func(g *gate) error {
				g.Labels = g.Labels.With(labels)
				d, err := g.Commit(c.Context(), args[0], units)
				return a.settled("committed", g.phrasing(c.Context(), false, d), d, err)
			})
		},
	}
	c.Flags().Int64Var(&units, "units", 0, "`N` units were used (default all that is left)")
	cli.Limit(c.Flags(), 0, math.MaxInt64, "units")
	bindLabels(c.Flags(), &labels)
	return c
}

func (a *app) settle() *cobra.Command {
	var labels quota.Labels
	c := &cobra.Command{
		Use:   "settle ID BUCKET=UNITS...",
		Short: "Book what a call used, even if its reservation held more or less",
		Long: `settle ends a reservation: in each bucket it charges what was used, and gives the rest
back. What was used beyond the reservation is charged, too, whatever the limits say: it has been
billed. A bucket that is not named settles as it was set aside.

A reservation that has lapsed into a charge (reserve --lapse charge) can still be settled: what was
not used is taken off that charge. commit is for reservations that may not be exceeded.`,
		Example: `  quotactl settle default.06fmjq2kx4a9bc default=640
  quotactl settle input+output.06fmjq2kx4a9bc input=1200 output=85`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 {
				return cli.Hint(cli.Usagef("settle needs the ID of a reservation and BUCKET=UNITS"),
					"quotactl reservations lists them")
			}
			return nil
		},
		RunE: func(c *cobra.Command, args []string) error {
			costs, err := parseCosts(args[1:])
			if err != nil {
				return err
			}
			return a.with(c.Context(), func(g *gate) error {
				d, err := g.Settle(c.Context(), args[0], quota.Call{Costs: costs, Labels: labels})
				return a.settled("settled", g.phrasing(c.Context(), false, d), d, err)
			})
		},
	}
	bindLabels(c.Flags(), &labels)
	return c
}

func (a *app) settled(verb string, p phrasing, d quota.Decision, err error) error {
	if errors.Is(err, quota.ErrKeyReused) {
		err = cli.Hint(err, "it was settled with other units or labels, which quotactl log shows")
	}
	return a.decided(verb, d, err, p)
}

func (a *app) release() *cobra.Command {
	return &cobra.Command{
		Use:     "release ID",
		Short:   "Give back what is left of a reservation",
		Example: `  quotactl release default.06fmjq2kx4a9bc`,
		Args:    cli.Args("ID"),
		RunE: func(c *cobra.Command, args []string) error {
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
		},
	}
}

func (a *app) reservations() *cobra.Command {
	var bucket string
	c := &cobra.Command{
		Use:   "reservations",
		Short: "List the reservations",
		Example: `  quotactl reservations
  quotactl reservations --bucket search_list -o json`,
		RunE: func(c *cobra.Command, _ []string) error {
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
				out := object{"reservations", each(list, shownReservation)}
				return a.Print(out, func(s cli.Screen) { drawReservations(s, g.prices(), list) })
			})
		},
	}
	c.Flags().StringVar(&bucket, "bucket", "", "only of this `BUCKET`")
	return c
}

// shownReservation returns the JSON of a reservation. Its most is the most that an estimate can
// become.
func shownReservation(r quota.Reservation) object {
	return object{"reservation", r.ID, "bucket", r.Bucket, "units", r.Units, "drawn", r.Drawn,
		"left", r.Left, "created_at", words.Time(r.CreatedAt), "expires_at", words.Time(r.ExpiresAt),
		"manual", r.Manual, "note", r.Note, "most", r.Most,
		"lapse", cmp.Or(r.Lapse, quota.LapseRelease)}
}

func drawReservations(s cli.Screen, prices *costs.Table, list []quota.Reservation) {
	if len(list) == 0 {
		s.Say("no reservations\n")
		return
	}
	t := s.Table("reservation", ">units", ">drawn", ">left", "expires", "note")
	for _, r := range list {
		amount := func(n int64) string { return s.Amount(report.UnitOf(prices, r.Bucket), n) }
		t.Row(r.ID, amount(r.Units), amount(r.Drawn), amount(r.Left),
			s.At(words.Time(r.ExpiresAt)), r.Note)
	}
	s.Draw(t, cli.Shorten("expires"), cli.Cut("note", 12), cli.Drop("drawn"),
		cli.Drop("units"), cli.Cut("note", 4))
}
