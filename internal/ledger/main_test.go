package ledger_test

import (
	"bufio"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/ledger"
	"quotabudget/internal/quota"
)

// In the environment, childURL makes this binary a process that charges the ledger named there as
// childMix says.
const (
	childURL = "LEDGER_TEST_CHILD"
	childMix = "LEDGER_TEST_MIX"
	inFlight = 3 // goroutines of a child
)

func TestMain(m *testing.M) {
	if ledgerURL := os.Getenv(childURL); ledgerURL != "" {
		if path, is := strings.CutPrefix(os.Getenv(childMix), onHost); is {
			spendOnHost(ledgerURL, path)
		} else if err := child(ledgerURL, mixes()[os.Getenv(childMix)]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// Mixes that no process can use up.
const (
	endless = "endless"
	alone   = "endless, one caller"
)

// late is a mix of holds that are settled in time, settled late, or never settled.
const late = "late"

// mix is what every process charges, over and over, until nothing of it fits.
type mix struct {
	limits   []quota.Limit
	costs    [][]quota.Cost
	callers  int  // goroutines of each process; 0 for inFlight
	holds    bool // what takes more than one unit is held and settled
	corrects bool // every tenth round takes units off the log
}

func mixes() map[string]mix {
	day := quota.Sliding(24 * time.Hour)
	calendar, err := quota.ParseWindow("day", "America/Los_Angeles")
	if err != nil {
		panic(err) // the zone is one of every zone database
	}
	one := [][]quota.Cost{{{Bucket: "default", Units: 1}}}
	wide := []quota.Limit{{Bucket: "default", Units: quota.MaxUnits, Window: day}}
	return map[string]mix{
		"one unit": {
			limits:  []quota.Limit{{Bucket: "default", Units: 1000, Window: day}},
			costs:   one,
			callers: 20,
		},
		"charges and holds": {
			limits:  []quota.Limit{{Bucket: "default", Units: 800, Window: day}},
			costs:   [][]quota.Cost{{{Bucket: "default", Units: 3}}, {{Bucket: "default", Units: 1}}},
			callers: 5,
			holds:   true,
		},
		"charges, holds and corrections": {
			limits:   []quota.Limit{{Bucket: "default", Units: 600, Window: day}},
			costs:    [][]quota.Cost{{{Bucket: "default", Units: 3}}, {{Bucket: "default", Units: 1}}},
			callers:  2,
			holds:    true,
			corrects: true,
		},
		endless: {limits: wide, costs: one},
		alone:   {limits: wide, costs: one, callers: 1},
		late: {
			limits: []quota.Limit{{Bucket: "input/x", Units: 100_000, Window: day},
				{Bucket: "money", Units: 100_000, Window: day}},
			callers: 1,
		},
		// 7 and 50 units do not add up to the limit by themselves: the last units go to single
		// ones.
		"mixed costs of two buckets": {
			limits: []quota.Limit{
				{Bucket: "default", Units: 2000, Headroom: 100, Window: day},
				{Bucket: "default", Units: 2000, Headroom: 100, Window: calendar},
				{Bucket: "search_list", Units: 20, Window: calendar},
			},
			costs: [][]quota.Cost{
				{{Bucket: "default", Units: 50}, {Bucket: "search_list", Units: 1}},
				{{Bucket: "default", Units: 7}},
				{{Bucket: "default", Units: 1}},
			},
		},
	}
}

// child waits for the end of its input, then charges until everything is denied, and prints the ID
// and the units by bucket of each allowed charge.
func child(ledgerURL string, m mix) error {
	l, err := ledger.Open(context.Background(), ledgerURL)
	if err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	var all sync.WaitGroup
	errs := make([]error, cmp.Or(m.callers, inFlight))
	spend := m.spend
	if len(m.costs) == 0 {
		spend = m.settleLate
	}
	for i := range errs {
		all.Go(func() { errs[i] = spend(l) })
	}
	all.Wait()
	return errors.Join(append(errs, l.Close())...)
}

// spend charges each of the costs in turn, until none of them is allowed any more.
func (m mix) spend(l *ledger.Ledger) error {
	for denied, round := 0, 0; denied < len(m.costs); round++ {
		denied = 0
		if m.corrects && round%10 == 5 {
			if err := m.correct(l); err != nil {
				return err
			}
		}
		for _, costs := range m.costs {
			c := quota.Charge{Credential: "key1", ID: quota.NewID(time.Now()), Costs: costs}
			for _, cost := range costs {
				c.Limits = append(c.Limits, quota.LimitsOf(cost.Bucket, m.limits)...)
			}
			var d quota.Decision
			var err error
			if m.holds && costs[0].Units > 1 {
				d, err = hold(context.Background(), l, c)
			} else {
				d, err = l.Charge(context.Background(), c)
			}
			switch {
			case err != nil:
				return err
			case !d.Allowed:
				denied++
				continue
			}
			line := c.ID
			for _, cost := range costs {
				line += fmt.Sprintf(" %s=%d", cost.Bucket, cost.Units)
			}
			if _, err := os.Stdout.WriteString(line + "\n"); err != nil {
				return err
			}
		}
	}
	return nil
}

// settleLate holds units in two buckets 12 times. In turn, it settles less than it held, settles
// more, settles late, or does not settle. It prints the units that each bucket must then have used.
func (m mix) settleLate(l *ledger.Ledger) error {
	ctx := context.Background()
	for i := range 12 {
		id := quota.NewID(time.Now())
		r := quota.Reserve{Credential: "key1", ID: quota.ReservationID(id, "input/x", "money"),
			Costs: []quota.Cost{{Bucket: "input/x", Units: 10}, {Bucket: "money", Units: 3}},
			TTL:   time.Hour, Lapse: quota.LapseCharge, Limits: m.limits}
		truth := []quota.Cost{{Bucket: "input/x", Units: 4}, {Bucket: "money", Units: 0}}
		switch i % 4 {
		case 1:
			truth = []quota.Cost{{Bucket: "input/x", Units: 14}, {Bucket: "money", Units: 4}}
		case 2, 3:
			r.TTL = time.Millisecond
		}
		if d, err := l.Reserve(ctx, r); err != nil || !d.Allowed {
			return fmt.Errorf("%+v, %w", d, err)
		}
		if i%4 == 3 { // the hold lapses into a charge
			truth = r.Costs
		} else if _, err := l.Settle(ctx, quota.Settle{Credential: "key1", Reservation: r.ID,
			ID: id + "s", Costs: truth, Limits: m.limits}); err != nil {
			return err
		}
		fmt.Println(truth[0].Units, truth[1].Units)
	}
	return nil
}

// correct takes two units off the newest entries, which makes room for others.
func (m mix) correct(l *ledger.Ledger) error {
	a := quota.Adjust{Credential: "key1", ID: quota.NewID(time.Now()), Bucket: "default", Units: -2,
		Limits: m.limits}
	_, err := l.Adjust(context.Background(), a)
	if err == nil {
		_, err = os.Stdout.WriteString(a.ID + " default=-2\n")
	}
	return err
}

// hold holds and settles the units of a charge.
func hold(ctx context.Context, l *ledger.Ledger, c quota.Charge) (quota.Decision, error) {
	id := quota.ReservationID(c.ID, c.Costs[0].Bucket)
	d, err := l.Reserve(ctx, quota.Reserve{Credential: c.Credential, ID: id, Costs: c.Costs,
		Limits: c.Limits, TTL: time.Hour, Lapse: quota.LapseCharge})
	if err != nil || !d.Allowed {
		return d, err
	}
	return l.Settle(ctx, quota.Settle{Credential: c.Credential, Reservation: id, ID: c.ID,
		Costs: c.Costs, Limits: c.Limits})
}

// process is a running child.
type process struct {
	*exec.Cmd
	start  io.Closer
	lines  *bufio.Scanner
	stderr *strings.Builder
}

func startChild(t testing.TB, ledgerURL, mix string) *process {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childURL+"="+ledgerURL, childMix+"="+mix)
	stderr := new(strings.Builder)
	cmd.Stderr = stderr
	stdin, err := cmd.StdinPipe()
	must(t, err)
	stdout, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	p := &process{cmd, stdin, bufio.NewScanner(stdout), stderr}
	if !p.lines.Scan() || p.lines.Text() != "ready" {
		cmd.Wait()
		t.Fatalf("child: %q, %s", p.lines.Text(), stderr)
	}
	return p
}
