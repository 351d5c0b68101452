// SPDX-License-Identifier: Apache-2.0

package e2e

import "fmt"

// What expectations wait for.
const (
	// inclusiveAccounting counts a reserve inside spec.replicas.
	inclusiveAccounting = "inclusive accounting"
)

// pending are the expectations that our binary cannot meet yet, by story and expectation, with what they wait for. This is the
// only place that excuses anything. Make one of them hold, and the suite fails until it is taken out here.
var pending = map[string]string{
	"a reserve of two is added: gardenlet finds every node ready at rest":                                           inclusiveAccounting,
	"a reserve of two is added: gardenlet finds nodes not ready no longer than with stock, and for no other reason": inclusiveAccounting,

	"a Shoot with a reserve hibernates and wakes up: gardenlet finds every node ready at rest":                                           inclusiveAccounting,
	"a Shoot with a reserve hibernates and wakes up: gardenlet finds nodes not ready no longer than with stock, and for no other reason": inclusiveAccounting,
}

// expect judges an expectation of a story. A story goes on whatever it is, and fails in the end with all that is wrong.
func (r *row) expect(what string, problem error) {
	name := r.story + ": " + what
	awaited, waits := pending[name]
	switch waits = waits && r.image == evenkeel; {
	case waits && problem == nil:
		r.wrong = append(r.wrong, fmt.Sprintf("%q holds now: take it off the list", name))
	case waits:
		r.note("pending %s: %s (%.300v)", awaited, what, problem)
	case problem != nil:
		r.wrong = append(r.wrong, fmt.Sprintf("%s, %s: %v", binaryName(r.image), name, problem))
	}
}
