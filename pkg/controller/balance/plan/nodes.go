// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"strings"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// ParseNodes reads bounds as cluster-autoscaler takes them by flag, with the excess in third place:
// "min:max:excess:namespace.name". Without it, "min:max:namespace.name", the excess is 0.
func ParseNodes(text string) (namespace, name string, bounds v1alpha1.Bounds, err error) {
	parts := strings.Split(text, ":")
	limits := parts[:len(parts)-1]
	if len(limits) == 2 {
		limits = append(limits[:2:2], "0")
	}
	namespace, name, _ = strings.Cut(parts[len(parts)-1], ".")
	if len(limits) != 3 || namespace == "" || name == "" {
		return "", "", bounds, fmt.Errorf("%.80q: write min:max:excess:namespace.name, as in 1:10:2:default.pool-z1", text)
	}
	if bounds, err = v1alpha1.ParseBounds(strings.Join(limits, ":")); err != nil {
		return "", "", bounds, fmt.Errorf("%.80q: %w", text, err)
	}
	return namespace, name, bounds, nil
}
