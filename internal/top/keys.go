package top

import (
	"fmt"
	"slices"
	"time"
)

// Wish is what a key asks of the program.
type Wish struct {
	Do                 Deed
	Credential, Bucket string
}

// Deed is what a program can do for the view.
type Deed int

// The deeds.
const (
	Nothing Deed = iota
	Quit
	Suspend // the bucket, until its reset
	Resume  // the bucket
	Explain // what denies a charge on the bucket
	Refresh // read the ledger now
)

// State is the view. Its methods return the next one. The zero State is its beginning; set Every.
type State struct {
	Every time.Duration // between two readings, to say so

	pic      Picture
	read     bool // there is a picture
	away     string
	since    time.Time // away
	outlook  []string
	paused   bool
	order    Order
	bucket   string // "" for all
	label    string // the filter in force
	typing   bool
	typed    string
	question *Wish // asked, to be answered with y
	text     []string
	said     string // the result of the last deed
	selected int
}

// Paused reports whether no reading is wanted.
func (s State) Paused() bool { return s.paused }

// Got takes a reading, or the error in its place: then the last one stays.
func (s State) Got(pic Picture, err error, now time.Time) State {
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
func (s State) Foretold(lines []string) State {
	s.outlook = lines
	return s
}

// Done takes the result of a deed: lines to be read until a key is pressed, or one to be said.
func (s State) Done(lines ...string) State {
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
func (s State) Key(key string) (State, Wish) {
	switch {
	case key == "ctrl+c":
		return s, Wish{Do: Quit}
	case s.typing:
		return s.write(key), Wish{}
	case s.question != nil:
		wish := *s.question
		s.question, s.said = nil, "nothing was changed"
		if key == "y" || key == "Y" {
			s.said = ""
			return s, wish
		}
		return s, Wish{}
	case s.text != nil:
		s.text = nil
		return s, Wish{}
	}
	s.said = ""
	return s.command(key)
}

func (s State) command(key string) (State, Wish) {
	switch key {
	case "q":
		return s, Wish{Do: Quit}
	case "p", "space":
		if s.paused = !s.paused; !s.paused {
			return s, Wish{Do: Refresh}
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
	return s, Wish{}
}

func (s State) sorted() Order {
	if s.order == "" {
		return Configured
	}
	return s.order
}

// deed returns what a key does to the selected bucket. It asks before it changes anything.
func (s State) deed(key string) (State, Wish) {
	rows := s.rows()
	if len(rows) == 0 {
		return s, Wish{}
	}
	row := rows[min(s.selected, len(rows)-1)]
	of := Wish{Credential: row.Credential.Credential, Bucket: row.Bucket.Bucket}
	closed := !time.Time(row.Bucket.SuspendedUntil).IsZero()
	switch {
	case key == "e":
		of.Do = Explain
		return s, of
	case key == "s" && closed:
		s.said = fmt.Sprintf("%s is suspended already", of.Bucket)
		return s, Wish{}
	case key == "r" && !closed:
		s.said = fmt.Sprintf("%s is not suspended", of.Bucket)
		return s, Wish{}
	case key == "s":
		of.Do = Suspend
	default:
		of.Do = Resume
	}
	s.question = &of
	return s, Wish{}
}

// write edits the filter that is being typed.
func (s State) write(key string) State {
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
