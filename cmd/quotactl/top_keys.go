package main

import (
	"fmt"
	"slices"
	"time"
)

// wish names what the program does after a key.
type wish struct {
	Do                 deed
	Credential, Bucket string
}

// deed is an action of the program for the view.
type deed int

// The deeds.
const (
	doNothing deed = iota
	doQuit
	doSuspend // the bucket, until its reset
	doResume  // the bucket
	doExplain // what denies a charge on the bucket
	doRefresh // read the ledger now
)

// topState is the state of the view. Its methods do no I/O and return the next state. The zero
// topState is its beginning; set Every.
type topState struct {
	Every time.Duration // between two readings, to say so

	pic      picture
	read     bool // there is a picture
	away     string
	since    time.Time // away
	outlook  []string
	paused   bool
	order    topOrder
	bucket   string // "" for all
	label    string // the filter in force
	typing   bool
	typed    string
	question *wish // asked, to be answered with y
	text     []string
	said     string // the result of the last deed
	selected int
}

// Paused reports whether no reading is wanted.
func (s topState) Paused() bool { return s.paused }

// Got takes a reading, or the error in its place: then the last one stays.
func (s topState) Got(pic picture, err error, now time.Time) topState {
	if err != nil {
		if s.away == "" {
			s.since = now
		}
		s.away = err.Error()
		return s
	}
	s.pic, s.read, s.away = pic, true, ""
	s.selected = max(0, min(s.selected, len(s.rows())-1))
	return s
}

// Foretold takes the forecasts in words.
func (s topState) Foretold(lines []string) topState {
	s.outlook = lines
	return s
}

// Done takes the result of a deed: lines to be read until a key is pressed, or one to be said.
func (s topState) Done(lines ...string) topState {
	if len(lines) > 1 {
		s.text = lines
		return s
	}
	s.said = ""
	if len(lines) == 1 {
		s.said = lines[0]
	}
	return s
}

// Key handles a key as bubbletea names it: "q", "up", "ctrl+c".
func (s topState) Key(key string) (topState, wish) {
	switch {
	case key == "ctrl+c":
		return s, wish{Do: doQuit}
	case s.typing:
		return s.write(key), wish{}
	case s.question != nil:
		asked := *s.question
		s.question, s.said = nil, "nothing was changed"
		if key == "y" || key == "Y" {
			s.said = ""
			return s, asked
		}
		return s, wish{}
	case s.text != nil:
		s.text = nil
		return s, wish{}
	}
	s.said = ""
	return s.command(key)
}

func (s topState) command(key string) (topState, wish) {
	switch key {
	case "q":
		return s, wish{Do: doQuit}
	case "p", "space":
		if s.paused = !s.paused; !s.paused {
			return s, wish{Do: doRefresh}
		}
	case "up", "k":
		s.selected = max(0, s.selected-1)
	case "down", "j":
		s.selected = max(0, min(s.selected+1, len(s.rows())-1))
	case "o":
		s.order = orders[(slices.Index(orders, s.sorted())+1)%len(orders)]
	case "b":
		names := append([]string{""}, s.buckets()...)
		s.bucket = names[(slices.Index(names, s.bucket)+1)%len(names)]
		s.selected = 0
	case "l", "/":
		s.typing, s.typed = true, s.label
	case "esc":
		s.bucket, s.label = "", ""
	case "?", "h":
		s.text = help
	case "s", "r", "e":
		return s.deed(key)
	}
	return s, wish{}
}

func (s topState) sorted() topOrder {
	if s.order == "" {
		return asConfigured
	}
	return s.order
}

// deed returns what a key does to the selected bucket. It asks before it changes anything.
func (s topState) deed(key string) (topState, wish) {
	rows := s.rows()
	if len(rows) == 0 {
		return s, wish{}
	}
	row := rows[min(s.selected, len(rows)-1)]
	of := wish{Credential: row.Credential.Credential, Bucket: row.Bucket.Bucket}
	closed := !time.Time(row.Bucket.SuspendedUntil).IsZero()
	switch {
	case key == "e":
		of.Do = doExplain
		return s, of
	case key == "s" && closed:
		s.said = fmt.Sprintf("%s is suspended already", of.Bucket)
		return s, wish{}
	case key == "r" && !closed:
		s.said = fmt.Sprintf("%s is not suspended", of.Bucket)
		return s, wish{}
	case key == "s":
		of.Do = doSuspend
	default:
		of.Do = doResume
	}
	s.question = &of
	return s, wish{}
}

// write edits the filter that is being typed.
func (s topState) write(key string) topState {
	runes := []rune(s.typed)
	switch {
	case key == "enter":
		s.typing, s.label = false, s.typed
	case key == "esc":
		s.typing = false
	case key == "backspace" && len(runes) > 0:
		s.typed = string(runes[:len(runes)-1])
	case key == "space":
		s.typed += " "
	case len([]rune(key)) == 1 && len(runes) < 100:
		s.typed += key
	}
	return s
}

var help = []string{
	"up, down   select a bucket",
	"e          explain: does a charge fit, and who has taken the units",
	"s, r       suspend the bucket until its reset, resume it; asks first",
	"b          show one bucket after the other, then all",
	"l          filter the charges by a label, such as job=nightly, or by a part of any value",
	"esc        show all again",
	"o          sort the buckets: as configured, fullest first, next reset first",
	"p          pause, and go on",
	"q          quit",
}
