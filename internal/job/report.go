package job

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"quotabudget/internal/quota"
)

// usage is the units that a command used.
type usage struct {
	costs []quota.Cost     // by bucket; buckets not listed used all that was held
	drawn map[string]int64 // the part of costs that is already booked
}

// used returns the units that the command has reported so far.
func (r *run) used() (u usage) {
	if r.out.Reservation != "" {
		u.drawn = r.drawn()
	}
	if r.report == nil {
		return u
	}
	total := r.report.all()
	u.costs = total.costs
	if total.bad > 0 {
		r.Log.Warn("the report has lines that cannot be read: no less than what was held is booked",
			"lines", total.bad, "first", total.first)
		for bucket, units := range r.out.Held {
			u.costs = atLeast(u.costs, bucket, units)
		}
	}
	return u
}

// atLeast raises the cost of a bucket to units, if it is lower.
func atLeast(costs []quota.Cost, bucket string, units int64) []quota.Cost {
	at := slices.IndexFunc(costs, func(c quota.Cost) bool { return c.Bucket == bucket })
	if at >= 0 {
		costs[at].Units = max(costs[at].Units, units)
	}
	return costs
}

// drawn returns the units that the command drew from the reservation. Once the reservation is gone,
// these are the run's entries in the log. If the ledger cannot report them, they are booked twice
// rather than not at all.
func (r *run) drawn() map[string]int64 {
	drawn := make(map[string]int64)
	buckets, _ := quota.HeldBuckets(r.out.Reservation)
	if len(buckets) != 1 { // a reservation of several buckets cannot be drawn on
		return nil
	}
	err := patiently(0, func(ctx context.Context) error {
		list, err := r.budget.Ledger.Reservations(ctx, r.budget.Credential, buckets[0])
		for _, held := range list {
			if held.ID == r.out.Reservation {
				drawn[held.Bucket] = held.Drawn
				return nil
			}
		}
		if err == nil {
			drawn[buckets[0]], err = r.logged(ctx, buckets[0])
		}
		return err
	})
	if err != nil {
		r.Log.Debug("cannot read what the command drew from the reservation", "error", err)
	}
	return drawn
}

// logged returns the units of the run's entries in a bucket since the hold, without the entry of
// a hold that lapsed.
func (r *run) logged(ctx context.Context, bucket string) (units int64, err error) {
	id, _, _ := quota.ParseReservation(r.out.Reservation)
	entries, err := r.budget.Ledger.Entries(ctx, quota.Query{Credential: r.budget.Credential,
		Bucket: bucket, Since: r.heldAt})
	for _, e := range entries {
		if e.Labels[quota.LabelRun] == r.out.Run && e.ID != id {
			units += e.Units
		}
	}
	return units, err
}

// reportTotal is the sum of a report's lines, which are units=N, bucket=B units=N or method=M
// count=N.
type reportTotal struct {
	costs []quota.Cost
	lines int
	bad   int    // lines that cannot be read
	first string // first bad line, with its number
}

// add adds the units of one line.
func (t *reportTotal) add(r *run, line string) {
	t.lines++
	if strings.TrimSpace(line) == "" {
		return
	}
	costs, err := r.parseLine(line)
	for _, c := range costs {
		if err == nil {
			t.costs, err = plus(t.costs, c)
		}
	}
	if err != nil {
		if t.bad++; t.bad == 1 {
			t.first = fmt.Sprintf("line %d: %.80q: %v", t.lines, line, err)
		}
	}
}

func plus(costs []quota.Cost, more quota.Cost) ([]quota.Cost, error) {
	at := slices.IndexFunc(costs, func(c quota.Cost) bool { return c.Bucket == more.Bucket })
	if at < 0 {
		return append(costs, more), nil
	}
	if costs[at].Units > quota.MaxUnits-more.Units {
		return costs, errors.New("too many units")
	}
	costs[at].Units += more.Units
	return costs, nil
}

// parseLine returns the costs in one line.
func (r *run) parseLine(line string) ([]quota.Cost, error) {
	values := make(map[string]string)
	for _, word := range strings.Fields(line) {
		name, value, ok := strings.Cut(word, "=")
		if _, again := values[name]; !ok || again || value == "" ||
			!slices.Contains([]string{"units", "bucket", "method", "count"}, name) {
			return nil, errors.New("write units=N, bucket=B units=N or method=M count=N")
		}
		values[name] = value
	}
	number := func(name string) (int64, error) {
		n, err := strconv.ParseInt(values[name], 10, 64)
		if err != nil || n < 0 || n > quota.MaxUnits {
			return 0, fmt.Errorf("%s=%.40s: must be a whole number", name, values[name])
		}
		return n, nil
	}
	_, counted := values["count"]
	switch method := values["method"]; {
	case method != "" && (values["bucket"] != "" || values["units"] != ""),
		method == "" && (counted || values["units"] == ""):
		return nil, errors.New("write units=N, bucket=B units=N or method=M count=N")
	case method != "":
		return r.priced(method, counted, number)
	}
	units, err := number("units")
	if err != nil {
		return nil, err
	}
	bucket, err := r.bucketOf(values["bucket"])
	return []quota.Cost{{Bucket: bucket, Units: units}}, err
}

