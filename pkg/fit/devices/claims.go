// SPDX-License-Identifier: Apache-2.0

package devices

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"

	"github.com/evenkeel/evenkeel/pkg/fit"
)

// claims are those of one pod, read once.
type claims struct {
	inventory *Inventory
	shape     string
	// own reports whether one of them is of this pod alone: it was made by hand, or is allocated.
	own bool
	// reach is where allocated devices can be used.
	reach []*nodeaffinity.NodeSelector
	// open are those that are not allocated, and least is how many devices they need at least.
	open  []*resourceapi.ResourceClaim
	least int
	// selectors are evaluated for each device; one that several requests have counts for each.
	selectors []string
	// constraints and requests are counted over all claims.
	requests, constraints int
}

var _ fit.Devices = (*Inventory)(nil)

// Claimed returns what a waiting pod claims, nil if nothing. The error is why it cannot be decided
// where the pod can run.
func (v *Inventory) Claimed(pod *corev1.Pod) (fit.Claims, error) {
	if err := v.extended(pod); err != nil {
		return nil, err
	}
	c := &claims{inventory: v}
	hash, bytes, known := sha256.New(), 0, map[*resourceapi.ResourceClaim]bool{}
	for i := range pod.Spec.ResourceClaims {
		claim, err := v.find(pod, &pod.Spec.ResourceClaims[i])
		switch {
		case err != nil:
			return nil, err
		case claim == nil:
			continue
		case known[claim]:
			return nil, fmt.Errorf("it has its claim %s twice", claim.Name)
		case claim.Status.Allocation != nil:
			err = c.addAllocated(claim, pod)
		default:
			if bytes += size(claim.Spec); bytes > MaxBytes {
				return nil, fmt.Errorf("its claims have more than %d bytes", MaxBytes)
			}
			err = c.addOpen(claim)
		}
		if err != nil {
			return nil, fmt.Errorf("its claim %s %w", claim.Name, err)
		}
		known[claim], c.own = true, c.own || pod.Spec.ResourceClaims[i].ResourceClaimName != nil
		hash.Write(v.describe(claim, &pod.Spec.ResourceClaims[i]))
	}
	if len(known) == 0 {
		return nil, nil
	}
	if err := c.limited(); err != nil {
		return nil, err
	}
	c.shape = string(hash.Sum(nil))
	return c, nil
}

// limited returns an error if the claims exceed a limit.
func (c *claims) limited() error {
	for _, bound := range []struct {
		n, most int
		what    string
	}{
		{c.requests, MaxRequests, "requests"}, {len(c.selectors), MaxSelectors, "selectors"}, {c.constraints, MaxConstraints, "constraints"},
	} {
		if bound.n > bound.most {
			return fmt.Errorf("its claims have more than %d %s", bound.most, bound.what)
		}
	}
	return nil
}

// extended returns an error if a pod requests a resource that devices of a class may provide.
func (v *Inventory) extended(pod *corev1.Pod) error {
	for _, containers := range [][]corev1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			for name, amount := range containers[i].Resources.Requests {
				if class, ok := v.resources[name]; ok && !amount.IsZero() {
					return fmt.Errorf("it requests %s, which devices of class %s provide", name, class)
				}
			}
		}
	}
	return nil
}

// find returns the claim that an entry of a pod refers to, nil if the entry needs none. For a claim
// that does not exist yet, it returns one as it will be made.
func (v *Inventory) find(pod *corev1.Pod, entry *corev1.PodResourceClaim) (*resourceapi.ResourceClaim, error) {
	if entry.ResourceClaimName != nil {
		return v.existing(pod, *entry.ResourceClaimName, false)
	}
	if entry.ResourceClaimTemplateName == nil {
		return nil, fmt.Errorf("its claim %s is of a kind that is not known here", entry.Name)
	}
	for _, made := range pod.Status.ResourceClaimStatuses {
		if made.Name == entry.Name {
			if made.ResourceClaimName == nil {
				return nil, nil
			}
			return v.existing(pod, *made.ResourceClaimName, true)
		}
	}
	template := v.templates[types.NamespacedName{Namespace: pod.Namespace, Name: *entry.ResourceClaimTemplateName}]
	switch {
	case template == nil:
		return nil, fmt.Errorf("its claim template %s does not exist", *entry.ResourceClaimTemplateName)
	case template.Annotations[large] != "":
		return nil, fmt.Errorf("its claim template %s is too large", *entry.ResourceClaimTemplateName)
	}
	return &resourceapi.ResourceClaim{ObjectMeta: metav1.ObjectMeta{Namespace: pod.Namespace, Name: entry.Name}, Spec: template.Spec.Spec}, nil
}

// existing returns a claim that exists; one that was made for a pod belongs to it.
func (v *Inventory) existing(pod *corev1.Pod, name string, made bool) (*resourceapi.ResourceClaim, error) {
	key := types.NamespacedName{Namespace: pod.Namespace, Name: name}
	claim, reason := v.claims[key], ""
	switch {
	case claim == nil:
		reason = "does not exist"
	case claim.DeletionTimestamp != nil:
		reason = "is being deleted"
	case made && !metav1.IsControlledBy(claim, pod):
		reason = "belongs to another pod"
	case claim.Status.Allocation == nil && v.users[key] > 1:
		reason = "is shared with other pods that wait"
	case claim.Annotations[large] != "":
		reason = "is too large"
	}
	if reason != "" {
		return nil, fmt.Errorf("its claim %s %s", name, reason)
	}
	return claim, nil
}

