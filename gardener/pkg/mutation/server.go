// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/gardener/pkg/nodegroups"
)

const (
	// volumeName is the name of the volume that the extension mounts.
	volumeName = "extension-evenkeel-nodegroups"
	// checksumAnnotation, on a pod, makes the Deployment replace the pod when its value changes.
	checksumAnnotation = "checksum/" + volumeName
	serverFolder       = "/var/run/evenkeel/nodegroups"
)

// Server makes the manager serve its MachineDeployments to an unmodified cluster-autoscaler. An
// unused server does no harm.
type Server struct {
	// Authority is a checksum of the authorities that the server trusts. The server reads renewed
	// certificates by itself; another authority makes it restart, so that it trusts all callers
	// before gardenlet writes cluster-autoscaler.
	Authority string
}

// serverFlags are the names and values of the flags.
var serverFlags = [][2]string{
	{"--autoscaler-listen-address=", fmt.Sprintf(":%d", nodegroups.Port)},
	{"--autoscaler-tls-cert-file=", serverFolder + "/" + nodegroups.CertificateKey},
	{"--autoscaler-tls-key-file=", serverFolder + "/" + nodegroups.PrivateKey},
	{"--autoscaler-tls-client-ca-file=", serverFolder + "/" + nodegroups.AuthoritiesKey},
}

func (s Server) add(d *appsv1.Deployment, c *corev1.Container) {
	for _, flag := range serverFlags {
		c.Command = withFlag(c.Command, flag[0], flag[1])
	}
	secret := &corev1.SecretVolumeSource{SecretName: nodegroups.ServerName, DefaultMode: ptr.To(corev1.SecretVolumeSourceDefaultMode)}
	mount(d, c, corev1.VolumeSource{Secret: secret}, serverFolder)
	metav1.SetMetaDataAnnotation(&d.Spec.Template.ObjectMeta, checksumAnnotation, s.Authority)
}

// removeServer removes the server from a manager. It does not change a manager without one.
func removeServer(d *appsv1.Deployment, c *corev1.Container) {
	for _, flag := range serverFlags {
		c.Command = slices.DeleteFunc(slices.Clone(c.Command), isFlag(flag[0]))
	}
	unmount(d, c)
}

// WithoutServer removes the server from a manager.
func WithoutServer(d *appsv1.Deployment) {
	if c := containerOf(d); c != nil {
		removeServer(d, c)
	}
}

// IsServing reports whether a Deployment runs Evenkeel with the server.
func IsServing(d *appsv1.Deployment) bool {
	c := containerOf(d)
	if d.Name != DeploymentName || !IsApplied(d) || !isMounted(d, c) {
		return false
	}
	for _, flag := range serverFlags {
		if !slices.Contains(c.Command, flag[0]+flag[1]) {
			return false
		}
	}
	return true
}

// ServerOf returns the server of a Deployment; nil if there is none.
func ServerOf(d *appsv1.Deployment) *Server {
	if d == nil || !IsServing(d) {
		return nil
	}
	return &Server{Authority: d.Spec.Template.Annotations[checksumAnnotation]}
}

// IsRolledOut reports whether no pod of an earlier version of a Deployment runs any more, as far as
// the API server shows pods that are ending.
func IsRolledOut(d *appsv1.Deployment) bool {
	s, replicas := d.Status, ptr.Deref(d.Spec.Replicas, 1)
	return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas >= replicas && s.Replicas == s.UpdatedReplicas &&
		ptr.Deref(s.TerminatingReplicas, 0) == 0
}

// mount adds the volume of the extension, or replaces it in place.
func mount(d *appsv1.Deployment, c *corev1.Container, source corev1.VolumeSource, folder string) {
	volumes, mounts := &d.Spec.Template.Spec.Volumes, &c.VolumeMounts
	*volumes = with(*volumes, isVolume, corev1.Volume{Name: volumeName, VolumeSource: source})
	*mounts = with(*mounts, isMount, corev1.VolumeMount{Name: volumeName, MountPath: folder, ReadOnly: true})
}

func unmount(d *appsv1.Deployment, c *corev1.Container) {
	volumes, mounts := &d.Spec.Template.Spec.Volumes, &c.VolumeMounts
	*volumes = without(*volumes, isVolume)
	*mounts = without(*mounts, isMount)
	d.Spec.Template.Annotations = withoutKey(d.Spec.Template.Annotations, checksumAnnotation)
}

func isMounted(d *appsv1.Deployment, c *corev1.Container) bool {
	return slices.ContainsFunc(d.Spec.Template.Spec.Volumes, isVolume) && slices.ContainsFunc(c.VolumeMounts, isMount)
}

func isVolume(v corev1.Volume) bool { return v.Name == volumeName }

func isMount(m corev1.VolumeMount) bool { return m.Name == volumeName }

func with[T any](all []T, matches func(T) bool, one T) []T {
	all = slices.Clone(all)
	if i := slices.IndexFunc(all, matches); i >= 0 {
		all[i] = one
		return all
	}
	return append(all, one)
}

// without returns nil instead of an empty slice, as gardenlet's object has it.
func without[T any](all []T, matches func(T) bool) []T {
	if !slices.ContainsFunc(all, matches) {
		return all
	}
	if all = slices.DeleteFunc(slices.Clone(all), matches); len(all) == 0 {
		return nil
	}
	return all
}

func withoutKey(all map[string]string, key string) map[string]string {
	if delete(all, key); len(all) == 0 {
		return nil
	}
	return all
}
