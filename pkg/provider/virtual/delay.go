// SPDX-License-Identifier: Apache-2.0

package virtual

import (
	"errors"
	"fmt"
	"hash/fnv"
	"time"
)

// Delay is how long machines take to boot: a fixed time ("2s"), or any time between two.
type Delay struct {
	From, To time.Duration
}

// ForMachine returns the boot delay of one machine. It depends only on the name, so that a run can
// be repeated and a restart changes nothing.
func (d Delay) ForMachine(machine string) time.Duration {
	if d.To <= d.From {
		return d.From
	}
	hash := fnv.New64a()
	hash.Write([]byte(machine))
	return d.From + time.Duration(hash.Sum64()%uint64(d.To-d.From+1))
}

func (d *Delay) decode(raw []byte) error {
	var from, to duration
	if from.decode(raw) == nil {
		*d = Delay{From: time.Duration(from), To: time.Duration(from)}
		return nil
	}
	if len(raw) == 0 || raw[0] != '{' {
		return errors.New(`must be a duration such as "2s", or from and to`)
	}
	if err := (object{"from": &from, "to": &to}).decode(raw); err != nil {
		return err
	}
	if from > to {
		return atPath("to", fmt.Errorf("must not be less than from (%s)", time.Duration(from)))
	}
	*d = Delay{From: time.Duration(from), To: time.Duration(to)}
	return nil
}

// duration parses a non-negative duration in Go's format ("1m30s").
type duration time.Duration

func (d *duration) decode(raw []byte) error {
	var text string
	if strictly(raw, &text) != nil {
		return errors.New(`must be a duration such as "2s"`)
	}
	parsed, err := time.ParseDuration(text)
	if err != nil || parsed < 0 {
		return fmt.Errorf(`%q must be a duration such as "2s" and not negative`, text)
	}
	*d = duration(parsed)
	return nil
}
