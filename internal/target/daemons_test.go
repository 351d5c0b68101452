// SPDX-License-Identifier: Apache-2.0

package target_test

import (
	"slices"
	"time"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/internal/target"
	"github.com/evenkeel/evenkeel/test/fixture"
)

// daemon is a pod of the DaemonSet and of its template of that generation.
func daemon(name, generation string, age time.Duration, change ...func(*corev1.Pod)) *corev1.Pod {
	return fixture.Pod(name, append([]func(*corev1.Pod){func(p *corev1.Pod) {
		p.Labels = map[string]string{"pod-template-generation": generation}
		p.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "DaemonSet", Name: "s", UID: "u", Controller: ptr.To(true)}}
		p.CreationTimestamp = metav1.NewTime(time.Unix(1e9, 0).Add(-age))
	}}, change...)...)
}

var _ = DescribeTable("What a DaemonSet runs on a Node is shown by the newest pod of its template", func(want string, pods ...*corev1.Pod) {
	sets := []*appsv1.DaemonSet{{ObjectMeta: metav1.ObjectMeta{
		Namespace: "default", Name: "s", UID: "u", Annotations: map[string]string{appsv1.DeprecatedTemplateGeneration: "2"},
	}}}
	sets, err := target.StripAll(sets)
	Expect(err).NotTo(HaveOccurred())
	pods, err = target.StripAll(pods)
	Expect(err).NotTo(HaveOccurred())
	Expect(target.NewestPods(sets, slices.Values(pods))).To(HaveKeyWithValue(sets[0].UID, HaveField("Name", want)))
},
	Entry("of several", "b", daemon("a", "2", time.Hour), daemon("b", "2", time.Minute), daemon("c", "2", time.Hour)),
	Entry("the first by name of those of one age", "a", daemon("b", "2", time.Hour), daemon("a", "2", time.Hour), daemon("c", "2", time.Hour)),
	Entry("not of an earlier template", "a", daemon("a", "2", time.Hour), daemon("b", "1", time.Minute)),
	Entry("not of another namespace, whatever owner it names", "a", daemon("a", "2", time.Hour), daemon("b", "2", time.Minute, func(p *corev1.Pod) { p.Namespace = "other" })),
)
