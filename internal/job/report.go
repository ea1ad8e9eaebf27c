package job

import (
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

// reportTotal is the sum of a report's lines, which are units=N, bucket=B units=N or method=M
// count=N.
type reportTotal struct {
	units map[string]int64 // by bucket
	lines int
	bad   int    // lines that cannot be read
	first string // first bad line, with its number
}

func (t *reportTotal) add(r *run, line string) {
	t.lines++
	if strings.TrimSpace(line) == "" {
		return
	}
	costs, err := r.parseLine(line)
	for _, c := range costs {
		if t.units[c.Bucket] > quota.MaxUnits-c.Units {
			err = errors.New("too many units")
		}
		if err == nil {
			t.units[c.Bucket] += c.Units
		}
	}
	if err != nil {
		if t.bad++; t.bad == 1 {
			t.first = fmt.Sprintf("line %d: %.80q: %v", t.lines, line, err)
		}
	}
}

var errReportLine = errors.New("write units=N, bucket=B units=N or method=M count=N")

func (r *run) parseLine(line string) ([]quota.Cost, error) {
	values := make(map[string]string)
	for _, word := range strings.Fields(line) {
		name, value, ok := strings.Cut(word, "=")
		if _, again := values[name]; !ok || again || value == "" {
			return nil, errReportLine
		}
		values[name] = value
	}
	number := func(name string) (int64, error) {
		n, err := strconv.ParseInt(values[name], 10, 64)
		if err != nil || n < 0 || n > quota.MaxUnits {
			return 0, fmt.Errorf("%s=%.40s: must be a whole number up to %d", name, values[name],
				int64(quota.MaxUnits))
		}
		return n, nil
	}
	switch strings.Join(slices.Sorted(maps.Keys(values)), " ") {
	case "method":
		return r.budget.Costs(quota.Call{Method: values["method"], Count: 1})
	case "count method":
		count, err := number("count")
		if err != nil {
			return nil, err
		}
		costs, err := r.budget.Costs(quota.Call{Method: values["method"], Count: max(count, 1)})
		for i := range costs {
			costs[i].Units *= min(count, 1)
		}
		return costs, err
	case "units", "bucket units":
		units, err := number("units")
		if err != nil {
			return nil, err
		}
		bucket, err := r.bucketOf(values["bucket"])
		return []quota.Cost{{Bucket: bucket, Units: units}}, err
	}
	return nil, errReportLine
}

// bucketOf returns the bucket of a line. Without a name, it is the only bucket held. A bucket that
// is held as the sum of its parts does not count.
func (r *run) bucketOf(name string) (string, error) {
	if name != "" {
		if err := quota.CheckBucket(name); err != nil || r.knowsBucket(name) {
			return name, err
		}
		return "", fmt.Errorf("unknown bucket %q: no limit or price names it", name)
	}
	own := slices.DeleteFunc(slices.Collect(maps.Keys(r.out.Held)),
		func(bucket string) bool { return isSum(bucket, r.out.Held) })
	if len(own) == 1 {
		return own[0], nil
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
	lines       Lines
	total       reportTotal
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
	p := &reportPipe{read: read, write: write, ended: make(chan struct{}),
		total: reportTotal{units: make(map[string]int64)}}
	p.lines = Lines{Max: maxLine, Each: func(line string, cut bool) {
		if cut { // the mark makes the line unreadable
			line = line[:80] + " …"
		}
		p.total.add(r, line)
	}}
	go func() {
		defer close(p.ended)
		_, _ = io.Copy(&p.lines, p.read) // until the write ends are closed, or all stops it
	}()
	return p, nil
}

// all returns the total so far. Descendants of the command may still have the pipe open.
func (p *reportPipe) all() reportTotal {
	_ = p.read.SetReadDeadline(time.Now())
	<-p.ended
	_ = p.read.SetReadDeadline(time.Time{})
	p.drain()
	p.read.Close()
	p.lines.Flush()
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
			_, _ = p.lines.Write(page[:n])
		}
		return true
	})
}
