// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	v1beta1constants "github.com/gardener/gardener/pkg/apis/core/v1beta1/constants"
	gardenerutils "github.com/gardener/gardener/pkg/utils/gardener"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/evenkeel/evenkeel/gardener/pkg/nodegroups"
)

// AutoscalerName is the name of the Deployment of cluster-autoscaler, and of its container.
const AutoscalerName = v1beta1constants.DeploymentNameClusterAutoscaler

const (
	// replacedCommandAnnotation is the command that gardenlet wrote, in JSON.
	replacedCommandAnnotation = prefix + "replaced-command"
	providerFlag              = "--cloud-provider="
	forksProvider             = providerFlag + "mcm"
	ourProvider               = providerFlag + "externalgrpc"
	// maxCommand limits that command, in bytes. It names each MachineDeployment, and all annotations of
	// an object together have at most 256 KiB: the API server would refuse what gardenlet writes.
	maxCommand = 128 << 10
)

// Autoscaler is an unmodified cluster-autoscaler, which calls the server of the manager.
type Autoscaler struct {
	Image string
	// Files is a checksum of its certificates and of the address, which it reads when it starts.
	Files string
}

// known are the flags of gardenlet that an unmodified cluster-autoscaler has. It ends where it does
// not know one, so no other is kept. --nodes is among the others: the server knows the groups.
var known = []string{
	"address", "balance-similar-node-groups", "emit-per-nodegroup-metrics", "expander", "expendable-pods-priority-cutoff", "ignore-daemonsets-utilization",
	"ignore-taint", "initial-node-group-backoff-duration", "kubeconfig", "max-binpacking-time", "max-drain-parallelism", "max-graceful-termination-sec",
	"max-node-group-backoff-duration", "max-node-provision-time", "max-nodes-total", "max-scale-down-parallelism", "max-total-unready-percentage",
	"new-pod-scale-up-delay", "node-group-backoff-reset-timeout", "scale-down-delay-after-add", "scale-down-delay-after-delete",
	"scale-down-delay-after-failure", "scale-down-unneeded-time", "scale-down-utilization-threshold", "scan-interval", "skip-nodes-with-local-storage",
	"skip-nodes-with-system-pods", "startup-taint", "status-taint", "stderrthreshold", "v",
}

// added are flags that only the unmodified cluster-autoscaler needs: see docs/autoscaler.md. The
// labels differ between Nodes of one pool, and groups that differ in others are not balanced.
var added = []string{
	"--force-ds=true",
	"--balancing-ignore-label=node.gardener.cloud/machine-name",
	"--balancing-ignore-label=beta.kubernetes.io/instance-type",
	"--balancing-ignore-label=topology.cinder.csi.openstack.org/zone",
	"--balancing-ignore-label=topology.disk.csi.azure.com/zone",
	"--balancing-ignore-label=topology.diskplugin.csi.alibabacloud.com/zone",
	"--balancing-ignore-label=topology.ebs.csi.aws.com/zone",
	"--balancing-ignore-label=topology.gke.io/zone",
}

// networkLabel, on a pod, makes gardener-resource-manager allow its traffic to the Service.
var networkLabel = gardenerutils.NetworkPolicyLabel(nodegroups.ServiceName, nodegroups.Port)

// Apply makes a Deployment run the unmodified cluster-autoscaler.
func (a Autoscaler) Apply(d *appsv1.Deployment) error {
	changed := d.DeepCopy()
	RestoreAutoscaler(changed)
	c := autoscalerOf(changed)
	if c == nil {
		return errors.New("no container " + AutoscalerName)
	}
	if !slices.Contains(c.Command, forksProvider) {
		return fmt.Errorf("container %s is not started with %s", AutoscalerName, forksProvider)
	}
	replaced, err := json.Marshal(c.Command)
	if err != nil {
		return fmt.Errorf("encode command: %w", err)
	}
	if len(replaced) > maxCommand {
		return fmt.Errorf("container %s has a command of %d bytes, and at most %d can be remembered", AutoscalerName, len(replaced), maxCommand)
	}
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, ReplacedImageAnnotation, c.Image)
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, replacedCommandAnnotation, string(replaced))
	metav1.SetMetaDataAnnotation(&changed.ObjectMeta, ImageAnnotation, a.Image)
	metav1.SetMetaDataLabel(&changed.ObjectMeta, ManagedLabel, "true")
	metav1.SetMetaDataLabel(&changed.Spec.Template.ObjectMeta, networkLabel, v1beta1constants.LabelNetworkPolicyAllowed)
	metav1.SetMetaDataAnnotation(&changed.Spec.Template.ObjectMeta, checksumAnnotation, a.Files)
	c.Image, c.Command = a.Image, unmodified(c.Command)
	mount(changed, c, clientFiles(), nodegroups.ClientFolder)
	*d = *changed
	return nil
}

// unmodified returns the command of the unmodified cluster-autoscaler for a command of the fork.
func unmodified(command []string) []string {
	made := []string{command[0], ourProvider, "--cloud-config=" + nodegroups.ClientFolder + "/" + nodegroups.CloudConfigKey}
	for _, argument := range command[1:] {
		name, _, _ := strings.Cut(strings.TrimPrefix(argument, "--"), "=")
		if slices.Contains(known, name) {
			made = append(made, argument)
		}
	}
	return append(made, added...)
}

func clientFiles() corev1.VolumeSource {
	secret := &corev1.SecretVolumeSource{SecretName: nodegroups.ClientName, DefaultMode: ptr.To(corev1.SecretVolumeSourceDefaultMode)}
	return corev1.VolumeSource{Secret: secret}
}

// IsUpstream reports whether Apply has made a Deployment run the unmodified cluster-autoscaler. The
// command shows it: another webhook may replace the registry of the image.
func IsUpstream(d *appsv1.Deployment) bool {
	c := autoscalerOf(d)
	return c != nil && d.Annotations[ImageAnnotation] != "" && slices.Contains(c.Command, ourProvider)
}

// IsRestorable reports whether a Deployment runs the unmodified cluster-autoscaler, and
// [RestoreAutoscaler] can restore the fork.
func IsRestorable(d *appsv1.Deployment) bool { return IsUpstream(d) && replacedCommand(d) != nil }

// RestoreAutoscaler restores what gardenlet wrote, if Apply has changed the Deployment. If that
// command or image is lost, it changes nothing: gardenlet writes the Deployment again.
func RestoreAutoscaler(d *appsv1.Deployment) {
	if c := autoscalerOf(d); IsUpstream(d) {
		command := replacedCommand(d)
		if command == nil {
			return
		}
		c.Image, c.Command = d.Annotations[ReplacedImageAnnotation], command
		unmount(d, c)
		d.Spec.Template.Labels = withoutKey(d.Spec.Template.Labels, networkLabel)
	}
	for _, key := range []string{ImageAnnotation, ReplacedImageAnnotation, replacedCommandAnnotation} {
		delete(d.Annotations, key)
	}
	delete(d.Labels, ManagedLabel)
}

// replacedCommand returns the command that gardenlet wrote; nil if it or its image is lost.
func replacedCommand(d *appsv1.Deployment) (command []string) {
	err := json.Unmarshal([]byte(d.Annotations[replacedCommandAnnotation]), &command)
	if err != nil || len(command) == 0 || d.Annotations[ReplacedImageAnnotation] == "" {
		return nil
	}
	return command
}

func autoscalerOf(d *appsv1.Deployment) *corev1.Container {
	if d.Name != AutoscalerName {
		return nil
	}
	return named(d, AutoscalerName)
}
