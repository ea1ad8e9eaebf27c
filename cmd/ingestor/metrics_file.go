package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"quotabudget/internal/catalog"
	"quotabudget/internal/cli"
	"quotabudget/internal/daemon"
	"quotabudget/internal/ingest"
	"quotabudget/internal/quota"
)

// metricsFile is the metrics of a single sweep, in a file for the textfile collector of
// Prometheus's node exporter.
type metricsFile struct {
	path    string // "" for none
	exports bool   // the metrics are also sent to an OpenTelemetry collector
	began   time.Time
	sum     ingest.Summary
	// final state of budget and charts; nil if they were never open
	rest prometheus.Gatherer
}

// check checks that the file can be created, before anything is spent.
func (m *metricsFile) check() error {
	if m.path == "" {
		return nil
	}
	try, err := os.CreateTemp(filepath.Dir(m.path), filepath.Base(m.path))
	if err != nil {
		return m.problem(err)
	}
	return errors.Join(try.Close(), os.Remove(try.Name()))
}

// look reads the state at the end of a sweep, while ledger and catalogue are open.
func (m *metricsFile) look(st *deps, sum ingest.Summary) {
	m.sum = sum
	if m.path == "" && !m.exports {
		return
	}
	registry := prometheus.NewRegistry()
	charts := func() (*catalog.Catalog, []string) { return st.catalog, regionNames(st.cfg) }
	registry.MustRegister(daemon.BuildInfo("ingestor"),
		daemon.NewBudgetMetrics(func() []*quota.Budget { return []*quota.Budget{st.budget} }, st.log),
		daemon.NewChartMetrics(charts, false, st.log))
	m.rest = prometheus.GathererFunc(again(registry.Gather()))
}

func again[T any](gathered T, err error) func() (T, error) {
	return func() (T, error) { return gathered, err }
}

// all returns the metrics of the sweep, which ended with err.
func (m *metricsFile) all(ended error) prometheus.Gatherers {
	once := daemon.OnceMetrics{Began: m.began, ExitCode: cli.Code(ended), Summary: m.sum}
	all := prometheus.Gatherers{once.Registry()}
	if m.rest != nil {
		all = append(all, m.rest)
	}
	return all
}

// write replaces the file in one step, whatever the result of the sweep. It returns the program's
// error: a file that cannot be written needs attention even if the sweep succeeded.
func (m *metricsFile) write(ended error) error {
	if m.path == "" {
		return ended
	}
	err := prometheus.WriteToTextfile(m.path, m.all(ended))
	if err == nil {
		return ended
	}
	if code := cli.Code(ended); code == cli.ExitOK || code == cli.ExitExhausted {
		return m.problem(err)
	}
	return errors.Join(ended, m.problem(err))
}

func (m *metricsFile) problem(err error) error {
	if about, ok := errors.AsType[*fs.PathError](err); ok {
		err = about.Err
	}
	return cli.Hint(fmt.Errorf("metrics file %s cannot be written: %w", m.path, err),
		"its folder must exist and be writable by the user that runs this")
}
