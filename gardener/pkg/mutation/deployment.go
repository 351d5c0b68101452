// SPDX-License-Identifier: Apache-2.0

package mutation

import (
	"errors"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	machine "github.com/evenkeel/evenkeel/pkg/apis/machine/v1alpha1"
)

// DeploymentName is the name of the Deployment that gardenlet writes, and of its container.
const DeploymentName = "machine-controller-manager"

const prefix = "evenkeel.extensions.gardener.cloud/"

// Marks of a Deployment that runs Evenkeel. gardenlet keeps unknown labels and annotations of the
// Deployment itself.
const (
	// ManagedLabel selects such Deployments. It remains when the namespace has lost the label of
	// the extension, so that the reserve can be drained before the stock image is restored.
	ManagedLabel = prefix + "managed"
	// ImageAnnotation is the image that was set, ReplacedImageAnnotation what gardenlet wrote.
	ImageAnnotation         = prefix + "image"
	ReplacedImageAnnotation = prefix + "replaced-image"
)

// Flags that stock machine-controller-manager does not have.
const (
	accountingFlag = "--reserve-accounting="
	// withoutBuffers keeps the manager from reading CapacityBuffers, which it has no right to.
	withoutBuffers = "--controllers=*,-capacitybuffer"
)

// Manager is the machine-controller-manager of a Shoot.
type Manager struct {
	Image      string
	Accounting machine.Accounting
	// Buffers makes it serve CapacityBuffers.
	Buffers bool
	// Server makes it serve an unmodified cluster-autoscaler; nil if it does not.
	Server *Server
}

// Apply makes a Deployment run the manager.
func (m Manager) Apply(d *appsv1.Deployment) error {
	c := containerOf(d)
	if c == nil {
		return errors.New("no container " + DeploymentName)
	}
	if len(c.Command) == 0 {
		return errors.New("container " + DeploymentName + " has no command to add flags to")
	}
	if !IsApplied(d) {
		metav1.SetMetaDataAnnotation(&d.ObjectMeta, ReplacedImageAnnotation, c.Image)
	}
	metav1.SetMetaDataAnnotation(&d.ObjectMeta, ImageAnnotation, m.Image)
	metav1.SetMetaDataLabel(&d.ObjectMeta, ManagedLabel, "true")
	c.Image = m.Image
	c.Command = withFlag(c.Command, accountingFlag, strings.ToLower(string(m.Accounting)))
	if m.Buffers {
		c.Command = slices.DeleteFunc(c.Command, isFlag(withoutBuffers))
	} else {
		c.Command = withFlag(c.Command, withoutBuffers, "")
	}
	if m.Server != nil {
		m.Server.add(d, c)
	} else {
		removeServer(d, c)
	}
	return nil
}

// IsApplied reports whether a Deployment runs what Apply has set. The flags show it: gardenlet writes
// none of them, and another webhook may replace the registry of the image.
func IsApplied(d *appsv1.Deployment) bool {
	c, ours := containerOf(d), d.Annotations[ImageAnnotation]
	return c != nil && ours != "" && slices.ContainsFunc(c.Command, isFlag(accountingFlag)) &&
		(c.Image == ours || c.Image != d.Annotations[ReplacedImageAnnotation])
}

// Restore has a Deployment run what gardenlet wrote, if Apply has changed it. If that image is lost, it
// changes nothing: gardenlet writes the Deployment again.
func Restore(d *appsv1.Deployment) {
	if c := containerOf(d); IsApplied(d) {
		image := d.Annotations[ReplacedImageAnnotation]
		if image == "" {
			return
		}
		c.Image = image
		c.Command = slices.DeleteFunc(slices.Clone(c.Command), func(argument string) bool {
			return isFlag(accountingFlag)(argument) || isFlag(withoutBuffers)(argument)
		})
		removeServer(d, c)
	}
	delete(d.Annotations, ImageAnnotation)
	delete(d.Annotations, ReplacedImageAnnotation)
	delete(d.Labels, ManagedLabel)
}

func containerOf(d *appsv1.Deployment) *corev1.Container { return named(d, DeploymentName) }

func named(d *appsv1.Deployment, name string) *corev1.Container {
	containers := d.Spec.Template.Spec.Containers
	i := slices.IndexFunc(containers, func(c corev1.Container) bool { return c.Name == name })
	if i < 0 {
		return nil
	}
	return &containers[i]
}

// withFlag returns a command with a flag. One that is there keeps its place.
func withFlag(command []string, flag, value string) []string {
	command = slices.Clone(command)
	if i := slices.IndexFunc(command, isFlag(flag)); i >= 0 {
		command[i] = flag + value
		return command
	}
	return append(command, flag+value)
}

func isFlag(flag string) func(string) bool {
	return func(argument string) bool { return strings.HasPrefix(argument, flag) }
}
