// SPDX-License-Identifier: Apache-2.0

package view_test

import (
	"encoding/json"
	"flag"
	"io"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/gardener/machine-controller-manager/pkg/apis/machine/v1alpha1"
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
	"pgregory.net/rapid"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
	"github.com/evenkeel/evenkeel/pkg/lens/view"
	"github.com/evenkeel/evenkeel/pkg/pool"
)

// suite is what synctest wants to know; specs run while TestView does.
var suite *testing.T

func TestView(t *testing.T) {
	suite = t
	quiet := flag.NewFlagSet("", flag.PanicOnError)
	klog.InitFlags(quiet)
	_ = quiet.Parse([]string{"-logtostderr=false", "-stderrthreshold=FATAL"})
	klog.SetOutput(io.Discard)
	RegisterFailHandler(Fail)
	RunSpecs(t, "View")
}

// tree is an object as JSON, with numbers as they are written.
type tree = map[string]any

const (
	taintKey = "status-taint.cluster-autoscaler.kubernetes.io/excess-reserve"
	keep     = "cluster-autoscaler.kubernetes.io/scale-down-disabled"
)

var (
	since   = time.Date(2026, 11, 21, 9, 30, 0, 0, time.UTC)
	taint   = corev1.Taint{Key: taintKey, Effect: corev1.TaintEffectNoSchedule}
	reserve = machine.Reserve{
		Since: since, Taints: []corev1.Taint{taint},
		Annotations: map[string]string{keep: "true", machine.ReserveAnnotation: "2026-11-21T09:30:00Z"},
	}
)

func encoded(object any) []byte {
	GinkgoHelper()
	raw, err := json.Marshal(object)
	Expect(err).NotTo(HaveOccurred())
	return raw
}

func decoded[T any](raw []byte) *T {
	GinkgoHelper()
	object := new(T)
	Expect(json.Unmarshal(raw, object)).To(Succeed())
	return object
}

// restored lays a change over a stored Machine.
func restored(stored *v1alpha1.Machine, change func(*v1alpha1.Machine)) *v1alpha1.Machine {
	GinkgoHelper()
	seen := view.ShowMachine(stored.DeepCopy()).DeepCopy()
	change(seen)
	raw, err := view.RestoreMachine(encoded(stored), seen)
	Expect(err).NotTo(HaveOccurred())
	return decoded[v1alpha1.Machine](raw)
}

// arbitrary draws what may be stored: the fields of a type, and unknown ones beside them at any depth.
type arbitrary struct{ *rapid.T }

func (a arbitrary) chance(of int) bool { return rapid.IntRange(1, 100).Draw(a.T, "chance") <= of }

func (a arbitrary) word() string {
	return rapid.SampledFrom([]string{"a", "b", "c", "d", "", "<x>"}).Draw(a.T, "word")
}

func (a arbitrary) words() map[string]string {
	keys := []string{"a", "b", "other.io/c", keep, machine.BoundsAnnotation, machine.AnnotationPrefix + "later", machine.ReserveAnnotation}
	all := map[string]string{}
	for _, key := range keys {
		if a.chance(30) {
			all[key] = a.word()
		}
	}
	if len(all) == 0 && a.chance(70) {
		return nil
	}
	return all
}

func (a arbitrary) taints() (all []corev1.Taint) {
	for range rapid.IntRange(0, 4).Draw(a.T, "taints") {
		all = append(all, corev1.Taint{
			Key:    rapid.SampledFrom([]string{taintKey, "a", "b"}).Draw(a.T, "key"),
			Value:  rapid.SampledFrom([]string{"", "v"}).Draw(a.T, "value"),
			Effect: rapid.SampledFrom([]corev1.TaintEffect{"NoSchedule", "NoExecute"}).Draw(a.T, "effect"),
		})
	}
	return all
}

