package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"quotabudget/internal/cli"
	"quotabudget/internal/quota"
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
released, or until --ttl has passed. draw charges against them, whatever others spend in the
meantime. settle books what a call really took, more or less than was set aside.

With --lapse charge, units that nobody commits, settles or releases in time are charged when --ttl
has passed, because a call that was sent has usually been billed.`,
		Example: `  quotactl reserve 500 --ttl 2h --note "backfill of March"
  id=$(quotactl reserve 500 --ttl 2h -o json | jq -r .reservation)
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
					"say how long the units are needed: --ttl 1h")
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
				of := g.asked(request.Manual, d)
				of.note = g.dayNote(c.Context(), request.Manual, d, of)
				of.quiet = quiet
				return a.setAside(d, err, of)
			})
		},
	}
	flags := c.Flags()
	flags.StringVar(&request.Bucket, "bucket", quota.DefaultBucket,
		"`BUCKET` to take the units from")
	flags.StringVar(&ttl, "ttl", "", "`DURATION` after which the reservation expires, such as 1h")
	flags.StringVar(&lapse, "lapse", string(quota.LapseRelease),
		"`WHAT` becomes of units that nobody settles: release or charge")
	flags.StringVar(&request.Note, "note", "", "`TEXT` that says what it is for")
	flags.StringVar(&request.Key, "id", "",
		"idempotency `KEY`: the same key again gets the same reservation")
	bindManual(flags, &request.Manual)
	bindQuiet(flags, &quiet)
	return c
}

func (a *app) setAside(d quota.Decision, err error, of asked) error {
	printed := reserved{newDecision(d, false), words.OrNull(d.Reservation), words.Time(d.ExpiresAt)}
	return a.answer(d, err, printed, func(s cli.Screen) error {
		more := ""
		if d.Allowed {
			more = fmt.Sprintf("\nreservation %s, until %s", d.Reservation,
				s.At(words.Time(d.ExpiresAt)).Text)
		}
		return a.printDecision("set aside", d, of, more)
	})
}
