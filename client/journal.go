package client

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"sync"
)

// Journal is a file of settlements that the server may not have booked yet: a line of JSON for
// each, and another line once it is booked. Each process needs its own file.
type Journal struct {
	Path string

	mu      sync.Mutex
	read    bool // waiting is valid
	waiting int  // settlements not yet booked
}

type line struct {
	Hold string           `json:"hold"`
	Used map[string]int64 `json:"used,omitempty"`
	Done bool             `json:"done,omitempty"`
}

// keep writes the usage of a call, and returns once it is on disk.
func (j *Journal) keep(hold string, used map[string]int64) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if !j.read { // lines of an earlier process stay until they are replayed
		if _, err := j.load(); err != nil {
			return err
		}
	}
	err := j.write(line{Hold: hold, Used: used})
	if err == nil {
		j.waiting++
	}
	return err
}

// drop records that the server has booked a settlement. It empties the file once nothing waits.
func (j *Journal) drop(hold string) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.waiting--; j.waiting <= 0 {
		j.waiting = 0
		return os.Truncate(j.Path, 0)
	}
	return j.write(line{Hold: hold, Done: true})
}

func (j *Journal) write(l line) (err error) {
	text, err := json.Marshal(l)
	if err != nil {
		return err
	}
	file, err := os.OpenFile(j.Path, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("quota: journal: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	// the first line break ends a line that a crash cut off
	if _, err := fmt.Fprintf(file, "\n%s\n", text); err != nil {
		return fmt.Errorf("quota: journal: %w", err)
	}
	return file.Sync()
}

// open returns the waiting lines, oldest first. It skips a line that a crash cut off: its
// settlement was never sent, and the hold lapses into a charge.
func (j *Journal) open() ([]line, error) {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.load()
}

func (j *Journal) load() (waiting []line, err error) {
	text, err := os.ReadFile(j.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("quota: journal: %w", err)
	}
	for row := range bytes.Lines(text) {
		var l line
		if json.Unmarshal(row, &l) != nil || l.Hold == "" {
			continue
		}
		if !l.Done {
			waiting = append(waiting, l)
			continue
		}
		for i, w := range waiting {
			if w.Hold == l.Hold {
				waiting = append(waiting[:i], waiting[i+1:]...)
				break
			}
		}
	}
	j.read, j.waiting = true, len(waiting)
	return waiting, nil
}
