// SPDX-License-Identifier: Apache-2.0

package target

import corev1 "k8s.io/api/core/v1"

// MaxShapes is how many shapes of pods are remembered.
const MaxShapes = maxShapes

// Sharing returns a transform, and how many shapes it remembers.
func Sharing() (transform func(any) (any, error), remembered func() int) {
	s := &sharing{last: map[shape]*corev1.Pod{}}
	return s.stripAndShare, func() int { return len(s.last) }
}
