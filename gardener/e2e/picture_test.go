// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	machinev1alpha1 "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// picture is what must not change when another binary takes over: each Machine with its class, each MachineSet with its replicas,
// each Node with its taints, each pod with its Node.
type picture map[string]string

func (s *shoot) picture(ctx context.Context) picture {
	GinkgoHelper()
	p := picture{}
	for _, m := range s.machines(ctx) {
		p["Machine "+m.Name] = fmt.Sprintf("%s of class %s", m.UID, m.Spec.Class.Name)
	}
	var sets machinev1alpha1.MachineSetList
	Expect(seed.List(ctx, &sets, client.InNamespace(s.namespace))).To(Succeed())
	for _, set := range sets.Items {
		p["MachineSet "+set.Name] = fmt.Sprintf("%s of %d", set.UID, set.Spec.Replicas)
	}
	var nodes corev1.NodeList
	Expect(target.List(ctx, &nodes)).To(Succeed())
	for _, node := range nodes.Items {
		var taints []string
		for _, taint := range node.Spec.Taints {
			taints = append(taints, taint.ToString())
		}
		p["Node "+node.Name] = fmt.Sprintf("%s with taints %v", node.UID, taints)
	}
	maps.Copy(p, s.pods(ctx))
	return p
}

// pods are those of the Shoot's users, each with its Node.
func (s *shoot) pods(ctx context.Context) picture {
	GinkgoHelper()
	p := picture{}
	var pods corev1.PodList
	Expect(target.List(ctx, &pods, client.InNamespace(metav1.NamespaceDefault))).To(Succeed())
	for _, pod := range pods.Items {
		p["Pod "+pod.Name] = fmt.Sprintf("%s on %s", pod.UID, pod.Spec.NodeName)
	}
	return p
}

// changed is an error that names what differs from before.
func (s *shoot) changed(ctx context.Context, before picture) error {
	GinkgoHelper()
	return differing(before, s.picture(ctx))
}

func differing(before, now picture) error {
	var lines []string
	for _, name := range slices.Sorted(maps.Keys(before)) {
		if now[name] != before[name] {
			lines = append(lines, fmt.Sprintf("%s: %q became %q", name, before[name], now[name]))
		}
	}
	for _, name := range slices.Sorted(maps.Keys(now)) {
		if _, was := before[name]; !was {
			lines = append(lines, name+" is new")
		}
	}
	return joined(lines)
}

// names are those of the Machines.
func (s *shoot) names(ctx context.Context) []string {
	GinkgoHelper()
	var names []string
	for _, m := range s.machines(ctx) {
		names = append(names, m.Name)
	}
	return names
}

// gone is an error that names Machines which are not there any more.
func (s *shoot) gone(ctx context.Context, before []string) error {
	GinkgoHelper()
	now := s.names(ctx)
	var lines []string
	for _, name := range before {
		if !slices.Contains(now, name) {
			lines = append(lines, name+" is gone")
		}
	}
	return joined(lines)
}

// tainted is an error that names Nodes with the taint of the reserve.
func (s *shoot) tainted(ctx context.Context) error {
	GinkgoHelper()
	var nodes corev1.NodeList
	Expect(target.List(ctx, &nodes)).To(Succeed())
	var lines []string
	for _, node := range nodes.Items {
		for _, taint := range node.Spec.Taints {
			if taint.Key == machine.ReserveTaintKey {
				lines = append(lines, node.Name+" has the taint")
			}
		}
	}
	return joined(lines)
}

func joined(lines []string) error {
	if len(lines) == 0 {
		return nil
	}
	return fmt.Errorf("%s", strings.Join(lines, "; "))
}
