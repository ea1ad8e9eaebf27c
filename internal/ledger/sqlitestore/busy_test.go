package sqlitestore_test

import (
	"context"
	"fmt"
	"io"
	"os"
	osexec "os/exec"
	"slices"
	"testing"
	"time"
)

// busyFile, in the environment, makes this binary a process that charges as fast as it can.
const busyFile = "SQLITESTORE_TEST_BUSY"

// busyTime is for how long.
const busyTime = 2 * time.Second

// busy charges on the file once its input ends, and prints how often it did.
func busy(path string) error {
	l, err := openAt(context.Background(), path)
	if err != nil {
		return err
	}
	defer l.Close()
	fmt.Println("ready")
	fmt.Scanln()
	n := 0
	for began := time.Now(); time.Since(began) < busyTime; n++ {
		if d, err := l.Charge(context.Background(), aCharge(1, wide)); err != nil || !d.Allowed {
			return fmt.Errorf("%+v, %w", d, err)
		}
	}
	fmt.Println(n)
	return nil
}

// BenchmarkProcesses is what processes on one file get together, by how many they are, against what
// one gets right before; and what the unluckiest of them gets, against an equal share.
func BenchmarkProcesses(b *testing.B) {
	for _, processes := range []int{1, 4, 16} {
		b.Run(fmt.Sprintf("processes=%d", processes), func(b *testing.B) {
			var one, sum, least int
			for range b.N {
				one += race(b, file(b), 1)[0]
				counts := race(b, file(b), processes)
				for _, n := range counts {
					sum += n
				}
				least += slices.Min(counts)
			}
			b.ReportMetric(0, "ns/op")
			b.ReportMetric(float64(sum)/float64(b.N)/busyTime.Seconds(), "charges/s")
			b.ReportMetric(float64(sum)/float64(one), "x-one")
			b.ReportMetric(float64(least*processes)/float64(sum), "least-of-share")
		})
	}
}

// race runs busy processes and returns how often each has charged.
func race(b *testing.B, path string, processes int) (counts []int) {
	b.Helper()
	type running struct {
		in  io.WriteCloser
		out io.Reader
		cmd *osexec.Cmd
	}
	var all []running
	for range processes {
		c := osexec.CommandContext(b.Context(), os.Args[0])
		c.Env, c.Stderr = append(os.Environ(), busyFile+"="+path), os.Stderr
		in, err := c.StdinPipe()
		must(b, err)
		out, err := c.StdoutPipe()
		if err == nil {
			err = c.Start()
		}
		var word string
		if err == nil {
			_, err = fmt.Fscanln(out, &word)
		}
		if err != nil || word != "ready" {
			b.Fatal(word, err)
		}
		all = append(all, running{in, out, c})
	}
	for _, r := range all {
		r.in.Close()
	}
	for _, r := range all {
		var n int
		if _, err := fmt.Fscanln(r.out, &n); err != nil {
			b.Fatal(err)
		}
		must(b, r.cmd.Wait())
		counts = append(counts, n)
	}
	return counts
}
