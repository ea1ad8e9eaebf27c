package sqliteledger

import "testing"

func TestTwentyProcessesGetTheLimitBetweenThem(t *testing.T) {
	const processes, units = 20, 700
	path := file(t)
	var children []*process
	for range processes {
		children = append(children, startChild(t, path, units))
	}
	for _, p := range children {
		p.start.Close()
	}
	told := make(map[string]bool)
	for _, p := range children {
		for p.lines.Scan() {
			if told[p.lines.Text()] {
				t.Errorf("%s was allowed twice", p.lines.Text())
			}
			told[p.lines.Text()] = true
		}
		if err := p.Wait(); err != nil {
			t.Errorf("child: %v: %s", err, p.Stderr)
		}
	}
	if len(told) != units {
		t.Errorf("allowed %d of %d units", len(told), units)
	}
	entries := log(t, open(t, path))
	if len(entries) != units || entries[units-1].Total != units {
		t.Errorf("%d entries", len(entries))
	}
}

func TestKilledProcessLosesNoAllowedCharge(t *testing.T) {
	path := file(t)
	told := make(map[string]bool)
	for round, patience := range []int{1, 57, 400} {
		p := startChild(t, path, 1_000_000)
		p.start.Close()
		for i := 0; p.lines.Scan(); i++ {
			told[p.lines.Text()] = true
			if i == patience {
				if err := p.Process.Kill(); err != nil {
					t.Fatal(err)
				}
			}
		}
		p.Wait()

		l := open(t, path)
		entries := log(t, l)
		logged := make(map[string]bool)
		for _, e := range entries {
			logged[e.ID] = true
		}
		for id := range told {
			if !logged[id] {
				t.Errorf("round %d: %s was allowed, and is gone", round, id)
			}
		}
		if unanswered := len(entries) - len(told); unanswered > (round+1)*inFlight {
			t.Errorf("round %d: %d charges logged that nobody was told of", round, unanswered)
		}
		l.Close()
	}
}

func TestTwoLedgersSeeEachOther(t *testing.T) {
	path := file(t)
	one, two := open(t, path), open(t, path)
	for i := range 10 {
		l := one
		if i%2 == 1 {
			l = two
		}
		if d := mustCharge(t, l, aCharge(1, day(10))); d.Remaining["default"] != int64(9-i) {
			t.Fatalf("charge %d: %+v", i, d)
		}
	}
	for _, l := range []*Ledger{one, two} {
		if d, err := l.Charge(t.Context(), aCharge(1, day(10))); err != nil || d.Allowed || d.Limit != "default 24h" {
			t.Errorf("eleventh: %+v, %v", d, err)
		}
		if u, err := l.Usage(t.Context(), "key1", day(10)); err != nil || u.Buckets[0].Limits[0].Used != 10 {
			t.Errorf("usage: %+v, %v", u, err)
		}
	}
}
