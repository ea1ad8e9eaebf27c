package serve

import (
	"errors"
	"log/slog"
	"sync"
	"time"

	"quotabudget/internal/quota"
)

// sources logs outages of the catalogue and the ledger without a line for each request: the first
// failure of each, one a minute after that, and the end.
type sources struct {
	log *slog.Logger

	catalogue, ledger sourceState
}

// sourceState is the outage of one source.
type sourceState struct {
	mu     sync.Mutex
	away   bool      // a failure was logged, and nothing could be read since
	logged time.Time // the last failure that was
}

// failed logs an error of either source.
func (s *sources) failed(err error) {
	if errors.Is(err, quota.ErrUnreachable) || errors.Is(err, quota.ErrLedgerUnusable) {
		s.ledger.failed(s.log, "cannot read the ledger", err)
		return
	}
	s.catalogue.failed(s.log, "cannot read the catalogue", err)
}

// readCatalogue notes that the catalogue could be read.
func (s *sources) readCatalogue() { s.catalogue.read(s.log, "the catalogue can be read again") }

// readLedger notes that the ledger could be read.
func (s *sources) readLedger() { s.ledger.read(s.log, "the ledger can be read again") }

// failed logs at most once a minute, so that a source that comes and goes does not fill the log.
func (s *sourceState) failed(log *slog.Logger, text string, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := time.Now(); now.Sub(s.logged) >= time.Minute {
		log.Error(text, "error", err)
		s.away, s.logged = true, now
	}
}

func (s *sourceState) read(log *slog.Logger, text string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.away {
		log.Info(text)
		s.away = false
	}
}
