// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
)

// redraw writes report.md and the charts of a directory again, from its results.json. It measures
// nothing.
func redraw(dir string) error {
	if dir == "" {
		return errors.New("-redraw needs the directory of a report: -out")
	}
	r, err := readReport(filepath.Join(dir, resultsName))
	if err != nil {
		return err
	}
	return r.write(dir)
}

// readReport reads the report from what its figures were written to.
func readReport(path string) (*report, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	r := new(report)
	if err := json.Unmarshal(data, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, f := range r.Figures {
		res, err := f.measured()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		r.Results = append(r.Results, res)
	}
	r.Figures = nil
	return r, nil
}

// measured returns the result that was written as f.
func (f figures) measured() (result, error) {
	res := f.result
	if name := res.file(); name == "" || filepath.Base(name) != name {
		return result{}, fmt.Errorf("the name %q can't be a file's", res.Workload)
	}
	if len(res.Metrics) == 0 {
		return result{}, fmt.Errorf("%q has no metrics", res.Workload)
	}
	for _, p := range f.Outcomes {
		o := outcome{Peer: p.Peer, Left: p.Left}
		for _, values := range p.RawValues {
			if len(values) != len(res.Metrics) {
				return result{}, fmt.Errorf("%q: a round of %s has %d values for %d metrics", res.Workload, p.Peer, len(values), len(res.Metrics))
			}
			row := make([]float64, len(values))
			for i, v := range values {
				row[i] = math.NaN()
				if v != nil {
					row[i] = *v
				}
			}
			o.Rounds = append(o.Rounds, row)
		}
		res.Peers = append(res.Peers, o)
	}
	return res, nil
}
