package job_test

import (
	"bytes"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"quotabudget/internal/job"
	"quotabudget/internal/ledger"
	"quotabudget/internal/ledger/redistest"
	"quotabudget/internal/quota"
)

// bench is a ledger, and the limits of one credential on it.
type bench struct {
	*testing.T
	ledger *ledger.Ledger
	limits []quota.Limit
	log    *lines
}

// lines collects log lines.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(text)
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

// onBoth runs a test on each kind of ledger.
func onBoth(t *testing.T, test func(*testing.T, *bench)) {
	t.Parallel()
	t.Run("sqlite", func(t *testing.T) {
		t.Parallel()
		test(t, open(t, "sqlite://"+filepath.Join(t.TempDir(), "ledger.db")))
	})
	t.Run("redis", func(t *testing.T) {
		t.Parallel()
		test(t, open(t, redistest.Start(t, redistest.Options{}).URL()))
	})
}

func open(t *testing.T, url string) *bench {
	l, err := ledger.Open(t.Context(), url)
	must(t, err)
	t.Cleanup(func() { l.Close() })
	return &bench{T: t, ledger: l, log: &lines{}, limits: []quota.Limit{
		{Bucket: "default", Units: 10, Window: quota.Sliding(24 * time.Hour)},
		{Bucket: "search_list", Units: 3, Window: quota.Sliding(24 * time.Hour)},
	}}
}

// job returns a job that runs a line of shell for 4 units.
func (b *bench) job(line string) *job.Job {
	return &job.Job{
		Command: job.Command{Args: []string{"sh", "-c", line}, Env: os.Environ(), Stderr: b.log},
		Budget: &quota.Budget{Ledger: b.ledger, Credential: "key1", Limits: b.limits,
			Prices: map[string][]quota.Cost{"search": {{Bucket: "default", Units: 2},
				{Bucket: "search_list", Units: 1}}}},
		Claims: b.ledger, Name: "nightly", Call: quota.Call{Units: 4},
		TTL: 10 * time.Minute, Log: slog.New(slog.NewTextHandler(b.log, nil)),
	}
}

// spent returns the sum of a bucket's entries and the units held.
func (b *bench) spent(bucket string) (spent, held int64) {
	b.Helper()
	usage, err := b.ledger.Usage(b.Context(), "key1", b.limits)
	must(b, err)
	for _, u := range usage.Buckets {
		if u.Bucket == bucket {
			spent, held = u.Limits[0].Used, u.Held
		}
	}
	return spent, held
}

func (b *bench) wantSpent(bucket string, want int64) {
	b.Helper()
	if spent, held := b.spent(bucket); spent != want || held != 0 {
		b.Errorf("%s: %d units spent, %d held; want %d and 0", bucket, spent, held, want)
	}
}

// run runs a job that must be started.
func (b *bench) run(j *job.Job) job.Outcome {
	b.Helper()
	out, err := j.Run(b.Context())
	must(b, err)
	return out
}

// must ends a test that cannot go on after an error.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
