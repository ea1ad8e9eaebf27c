package sqlitestore_test

import (
	"context"
	"fmt"
	"os"
	osexec "os/exec"
	"strings"
	"testing"
	"time"

	"quotabudget/internal/quota"
)

// childFile, in the environment, makes this binary a process that holds and settles on that file.
const childFile = "SQLITESTORE_TEST_CHILD"

func TestMain(m *testing.M) {
	for name, do := range map[string]func(string) error{childFile: child, busyFile: busy} {
		path := os.Getenv(name)
		if path == "" {
			continue
		}
		if err := do(path); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// heldLimits are of what twenty processes hold at once, and come to use.
func heldLimits() []quota.Limit {
	return []quota.Limit{
		{Bucket: "input/x", Units: 100_000, Window: quota.Sliding(24 * time.Hour)},
		{Bucket: "money", Units: 100_000, Window: quota.Sliding(24 * time.Hour)},
	}
}

// child holds units in two buckets 30 times. It settles less, settles more, settles late, leaves it
// at that, and so on, and prints what that comes to in each bucket.
func child(path string) error {
	ctx := context.Background()
	l, err := openAt(ctx, path)
	if err != nil {
		return err
	}
	defer l.Close()
	for i := range 32 {
		id := quota.NewID(time.Now())
		r := quota.Reserve{
			Credential: "key1", ID: quota.ReservationID(id, "input/x", "money"),
			Costs: []quota.Cost{{Bucket: "input/x", Units: 10}, {Bucket: "money", Units: 3}},
			TTL:   time.Hour, Lapse: quota.LapseCharge, Limits: heldLimits(),
		}
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
		if i%4 == 3 { // nobody settles it
			fmt.Println("10 3")
			continue
		}
		_, err := l.Settle(ctx, quota.Settle{Credential: "key1", Reservation: r.ID, ID: id + "s",
			Costs: truth, Limits: heldLimits()})
		if err != nil {
			return err
		}
		fmt.Println(truth[0].Units, truth[1].Units)
	}
	return nil
}

// Twenty processes hold, settle in time and late, or let holds lapse: what is used in the end is
// what they say, to the unit.
func TestTwentyProcessesHoldAndSettle(t *testing.T) {
	path := file(t)
	var children []*osexec.Cmd
	var outputs []*strings.Builder
	for range 20 {
		c, out := osexec.CommandContext(t.Context(), os.Args[0]), &strings.Builder{}
		c.Env = append(os.Environ(), childFile+"="+path)
		c.Stdout, c.Stderr = out, out
		must(t, c.Start())
		children, outputs = append(children, c), append(outputs, out)
	}
	want := make([]int64, 2)
	for i, c := range children {
		if err := c.Wait(); err != nil {
			t.Fatalf("%v: %s", err, outputs[i])
		}
		for line := range strings.Lines(outputs[i].String()) {
			var input, money int64
			if _, err := fmt.Sscan(line, &input, &money); err != nil {
				t.Fatal(line, err)
			}
			want[0], want[1] = want[0]+input, want[1]+money
		}
	}
	l := openEnv(t, path)
	l.Now = func() time.Time { return time.Now().Add(time.Minute) } // all have lapsed by then
	u, err := l.Usage(t.Context(), "key1", heldLimits())
	must(t, err)
	for i, b := range u.Buckets {
		found, err := l.Check(t.Context(), "key1", b.Bucket, false)
		if b.Held != 0 || b.Limits[0].Used != want[i] || err != nil || len(found) > 0 {
			t.Errorf("%+v, want %d used; found %+v, %v", b, want[i], found, err)
		}
	}
}
