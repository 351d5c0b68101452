// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	provisioningv1 "github.com/evenkeel/evenkeel/pkg/apis/provisioningrequest/v1"
)

// Owner is who may use a dedicated machine: namespaces ("shop") and workloads
// ("shop/Deployment/web"), separated by commas. Pods of any of them may use it.
type Owner string

// Owns reports whether a pod may use machines that are dedicated to the owner.
func (o Owner) Owns(pod *corev1.Pod) bool {
	for part := range strings.SplitSeq(string(o), ",") {
		namespace, workload, named := strings.Cut(part, "/")
		if namespace == "" || namespace != pod.Namespace {
			continue
		}
		if kind, name, _ := strings.Cut(workload, "/"); !named || runBy(pod, kind, name) {
			return true
		}
	}
	return false
}

// RequestKind is the kind of an owner that is a ProvisioningRequest: it owns the pods that name it.
const RequestKind = "ProvisioningRequest"

// RequestOf returns the name of the ProvisioningRequest whose machines a pod uses; empty if it uses none.
func RequestOf(pod *corev1.Pod) string {
	return cmp.Or(pod.Annotations[provisioningv1.ConsumeAnnotation], pod.Annotations[provisioningv1.OldConsumeAnnotation])
}

// withoutReplicaSets are the kinds that run their pods without ReplicaSets. A Deployment of the same
// name is another workload.
var withoutReplicaSets = []string{"CronJob", "DaemonSet", "Job", "ReplicaSet", "ReplicationController", "StatefulSet"}

// runBy reports whether a workload runs a pod: itself, or through a ReplicaSet of its own.
func runBy(pod *corev1.Pod, kind, name string) bool {
	c := metav1.GetControllerOfNoCopy(pod)
	switch {
	case kind == RequestKind:
		return RequestOf(pod) == name
	case c == nil:
		return false
	case c.Kind == kind:
		return c.Name == name
	case c.Kind != "ReplicaSet", slices.Contains(withoutReplicaSets, kind):
		return false
	}
	hash, of := strings.CutPrefix(c.Name, name+"-")
	return of && hash != "" && (pod.Labels["pod-template-hash"] == hash || pod.Labels["rollouts-pod-template-hash"] == hash)
}

// Dedication is a number of spare machines that are kept for an owner.
//
// +k8s:deepcopy-gen=false
type Dedication struct {
	Owner    Owner
	Machines int32
}

const (
	// MaxDedications is how many owners one MachineDeployment can have.
	MaxDedications = 64
	// MaxOwnerLength is how many bytes the name of an owner can have.
	MaxOwnerLength = 1024
)

// ParseDedications reads the value of [DedicatedAnnotation] on a MachineDeployment or a Reserve:
// "ci=2 shop/Deployment/web=1".
func ParseDedications(text string) ([]Dedication, error) {
	parts := strings.Fields(text)
	if len(parts) > MaxDedications {
		return nil, fmt.Errorf("dedicated: %d owners, at most %d are possible", len(parts), MaxDedications)
	}
	var all []Dedication
	for _, part := range parts {
		owner, count, _ := strings.Cut(part, "=")
		if owner == "" || len(owner) > MaxOwnerLength || !isCount(count) {
			return nil, fmt.Errorf("dedicated %.80q: write owners and counts, for example \"shop/Deployment/web=2\"", part)
		}
		n, err := parseCount("machines", count)
		if err != nil {
			return nil, fmt.Errorf("dedicated %.80q: %w", part, err)
		}
		all = append(all, Dedication{Owner: Owner(owner), Machines: n})
	}
	return all, nil
}

// DedicationsText is the form that [ParseDedications] reads.
func DedicationsText(all []Dedication) string {
	words := make([]string, len(all))
	for i, d := range all {
		words[i] = fmt.Sprintf("%s=%d", d.Owner, d.Machines)
	}
	return strings.Join(words, " ")
}

// Claims are dedicated machines that leave the reserve for pods of their owner.
//
// +k8s:deepcopy-gen=false
type Claims struct {
	// Replicas is how many machines workload may have then. With fewer, the claims are void.
	Replicas int
	Machines []string
}

// ParseClaims reads the value of [ClaimedAnnotation]: "4:pool-z1-abc,pool-z1-def". A text that it
// cannot read claims nothing.
func ParseClaims(text string) Claims {
	count, names, _ := strings.Cut(text, ":")
	n, err := strconv.Atoi(count)
	if err != nil || names == "" {
		return Claims{}
	}
	return Claims{Replicas: n, Machines: strings.Split(names, ",")}
}

// String is the form that [ParseClaims] reads; empty if nothing is claimed.
func (c Claims) String() string {
	if len(c.Machines) == 0 {
		return ""
	}
	return fmt.Sprintf("%d:%s", c.Replicas, strings.Join(c.Machines, ","))
}

// Has reports whether a machine is claimed while workload may have this many machines.
func (c Claims) Has(name string, replicas int) bool {
	return replicas >= c.Replicas && slices.Contains(c.Machines, name)
}
