// SPDX-License-Identifier: Apache-2.0

package release

import "time"

const (
	// lastingRefusals is how many attempts in a row are refused, in at least lastingTime, until a
	// right counts as missing. An API server that has just started may refuse what it allows later,
	// and a machine that opens without a nomination is lost to the owner.
	lastingRefusals = 5
	lastingTime     = 5 * time.Second
)

// refusals are the nominations that were refused last, by namespace: a Role may grant the right in
// some namespaces alone.
type refusals map[string]refusal

// refusal is how many attempts in a row were refused, and when the first and the last one were.
type refusal struct {
	count       int
	first, last time.Time
}

// record notes an attempt. It reports whether the right counts as missing from now on.
func (r refusals) record(namespace string, refused bool, now time.Time) (missing bool) {
	if !refused {
		delete(r, namespace)
		return false
	}
	was := r[namespace]
	is := refusal{count: was.count + 1, first: was.first, last: now}
	if was.count == 0 {
		is.first = now
	}
	r[namespace] = is
	return is.lasting() && !was.lasting()
}

func (r refusal) lasting() bool {
	return r.count >= lastingRefusals && r.last.Sub(r.first) >= lastingTime
}
