// SPDX-License-Identifier: Apache-2.0

package capacitybuffer

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	autoscaling "github.com/evenkeel/evenkeel/pkg/apis/autoscaling/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
	"github.com/evenkeel/evenkeel/pkg/controller/capacitybuffer/plan"
)

// Outcome is what a decision comes to, as in "3", "2 of 3 by q", or the reason why it is not known.
func Outcome(d plan.Decision) string {
	switch {
	case d.Problem != nil:
		return d.Problem.Reason
	case len(d.Quotas) > 0:
		return fmt.Sprintf("%d of %d by %s", d.Chunks, d.Asked, strings.Join(d.Quotas, ","))
	}
	return fmt.Sprint(d.Chunks)
}

// Requests are the Reserves to change, as in "a=2 b=-".
func Requests(p plan.Plan) string {
	var words []string
	for _, r := range p.Requests {
		if r.Machines == 0 {
			words = append(words, strings.TrimPrefix(r.Reserve.Name, "capacity-buffers.")+"=-")
			continue
		}
		words = append(words, fmt.Sprintf("%s=%d", r.Pool, r.Machines))
	}
	return strings.Join(words, " ")
}

// Spread is what the Reserves of a view ask for, as in "a=2 b=1".
func Spread(v plan.View) string {
	var words []string
	for _, r := range slices.SortedFunc(slices.Values(v.Reserves), func(a, b *autoscaling.Reserve) int { return cmp.Compare(a.Name, b.Name) }) {
		words = append(words, fmt.Sprintf("%s=%d", r.Spec.Pools.Names[0], r.Spec.Replicas))
	}
	return strings.Join(words, " ")
}

// After returns a view in which a plan has been carried out, and machines are as they are requested,
// but for MachineDeployments that are out.
func After(v plan.View, out ...string) plan.View {
	p := plan.New(v)
	next := v
	next.Buffers, next.Pools, next.Reserves, next.Free = nil, nil, slices.Clone(v.Reserves), p.Free
	for _, r := range p.Requests {
		next.Reserves = slices.DeleteFunc(next.Reserves, func(o *autoscaling.Reserve) bool { return r.Reserve == o })
		if r.Machines > 0 {
			next.Reserves = append(next.Reserves, plan.NewReserve(Namespace, r))
		}
	}
	for _, b := range v.Buffers {
		i := slices.IndexFunc(p.Decisions, func(d plan.Decision) bool { return d.Buffer == b.Object })
		b.Object = b.Object.DeepCopy()
		b.Object.Status = plan.NewStatus(p.Decisions[i], cmp.Or(v.Now, Now))
		next.Buffers = append(next.Buffers, b)
	}
	for _, pool := range v.Pools {
		pool.Deployment = pool.Deployment.DeepCopy()
		n := int32(0)
		for i, r := range next.Reserves {
			if r.Spec.Pools.Names[0] == pool.Deployment.Name {
				n = r.Spec.Replicas
				next.Reserves[i] = r.DeepCopy()
				next.Reserves[i].Status.Pools = []autoscaling.ReservePoolStatus{{Name: pool.Deployment.Name, Blocked: slices.Contains(out, pool.Deployment.Name)}}
			}
		}
		Keep(&pool, int(n), slices.Contains(out, pool.Deployment.Name))
		next.Pools = append(next.Pools, pool)
	}
	return next
}

// Keep does what the controller of MachineDeployments does in the end.
func Keep(p *plan.Pool, n int, fails bool) {
	if fails && n > p.Ready {
		Holds(p.Ready, reason.CannotBeMade)(p)
		return
	}
	Holds(n, reason.Complete)(p)
}

// Standing is the status of a buffer: chunks, and the reason of each condition, in alphabetical order
// of their types.
func Standing(b *v1beta1.CapacityBuffer) string {
	words := []string{"-"}
	if b.Status.Replicas != nil {
		words[0] = fmt.Sprint(*b.Status.Replicas)
	}
	for _, kind := range []string{v1beta1.ConditionProvisioning, v1beta1.ConditionReady} {
		if c := meta.FindStatusCondition(b.Status.Conditions, kind); c != nil {
			words = append(words, fmt.Sprintf("%s=%s", kind, c.Reason))
		}
	}
	return strings.Join(words, " ")
}
