// SPDX-License-Identifier: Apache-2.0

package e2e

import "fmt"

// inclusiveAccounting counts a reserve inside spec.replicas, and leaves spares that are being made out of the status.
const inclusiveAccounting = "inclusive accounting"

// pending are the expectations that our binary cannot meet yet, by story and expectation, with what they wait for; and stories of which
// some expectation is not met, where it is a matter of time which. This is the only place that excuses anything. Make them hold, and
// the suite fails until they are taken out here.
var pending = map[string]string{
	"a reserve of two is added: gardenlet finds every node ready at rest":                                           inclusiveAccounting,
	"a reserve of two is added: gardenlet finds nodes not ready no longer than with stock, and for no other reason": inclusiveAccounting,

	"a Shoot with a reserve hibernates and wakes up: gardenlet finds every node ready at rest":                                           inclusiveAccounting,
	"a Shoot with a reserve hibernates and wakes up: gardenlet finds nodes not ready no longer than with stock, and for no other reason": inclusiveAccounting,

	"a reserve of two is added in two zones":                                               inclusiveAccounting,
	"nodes are rolled beside a reserve of two":                                             inclusiveAccounting,
	"reserve machines cannot be made":                                                      inclusiveAccounting,
	"reserve machines boot for ten minutes":                                                inclusiveAccounting,
	"a pool with a reserve is removed":                                                     inclusiveAccounting,
	"the maximum falls below what there is":                                                inclusiveAccounting,
	"the image is swapped back beside a reserve of two":                                    inclusiveAccounting,
	"the control plane migrates beside a reserve of two":                                   inclusiveAccounting,
	"Gardener's autoscaler adds two machines and takes them away, beside a reserve of two": inclusiveAccounting,
}

// expect judges an expectation of a story. A story goes on whatever it is, and fails in the end with all that is wrong.
func (r *row) expect(what string, problem error) {
	name := r.story + ": " + what
	awaited, waits := pending[name]
	whole, storyWaits := pending[r.story]
	switch ours := r.image == evenkeel; {
	case ours && storyWaits:
		if problem != nil {
			r.unmet++
			r.note("pending %s: %s (%.300v)", whole, what, problem)
		}
	case ours && waits && problem == nil:
		r.wrong = append(r.wrong, fmt.Sprintf("%q holds now: take it off the list", name))
	case ours && waits:
		r.note("pending %s: %s (%.300v)", awaited, what, problem)
	case problem != nil:
		r.wrong = append(r.wrong, fmt.Sprintf("%s, %s: %v", binaryName(r.image), name, problem))
	}
}

// verdict is all that is wrong with a story that has ended.
func (r *row) verdict() []string {
	if _, waits := pending[r.story]; waits && r.image == evenkeel && r.unmet == 0 {
		return append(r.wrong, fmt.Sprintf("%q holds now: take it off the list", r.story))
	}
	return r.wrong
}
