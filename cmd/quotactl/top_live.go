package main

import (
	"context"
	"time"

	tea "charm.land/bubbletea/v2"

	"quotabudget/internal/cli"
)

// topLive shows the view on the terminal until it is left.
func (a *app) topLive(ctx context.Context, r *topReader, state topState) error {
	m := &topModel{ctx: ctx, reader: r, state: state, screen: a.Screen()}
	p := tea.NewProgram(m, tea.WithContext(ctx), tea.WithOutput(a.Stdout),
		tea.WithoutSignalHandler())
	_, err := p.Run()
	if ctx.Err() != nil {
		return nil
	}
	return err
}

// topModel joins the view with bubbletea: what the view wants is done aside, one at a time of each
// kind.
type topModel struct {
	ctx            context.Context
	reader         *topReader
	state          topState
	screen         cli.Screen
	lines          int
	reading, again bool
}

type (
	tickMsg    time.Time
	pictureMsg struct {
		picture
		outlook []string
		err     error
	}
	doneMsg []string
)

// Init implements tea.Model.
func (m *topModel) Init() tea.Cmd { return tea.Batch(m.read(), m.tick()) }

func (m *topModel) tick() tea.Cmd {
	return tea.Tick(m.state.Every, func(at time.Time) tea.Msg { return tickMsg(at) })
}

// read reads the ledger, unless that is under way.
func (m *topModel) read() tea.Cmd {
	if m.reading {
		m.again = true
		return nil
	}
	m.reading = true
	return func() tea.Msg {
		pic, err := m.reader.read(m.ctx, time.Now())
		msg := pictureMsg{picture: pic, err: err}
		if err == nil {
			msg.outlook = m.reader.outlook(m.ctx)
		}
		return msg
	}
}

// Update implements tea.Model.
func (m *topModel) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.screen.Width, m.lines = msg.Width, msg.Height
	case tickMsg:
		if m.state.Paused() {
			return m, m.tick()
		}
		return m, tea.Batch(m.read(), m.tick())
	case pictureMsg:
		m.reading = false
		m.state = m.state.Got(msg.picture, msg.err, time.Now())
		if msg.err == nil {
			m.state = m.state.Foretold(msg.outlook)
		}
		if m.again {
			m.again = false
			return m, m.read()
		}
	case doneMsg:
		m.state = m.state.Done(msg...)
		return m, m.read()
	case tea.KeyPressMsg:
		var w wish
		m.state, w = m.state.Key(msg.String())
		return m, m.grant(w)
	}
	return m, nil
}

func (m *topModel) grant(w wish) tea.Cmd {
	switch w.Do {
	case doNothing:
		return nil
	case doQuit:
		return tea.Quit
	case doRefresh:
		return m.read()
	}
	return func() tea.Msg { return doneMsg(m.reader.do(m.ctx, w)) }
}

// View implements tea.Model.
func (m *topModel) View() tea.View {
	v := tea.NewView(m.state.View(m.screen, max(1, m.lines), time.Now()))
	v.AltScreen = true
	return v
}
