// SPDX-License-Identifier: Apache-2.0

package cli

import (
	tea "charm.land/bubbletea/v2"

	"github.com/asynclock/asynclock-go/internal/board"
	"github.com/asynclock/asynclock-go/internal/plain"
)

// press does what a key of the keyboard is for.
func (m *top) press(key tea.KeyPressMsg) tea.Cmd {
	name := key.String()
	if name == "ctrl+c" {
		return tea.Quit
	}
	switch m.mode {
	case modeFilter, modeForce:
		return m.typing(key)
	case modeDetail:
		switch name {
		case "q":
			return tea.Quit
		case "enter", "esc":
			m.mode = modeTable
			m.arrange()
		case "u":
			m.askForce()
		}
		return nil
	default:
		return m.pressInTable(name)
	}
}

func (m *top) pressInTable(name string) tea.Cmd {
	m.note = ""
	switch name {
	case "q":
		return tea.Quit
	case "up", "k":
		m.move(-1)
	case "down", "j":
		m.move(1)
	case "pgup":
		m.move(-m.page())
	case "pgdown":
		m.move(m.page())
	case "home":
		m.move(-len(m.shown))
	case "end":
		m.move(len(m.shown))
	case "s":
		m.sortBy = (m.sortBy + 1) % board.Columns
		m.arrange()
	case "r":
		m.reverse = !m.reverse
		m.arrange()
	case "esc":
		m.filter = ""
		m.arrange()
	case "/":
		m.mode, m.typed = modeFilter, m.filter
	case "enter":
		if m.place() >= 0 {
			m.mode, m.detail, m.unseen = modeDetail, nil, nil
			return m.inspect()
		}
	case "u":
		m.askForce()
	}
	return nil
}

// askForce asks the user to type the key, if somebody has it.
func (m *top) askForce() {
	row := m.board.Rows[m.chosen]
	if row == nil || !row.Held {
		m.note = "nobody holds it"
		return
	}
	m.target, m.typed, m.note, m.mode = row.Info, "", "", modeForce
}

// paste adds a text that was pasted where the user types.
func (m *top) paste(text string) {
	if m.mode == modeFilter || m.mode == modeForce {
		m.typed += text
	}
	if m.mode == modeFilter {
		m.filter = m.typed
		m.arrange()
	}
}

// typing changes the text that the user types.
func (m *top) typing(key tea.KeyPressMsg) tea.Cmd {
	switch name := key.String(); name {
	case "esc":
		m.mode = modeTable
	case "enter":
		return m.entered()
	case "backspace":
		if runes := []rune(m.typed); len(runes) > 0 {
			m.typed = string(runes[:len(runes)-1])
			m.paste("")
		}
	default:
		m.paste(key.Text)
	}
	return nil
}

// entered ends the typing.
func (m *top) entered() tea.Cmd {
	forces := m.mode == modeForce
	m.mode = modeTable
	switch {
	case !forces:
		return nil
	case !board.IsTyped(m.typed, m.target.Key):
		m.note = "that is another key; nothing was taken"
		return nil
	}
	m.note = "taking " + plain.Text(m.target.Key)
	return m.force()
}
