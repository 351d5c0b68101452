// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"

	"github.com/evenkeel/evenkeel/internal/overview"
	"github.com/evenkeel/evenkeel/internal/plural"
	"github.com/evenkeel/evenkeel/pkg/apis/capacitybuffer/v1beta1"
	"github.com/evenkeel/evenkeel/pkg/apis/reason"
)

// Buffer explains a CapacityBuffer.
func Buffer(o overview.Objects, name string) (Account, error) {
	b, err := findInTarget(o.Buffers, "capacitybuffer", name, o)
	if err != nil {
		return Account{}, err
	}
	a := Account{See: []string{"docs/capacity-buffers.md: what it does", "docs/spec/capacitybuffer.md: rules, reasons, and what to do"}}
	shown := overview.New(overview.Objects{At: o.At, Buffers: []*v1beta1.CapacityBuffer{b}}).Buffers
	if len(shown) == 0 {
		a.Title = "CapacityBuffer " + name + ": not managed by Evenkeel"
		a.addReason("Its strategy is %s, so Evenkeel does not manage it.", strategy(b))
		return a, nil
	}
	one := shown[0]
	a.Title = fmt.Sprintf("CapacityBuffer %s: %s", name, cmp.Or(one.Ready.Reason, "not seen yet"))
	bufferFacts(&a, b, one)
	for _, c := range b.Status.Conditions {
		a.addFact(c.Type, "%s, %s: %s", c.Status, c.Reason, c.Message)
	}
	bufferWhy(&a, b, one)
	if r := reason.CapacityBuffer[v1beta1.ConditionReady].Find(one.Ready.Reason); r.Remedy != "" {
		a.addNext("To change that: %s.", r.RemedyFor(b.Namespace, b.Name))
	}
	if len(a.Next) == 0 {
		a.addNext("It is at rest: nothing changes until the buffer, its workload, quotas, bounds or machines change.")
	}
	return a, nil
}

func strategy(b *v1beta1.CapacityBuffer) string {
	if b.Spec.ProvisioningStrategy == nil {
		return v1beta1.StrategyActive
	}
	return *b.Spec.ProvisioningStrategy
}

func bufferFacts(a *Account, b *v1beta1.CapacityBuffer, one overview.Buffer) {
	if one.Chunks >= 0 {
		a.addFact("Chunks", "%d, each room for one pod", one.Chunks)
	}
	a.addFact("Shape", "%s", orNone(one.Shape))
	if named := b.Annotations[v1beta1.PoolAnnotation]; named != "" {
		a.addFact("Pool", "%s", named)
	}
	if b.Annotations[v1beta1.FreeRoomAnnotation] == "true" {
		a.addFact("Uses", "free room on machines that serve, before machines in reserve")
	}
	if b.FillsOnce() {
		a.addFact("Fills once", "pods have used %s; what they use is not replaced", plural.Of(b.Consumed(), "chunk"))
	}
	if one.Dedicated != "" {
		a.addFact("Dedicated to", "%s", one.Dedicated)
	}
	if b.Annotations[v1beta1.PrepareAnnotation] == "true" {
		a.addFact("Prepares", "the images of its pods, on the machines that hold its chunks")
	}
}

// bufferWhy describes where the number comes from, and why the buffer is ready or not.
func bufferWhy(a *Account, b *v1beta1.CapacityBuffer, one overview.Buffer) {
	var asks []string
	if n := b.Spec.Replicas; n != nil {
		asks = append(asks, plural.Of(int(*n), "chunk"))
	}
	if n := b.Spec.Percentage; n != nil && b.Spec.ScalableRef != nil {
		asks = append(asks, fmt.Sprintf("%d%% of the replicas of %s, rounded up", *n, one.Shape))
	}
	limited := ""
	if len(b.Spec.Limits) > 0 {
		limited = ", as far as its limits allow"
	}
	switch {
	case len(asks) == 2:
		a.addReason("It asks for %s, whichever is more%s.", strings.Join(asks, " or "), limited)
	case len(asks) == 1:
		a.addReason("It asks for %s%s.", asks[0], limited)
	case limited != "":
		a.addReason("It asks for as many chunks as its limits allow.")
	}
	if one.Dedicated != "" {
		a.addReason("Its machines are dedicated: they leave the reserve only for the pods that the annotation names, and hold no chunks of buffers that name others.")
	} else {
		a.addReason("Any waiting pod that fits can use its machines.")
	}
	for _, kind := range slices.Sorted(slices.Values([]string{v1beta1.ConditionReady, v1beta1.ConditionReadyForProvisioning, v1beta1.ConditionLimitedByQuotas})) {
		c := meta.FindStatusCondition(b.Status.Conditions, kind)
		if c == nil || c.Reason == reason.NotLimited || c.Reason == reason.AttributesSetSuccessfully || c.Reason == reason.NotReadyForProvisioning {
			continue
		}
		if known := reason.CapacityBuffer[kind].Find(c.Reason); known.Meaning != "" {
			a.addReason("%s", known.Explain())
		}
	}
}