// priced returns the costs of calls of a method.
func (r *run) priced(method string, counted bool,
	number func(string) (int64, error)) ([]quota.Cost, error) {
	count := int64(1)
	if counted {
		var err error
		if count, err = number("count"); err != nil {
			return nil, err
		}
	}
	costs, err := r.budget.Costs(quota.Call{Method: method, Count: max(count, 1)})
	if count == 0 {
		for i := range costs {
			costs[i].Units = 0
		}
	}
	return costs, err
}

// bucketOf returns the bucket of a line. Without a name, it is the only bucket held.
func (r *run) bucketOf(name string) (string, error) {
	if name != "" {
		if err := quota.CheckBucket(name); err != nil || r.knowsBucket(name) {
			return name, err
		}
		return "", fmt.Errorf("unknown bucket %q: no limit or price names it", name)
	}
	if len(r.out.Held) == 1 {
		for bucket := range r.out.Held {
			return bucket, nil
		}
	}
	if _, held := r.out.Held[quota.DefaultBucket]; held || len(r.out.Held) == 0 {
		return quota.DefaultBucket, nil
	}
	return "", errors.New("several buckets are held: write bucket=B units=N")
}

// knowsBucket reports whether a bucket, or the bucket that it is a part of, is held, has a limit or
// is in the price list.
func (r *run) knowsBucket(name string) bool {
	buckets := slices.Concat(r.Buckets, r.Budget.Split, r.Budget.Buckets(),
		slices.Collect(maps.Keys(r.out.Held)))
	whole := quota.WholeOf(name)
	return slices.Contains(buckets, name) ||
		slices.Contains(r.Budget.Split, whole) && slices.Contains(buckets, whole)
}

// maxLine is the maximum length of a line of a report, in bytes.
const maxLine = 4 << 10

// reportPipe is the pipe for a command's report. Lines are read and added up as they arrive, so the
// command never blocks, however much it writes.
type reportPipe struct {
	read, write *os.File
	run         *run
	total       reportTotal
	line        []byte // the last line, not yet complete
	ended       chan struct{}
}

func (r *run) newReportPipe() (*reportPipe, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	// Open for reading, too, the pipe outlives this process: if this process is killed, the command
	// does not get a SIGPIPE.
	if both, err := os.OpenFile(fmt.Sprintf("/proc/self/fd/%d", write.Fd()), os.O_RDWR,
		0); err == nil {
		write.Close()
		write = both
	}
	p := &reportPipe{read: read, write: write, run: r, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		_, _ = io.Copy(p, p.read) // until the write ends are closed, or all stops it
	}()
	return p, nil
}

// Write adds up the complete lines. It keeps only the start of a line that is too long.
func (p *reportPipe) Write(text []byte) (int, error) {
	for remaining := text; len(remaining) > 0; {
		part, after, complete := bytes.Cut(remaining, []byte("\n"))
		p.line = append(p.line, part[:min(len(part), maxLine+1-len(p.line))]...)
		if remaining = after; complete {
			p.endLine()
		}
	}
	return len(text), nil
}

func (p *reportPipe) endLine() {
	line := string(p.line)
	if len(line) > maxLine { // the mark makes the line unreadable
		line = line[:80] + " …"
	}
	p.total.add(p.run, line)
	p.line = p.line[:0]
}

// all returns the total so far. Descendants of the command may still have the pipe open.
func (p *reportPipe) all() reportTotal {
	_ = p.read.SetReadDeadline(time.Now())
	<-p.ended
	_ = p.read.SetReadDeadline(time.Time{})
	p.drain()
	p.read.Close()
	p.endLine()
	return p.total
}

// maxPipe is the maximum size of a pipe in bytes, unless root has raised it.
const maxPipe = 1 << 20

// drain reads the contents of the pipe without waiting for more. It stops at maxPipe, even if a
// descendant of the command keeps writing.
func (p *reportPipe) drain() {
	raw, err := p.read.SyscallConn()
	if err != nil {
		return
	}
	page := make([]byte, 64<<10)
	_ = raw.Read(func(fd uintptr) bool {
		for left := maxPipe; left > 0; {
			n, err := syscall.Read(int(fd), page)
			if err == syscall.EINTR {
				continue
			}
			if err != nil || n <= 0 {
				return true
			}
			left -= n
			_, _ = p.Write(page[:n])
		}
		return true
	})
}
