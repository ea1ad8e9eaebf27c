package redisledger

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"quotabudget/internal/ledger/redistest"
)

// spend is one charge of a concurrent history, and spent its answer.
type spend struct{ units, limit int64 }

type spent struct {
	allowed   bool
	remaining int64
}

// spending is a bucket under one limit, whose window is longer than the history.
var spending = porcupine.Model{
	Init: func() any { return int64(0) },
	Step: func(state, input, output any) (bool, any) {
		used, in, out := state.(int64), input.(spend), output.(spent)
		fits := used+in.units <= in.limit
		if fits {
			used += in.units
		}
		return out == spent{fits, in.limit - used}, used
	},
}

// For the answers of callers in several processes there is an order that explains them all.
func TestAnOrderExplainsAllAnswers(t *testing.T) {
	t.Parallel()
	s := redistest.Start(t, redistest.Options{})
	var mu sync.Mutex
	var history []porcupine.Operation
	began := time.Now()
	var all sync.WaitGroup
	for process := range 3 {
		l := open(t, s.URL())
		for caller := range 5 { // who is under way at once decides how long the search takes
			all.Go(func() {
				for range 24 {
					in := spend{1 + rand.Int64N(9), hundred[0].Units}
					call := time.Since(began)
					d, err := l.Charge(context.Background(), one("k", in.units))
					if err != nil {
						t.Error(err)
					}
					op := porcupine.Operation{
						ClientId: 5*process + caller, Input: in, Call: call.Nanoseconds(),
						Output: spent{d.Allowed, d.Remaining["default"]},
						Return: time.Since(began).Nanoseconds(),
					}
					mu.Lock()
					history = append(history, op)
					mu.Unlock()
				}
			})
		}
	}
	all.Wait()
	result := porcupine.CheckOperationsTimeout(spending, history, time.Minute)
	if result != porcupine.Ok {
		t.Errorf("%s for %d charges", result, len(history))
	}
}
