// SPDX-License-Identifier: Apache-2.0

package similar_test

import (
	"maps"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	. "github.com/evenkeel/evenkeel/pkg/similar"
	"github.com/evenkeel/evenkeel/test/laws"
)

func TestMain(m *testing.M) { laws.Main(m, 1000) }

func TestSimilar(t *testing.T) {
	RegisterFailHandler(Fail)
	RunSpecs(t, "Similar")
}

// amounts reads "cpu=1 memory=2000".
func amounts(s string) corev1.ResourceList {
	l := corev1.ResourceList{}
	for word := range strings.FieldsSeq(s) {
		name, q := assigned(word)
		l[corev1.ResourceName(name)] = resource.MustParse(q)
	}
	return l
}

// assigned panics on what is malformed: tables are built before Gomega is there to fail.
func assigned(s string) (name, value string) {
	name, value, ok := strings.Cut(s, "=")
	if !ok {
		panic(s)
	}
	return name, value
}

// machine is a Node and what its DaemonSets request, in the shorthand of the tables.
type machine struct {
	node corev1.Node
	pods []*corev1.Pod
}

type change func(*machine)

// node is one of 1 CPU, 2000 bytes and 100 pods, all allocatable, without labels.
func node(changes ...change) machine {
	all := "cpu=1000m memory=2000 pods=100"
	m := machine{node: corev1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: "n", Labels: map[string]string{}},
		Status:     corev1.NodeStatus{Capacity: amounts(all), Allocatable: amounts(all)},
	}}
	for _, c := range changes {
		c(&m)
	}
	return m
}

func capacity(s string) change {
	return func(m *machine) { maps.Copy(m.node.Status.Capacity, amounts(s)) }
}

func allocatable(s string) change {
	return func(m *machine) { maps.Copy(m.node.Status.Allocatable, amounts(s)) }
}

// size is capacity and allocatable.
func size(s string) change {
	return func(m *machine) {
		capacity(s)(m)
		allocatable(s)(m)
	}
}

// label reads "key=value"; more of them, one change.
func label(pairs ...string) change {
	return func(m *machine) {
		for _, pair := range pairs {
			key, value := assigned(pair)
			m.node.Labels[key] = value
		}
	}
}

// pod is a DaemonSet's.
func pod(requests string) change {
	return func(m *machine) { m.pods = append(m.pods, daemon(requests)) }
}

func daemon(requests string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{OwnerReferences: []metav1.OwnerReference{{Kind: "DaemonSet", Name: "d", Controller: ptr.To(true)}}},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{
			Resources: corev1.ResourceRequirements{Requests: amounts(requests)},
		}}},
	}
}

func (m machine) template(name string) Template { return FromNode(name, &m.node, m.pods) }

// named makes a template of each machine: ng1, ng2 and so on.
func named(machines ...machine) []Template {
	all := make([]Template, len(machines))
	for i, m := range machines {
		all[i] = m.template("ng" + string(rune('1'+i)))
	}
	return all
}

func exactly() Options { return Options{} }
