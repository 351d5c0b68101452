// SPDX-License-Identifier: Apache-2.0

package plan

import "github.com/evenkeel/evenkeel/pkg/fit"

// placeNominated places the pods that are nominated for machines which their owners have claimed, and
// returns the other pods. Each such pod keeps its machine until that opens.
func (r *round) placeNominated(pods []*fit.Pod) []*fit.Pod {
	var left []*fit.Pod
	for _, p := range pods {
		node := r.Nominated[p.Object.UID]
		if r.roles[node].claimedBy.Owns(p.Object) {
			r.nominated[node] = append(r.nominated[node], p)
			r.plan.Pods[p.Name()] = Coming
			continue
		}
		left = append(left, p)
	}
	return left
}
