package daemon

import "github.com/prometheus/client_golang/prometheus"

// reloadMetrics are named as Prometheus names those of its own configuration.
type reloadMetrics struct {
	total      *prometheus.CounterVec
	successful prometheus.Gauge
	succeeded  prometheus.Gauge
}

// newReloadMetrics counts the configuration that the daemon begins with as one that was loaded.
func newReloadMetrics() reloadMetrics {
	m := reloadMetrics{
		total: counters("ingest_reloads_total",
			"Configurations reloaded, by whether they were accepted.", "result"),
		successful: prometheus.NewGauge(prometheus.GaugeOpts{Name: "ingest_config_last_reload_successful",
			Help: "Whether the last configuration that was loaded was accepted."}),
		succeeded: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "ingest_config_last_reload_success_timestamp_seconds",
			Help: "When the configuration in force was loaded."}),
	}
	m.total.WithLabelValues("accepted")
	m.total.WithLabelValues("refused")
	m.successful.Set(1)
	m.succeeded.SetToCurrentTime()
	return m
}

// done counts a configuration that was loaded again.
func (m reloadMetrics) done(err error) {
	if err != nil {
		m.total.WithLabelValues("refused").Inc()
		m.successful.Set(0)
		return
	}
	m.total.WithLabelValues("accepted").Inc()
	m.successful.Set(1)
	m.succeeded.SetToCurrentTime()
}
