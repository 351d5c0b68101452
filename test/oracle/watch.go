// SPDX-License-Identifier: Apache-2.0

package oracle

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/evenkeel/evenkeel/test/sim"
	"github.com/evenkeel/evenkeel/test/sim/storm"
)

// Seen is what happened on the way.
type Seen struct{}

// watch looks at every write. Hooks must not ask the server, so it keeps what it needs itself.
type watch struct {
	names map[string]string // of all machines there were, and what they are called when they are gone
}

func newWatch(w *storm.World) *watch {
	watch := &watch{names: map[string]string{}}
	w.AfterWrite(func(write sim.Write) error {
		if write.Resource == "machines" && write.Effect == sim.Added {
			watch.names[write.Name] = "<gone machine>"
		}
		return nil
	})
	return watch
}

// replacer replaces the names of all machines there were.
func (w *watch) replacer(now map[string]string) *strings.Replacer {
	names := maps.Clone(w.names)
	for name := range names {
		if now == nil {
			names[name] = "<machine>"
		}
	}
	maps.Copy(names, now)
	longest := slices.SortedFunc(maps.Keys(names), func(a, b string) int { return cmp.Or(len(b)-len(a), cmp.Compare(a, b)) })
	var pairs []string
	for _, name := range longest {
		pairs = append(pairs, name, names[name])
	}
	return strings.NewReplacer(pairs...)
}

func (w *watch) result() Seen { return Seen{} }