// describe returns a text that is the same for claims that are interchangeable. A claim that was
// made by hand, or that is allocated, is interchangeable with no other.
func (v *Inventory) describe(claim *resourceapi.ResourceClaim, entry *corev1.PodResourceClaim) []byte {
	if claim.Status.Allocation != nil || entry.ResourceClaimName != nil {
		return fmt.Appendf(nil, "%q", claim.Name)
	}
	spec := slimSpec(claim.Spec)
	text, _ := spec.Marshal() // all of it can be encoded
	return fmt.Appendf(nil, "%d %s", len(text), text)
}

// addAllocated adds a claim whose devices are chosen.
func (c *claims) addAllocated(claim *resourceapi.ResourceClaim, pod *corev1.Pod) error {
	c.own = true
	mine := slices.ContainsFunc(claim.Status.ReservedFor, func(r resourceapi.ResourceClaimConsumerReference) bool { return r.UID == pod.UID })
	if len(claim.Status.ReservedFor) >= MaxReserved && !mine {
		return fmt.Errorf("is reserved for %d pods, and can be for no more", len(claim.Status.ReservedFor))
	}
	for i := range claim.Status.Allocation.Devices.Results {
		if len(claim.Status.Allocation.Devices.Results[i].BindingConditions) > 0 {
			return errors.New("waits for conditions of its devices")
		}
	}
	if claim.Status.Allocation.NodeSelector == nil {
		return nil
	}
	reach, err := nodeaffinity.NewNodeSelector(claim.Status.Allocation.NodeSelector)
	if err != nil {
		return errors.New("is allocated on nodes by a selector that is malformed")
	}
	c.reach = append(c.reach, reach)
	return nil
}

// addOpen adds a claim whose devices are yet to be chosen.
func (c *claims) addOpen(claim *resourceapi.ResourceClaim) error {
	if unnamed(claim.Spec.Devices.Requests, func(r resourceapi.DeviceRequest) string { return r.Name }) {
		return errors.New("has a request without a name of its own")
	}
	for i := range claim.Spec.Devices.Requests {
		least, err := c.addRequest(&claim.Spec.Devices.Requests[i])
		if err != nil {
			return err
		}
		c.least += least
	}
	for _, constraint := range claim.Spec.Devices.Constraints {
		if constraint.MatchAttribute == nil && constraint.DistinctAttribute == nil {
			return errors.New("has a constraint that is not known here")
		}
	}
	c.constraints += len(claim.Spec.Devices.Constraints)
	c.open = append(c.open, claim)
	return nil
}

// addRequest adds a request, and returns how many devices it needs at least.
func (c *claims) addRequest(r *resourceapi.DeviceRequest) (least int, err error) {
	if e := r.Exactly; e != nil {
		if e.AdminAccess != nil && *e.AdminAccess {
			return 0, errors.New("has admin access")
		}
		return c.addChoice(e.DeviceClassName, e.Selectors, e.AllocationMode, e.Count, e.Capacity)
	}
	switch {
	case len(r.FirstAvailable) == 0:
		return 0, errors.New("has a request that is not known here")
	case unnamed(r.FirstAvailable, func(s resourceapi.DeviceSubRequest) string { return s.Name }):
		return 0, errors.New("has an alternative without a name of its own")
	}
	for i := range r.FirstAvailable {
		s := &r.FirstAvailable[i]
		n, err := c.addChoice(s.DeviceClassName, s.Selectors, s.AllocationMode, s.Count, s.Capacity)
		if err != nil {
			return 0, err
		}
		if i == 0 || n < least {
			least = n
		}
	}
	return least, nil
}

func (c *claims) addChoice(class string, selectors []resourceapi.DeviceSelector, mode resourceapi.DeviceAllocationMode, count int64, capacity *resourceapi.CapacityRequirements) (least int, err error) {
	c.requests++
	known := c.inventory.classes[class]
	switch {
	case known == nil:
		return 0, fmt.Errorf("is of class %s, which does not exist", class)
	case capacity != nil:
		return 0, errors.New("requests a part of a device")
	case count < 0:
		return 0, errors.New("requests a negative number of devices")
	case mode == resourceapi.DeviceAllocationModeAll:
		least = 1
	case mode == resourceapi.DeviceAllocationModeExactCount:
		least = int(min(count, resourceapi.AllocationResultsMaxSize+1))
	default:
		return 0, errors.New("has an allocation mode that is not known here")
	}
	for _, s := range slices.Concat(known.Spec.Selectors, selectors) {
		if s.CEL == nil {
			return 0, errors.New("has a selector that is not known here")
		}
		c.selectors = append(c.selectors, s.CEL.Expression)
	}
	return least, nil
}

// unnamed reports whether one of a list has no name, or the name of another. The API server accepts no
// such list, and the allocator would panic.
func unnamed[T any](all []T, name func(T) string) bool {
	names := sets.New[string]()
	for _, one := range all {
		names.Insert(name(one))
	}
	return len(names) < len(all) || names.Has("")
}

// Shape is the same for pods of a namespace whose claims are interchangeable.
func (c *claims) Shape() string { return c.shape }

// Repeatable reports whether pods that are created like this one will have claims of their own that
// are the same.
func (c *claims) Repeatable() bool { return !c.own }

// Reaches reports whether devices that the pod has already can be used on the node.
func (c *claims) Reaches(node *corev1.Node) bool {
	for _, s := range c.reach {
		if !s.Match(node) {
			return false
		}
	}
	return true
}
