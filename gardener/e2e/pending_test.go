// SPDX-License-Identifier: Apache-2.0

package e2e

import "fmt"

// statusOfReplicas is a status of MachineDeployments that leaves out spares which are not in spec.replicas yet.
const statusOfReplicas = "a status that leaves out spares which boot"

// pending are the expectations that our binary cannot meet yet, by story and expectation, with what they wait for. This is the
// only place that excuses anything. Make one of them hold, and the suite fails until it is taken out here.
var pending = map[string]string{
	"reserve machines boot for ten minutes: the extension is content with map[evenkeel.machine.sapcloud.io/bounds:3:9:2]": statusOfReplicas,

	"reserve machines boot for ten minutes: the extension is content while they boot": statusOfReplicas,

	"reserve machines boot for ten minutes: the extension finds the Worker unhealthy no longer than with stock, and for no other reason": statusOfReplicas,
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
