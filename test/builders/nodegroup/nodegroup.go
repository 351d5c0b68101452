// SPDX-License-Identifier: Apache-2.0

// Package nodegroup builds groups and machines for tests of the node group server and its plans.
package nodegroup

import (
	"strings"
	"time"

	mcm "github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/pool"
	"github.com/evenkeel/evenkeel/pkg/provider/nodegroup/plan"
)

// Namespace is where all objects are.
const Namespace = "default"

// NoonText is [Noon] as annotations contain it.
const NoonText = "2026-03-01T12:00:00Z"

// Noon is when plans are made.
var Noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Deployment returns a MachineDeployment with these bounds and this many replicas. Each annotation
// is a key, followed by = and its value.
func Deployment(bounds string, replicas int32, annotations ...string) *v1alpha1.MachineDeployment {
	d := &v1alpha1.MachineDeployment{ObjectMeta: metav1.ObjectMeta{
		Name: "pool", Namespace: Namespace, UID: "uid-pool", ResourceVersion: "7", Generation: 3, Annotations: map[string]string{v1alpha1.BoundsAnnotation: bounds},
	}}
	d.Spec.Replicas = replicas
	for _, pair := range annotations {
		key, value, _ := strings.Cut(pair, "=")
		d.Annotations[key] = value
	}
	return d
}

// Bounded returns the group of a [Deployment]. It panics if the bounds are invalid.
func Bounded(bounds string, replicas int32, annotations ...string) plan.Group {
	g, err := plan.NewGroup(Deployment(bounds, replicas, annotations...))
	if err != nil {
		panic(err)
	}
	return g
}

// Members returns members that are named a, b, c and so on. Each letter of the text is one of them:
// S serves, R is in reserve, L leaves, T terminates, P is preserved, Q is preserved in reserve, O
// serves in an old MachineSet.
func Members(text string) []plan.Member {
	var all []plan.Member
	for i, letter := range text {
		o := Machine(mcm.MachineRunning)
		o.Name = string(rune('a' + i))
		m := plan.Member{Machine: pool.Machine{Object: o, Set: "new"}}
		switch letter {
		case 'R':
			InReserve(o)
		case 'L':
			m.Gone = true
		case 'T':
			o.Status.CurrentStatus.Phase = mcm.MachineTerminating
		case 'P':
			m.Preserved = true
		case 'Q':
			InReserve(o)
			m.Preserved = true
		case 'O':
			m.Set = "old"
		}
		all = append(all, m)
	}
	return all
}

// Machine returns a Machine in this phase.
func Machine(phase mcm.MachinePhase, change ...func(*v1alpha1.Machine)) *v1alpha1.Machine {
	m := &v1alpha1.Machine{ObjectMeta: metav1.ObjectMeta{Name: "m", Namespace: Namespace}}
	m.Status.CurrentStatus.Phase = phase
	for _, f := range change {
		f(m)
	}
	return m
}

// Annotated sets an annotation of a Machine.
func Annotated(key, value string) func(*v1alpha1.Machine) {
	return func(m *v1alpha1.Machine) { metav1.SetMetaDataAnnotation(&m.ObjectMeta, key, value) }
}

// InReserve gives a Machine the reserve mark.
var InReserve = Annotated(v1alpha1.ReserveAnnotation, `{"since":"2026-03-01T12:00:00Z"}`)

// Deleted gives a Machine a deletion timestamp.
func Deleted(m *v1alpha1.Machine) { m.DeletionTimestamp = &metav1.Time{Time: Noon} }

// Class returns the nodeTemplate of a MachineClass in a zone.
func Class(zone string) *v1alpha1.NodeTemplate {
	return &v1alpha1.NodeTemplate{
		Capacity: corev1.ResourceList{
			"cpu": resource.MustParse("4"), "memory": resource.MustParse("16Gi"), "gpu": resource.MustParse("0"),
		},
		InstanceType: "virtual.large", Region: "local", Zone: zone, Architecture: ptr.To("amd64"),
	}
}