// unknown puts fields into an object that no type knows.
func (a arbitrary) unknown(t tree) {
	keys := slices.Sorted(maps.Keys(t))
	for _, key := range keys {
		switch value := t[key].(type) {
		case tree:
			if key != "labels" && key != "annotations" && key != "matchLabels" {
				a.unknown(value)
			}
		case []any:
			for _, element := range value {
				if element, ok := element.(tree); ok {
					a.unknown(element)
				}
			}
		}
	}
	if a.chance(30) {
		t["unknown"] = rapid.SampledFrom([]any{nil, "x", tree{"deep": []any{"y"}}, []any{}}).Draw(a.T, "unknown")
	}
}

// stored is an object as the API server keeps it, unknown fields and all.
func (a arbitrary) stored(object any) []byte {
	raw, err := json.Marshal(object)
	if err != nil {
		a.Fatal(err)
	}
	var t tree
	if err := json.Unmarshal(raw, &t); err != nil {
		a.Fatal(err)
	}
	a.unknown(t)
	if raw, err = json.Marshal(t); err != nil {
		a.Fatal(err)
	}
	return raw
}

func (a arbitrary) machine() *v1alpha1.Machine {
	m := &v1alpha1.Machine{}
	m.APIVersion, m.Kind = "machine.sapcloud.io/v1alpha1", "Machine"
	m.Name, m.Namespace, m.ResourceVersion = "m", "default", "7"
	m.Annotations, m.Labels = a.words(), a.words()
	m.Spec.ProviderID, m.Spec.Class.Name = a.word(), a.word()
	m.Spec.NodeTemplateSpec.Annotations, m.Spec.NodeTemplateSpec.Labels = a.words(), a.words()
	m.Spec.NodeTemplateSpec.Spec.Taints = a.taints()
	m.Status.Conditions = []corev1.NodeCondition{{Type: "Ready", Status: "True"}, {Type: "DiskPressure", Status: "False"}}
	switch {
	case a.chance(40):
		return pool.Mark(m, reserve)
	case a.chance(30):
		text := rapid.SampledFrom([]string{"", "{}", reserve.String(), machine.Reserve{Since: since}.String()}).Draw(a.T, "mark")
		if m.Annotations == nil {
			m.Annotations = map[string]string{}
		}
		m.Annotations[machine.ReserveAnnotation] = text
	}
	return m
}

func (a arbitrary) deployment() *v1alpha1.MachineDeployment {
	d := &v1alpha1.MachineDeployment{}
	d.APIVersion, d.Kind = "machine.sapcloud.io/v1alpha1", "MachineDeployment"
	d.Name, d.Namespace, d.ResourceVersion = "d", "default", "7"
	d.Annotations, d.Labels = a.words(), a.words()
	d.Spec.Replicas = rapid.Int32Range(-1, 9).Draw(a.T, "replicas")
	d.Spec.Paused = a.chance(20)
	d.Spec.Template.Annotations = a.words()
	d.Spec.Template.Spec.NodeTemplateSpec.Spec.Taints = a.taints()
	for _, kind := range []v1alpha1.MachineDeploymentConditionType{"Available", "Progressing", "ReserveReady"} {
		if a.chance(60) {
			d.Status.Conditions = append(d.Status.Conditions, v1alpha1.MachineDeploymentCondition{Type: kind, Message: a.word()})
		}
	}
	d.Status.Replicas = rapid.Int32Range(0, 9).Draw(a.T, "status")
	for key, values := range map[string][]string{
		machine.AppliedExcessAnnotation:   {"", "0", "2", "3,max=6", "99,max=1", "2,counted=2,replicas=3", "3,max=6,counted=1,replicas=9", "x"},
		machine.AppliedReplicasAnnotation: {"0", "4", "-2", "x"},
	} {
		if a.chance(50) {
			if d.Annotations == nil {
				d.Annotations = map[string]string{}
			}
			d.Annotations[key] = rapid.SampledFrom(values).Draw(a.T, "applied")
		}
	}
	return d
}
