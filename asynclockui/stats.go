// SPDX-License-Identifier: Apache-2.0

package asynclockui

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
)

// A statsView is what the template stats shows. Its groups are as in asynclock.Stats.
type statsView struct{ Groups []group }

type group struct {
	Name  string
	Facts []fact
}

func (p *page) showStats(w http.ResponseWriter, r *http.Request) {
	p.showLive(w, r, "stats", "", nil, func(context.Context) (any, error) { return p.statsView() })
}

func (p *page) statsView() (statsView, error) {
	text, err := json.Marshal(p.locks.Stats())
	if err != nil {
		return statsView{}, err
	}
	d := json.NewDecoder(bytes.NewReader(text))
	d.UseNumber()
	var v statsView
	return v, v.read(d)
}

// read adds the fields in their order, so a count that is new in a later release is here, too.
func (v *statsView) read(d *json.Decoder) error {
	var path []string // of the object that is being read
	name := ""        // of the value that comes next
	v.Groups = []group{{Name: "client"}}
	for d.More() || len(path) > 0 {
		token, err := d.Token()
		if err != nil {
			return err
		}
		switch t := token.(type) {
		case json.Delim:
			if t == '{' {
				path, name = append(path, name), ""
			} else {
				path = path[:len(path)-1]
			}
			continue
		case string:
			if name == "" {
				name = t
				continue
			}
			v.add(path, name, t)
		case json.Number:
			v.add(path, name, t.String())
		case bool:
			v.add(path, name, strconv.FormatBool(t))
		}
		name = ""
	}
	return nil
}

// add puts a count into the group of its top field.
func (v *statsView) add(path []string, name, text string) {
	in, names := "client", append(append([]string(nil), path[1:]...), name)
	if len(names) > 1 {
		in, names = names[0], names[1:]
	}
	i := len(v.Groups) - 1
	if in == "client" {
		i = 0
	} else if v.Groups[i].Name != in {
		v.Groups = append(v.Groups, group{Name: in})
		i++
	}
	v.Groups[i].Facts = append(v.Groups[i].Facts, fact{strings.ReplaceAll(strings.Join(names, ": "), "_", " "), text})
}

func number(n int64) string { return strconv.FormatInt(n, 10) }
