// SPDX-License-Identifier: Apache-2.0

package preparation

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/pkg/controller/preparation/plan"
)

// nobody is a user without rights.
const nobody = 65535

// podFor returns the pod that pulls the images of a wish on a machine, as the restricted Pod Security Standard
// allows it. It runs nothing of the images: they are volumes.
func podFor(c plan.Creation, waiting string) *corev1.Pod {
	m, w := c.Machine, c.Wish
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name: fmt.Sprintf("prepare-%s-%.8s", w.Key, m.NodeUID), Namespace: w.Namespace,
			Labels:          map[string]string{plan.Label: w.Key},
			Annotations:     map[string]string{"cluster-autoscaler.kubernetes.io/safe-to-evict": "true"},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "v1", Kind: "Node", Name: m.Node, UID: m.NodeUID, Controller: ptr.To(true)}},
		},
		Spec: corev1.PodSpec{
			NodeName: m.Node, ServiceAccountName: w.Account, AutomountServiceAccountToken: ptr.To(false), EnableServiceLinks: ptr.To(false),
			TerminationGracePeriodSeconds: ptr.To[int64](1),
			Tolerations:                   []corev1.Toleration{{Operator: corev1.TolerationOpExists}},
			SecurityContext: &corev1.PodSecurityContext{
				RunAsNonRoot: ptr.To(true), RunAsUser: ptr.To[int64](nobody), SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
		},
	}
	container := corev1.Container{
		Name: "wait", Image: waiting, ImagePullPolicy: corev1.PullIfNotPresent,
		SecurityContext: &corev1.SecurityContext{AllowPrivilegeEscalation: ptr.To(false), ReadOnlyRootFilesystem: ptr.To(true), Capabilities: &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}}},
	}
	for i, image := range w.Images {
		name := fmt.Sprintf("image-%d", i)
		pod.Spec.Volumes = append(pod.Spec.Volumes, corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
			Image: &corev1.ImageVolumeSource{Reference: image, PullPolicy: corev1.PullIfNotPresent},
		}})
		container.VolumeMounts = append(container.VolumeMounts, corev1.VolumeMount{Name: name, MountPath: "/images/" + name, ReadOnly: true})
	}
	for _, name := range w.Secrets {
		pod.Spec.ImagePullSecrets = append(pod.Spec.ImagePullSecrets, corev1.LocalObjectReference{Name: name})
	}
	pod.Spec.Containers = []corev1.Container{container}
	return pod
}
