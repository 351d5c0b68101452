// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// MaxPreparedImages is how many images and workloads a preparation has at most.
const MaxPreparedImages = 20

// Preparation is a set of images that reserve machines pull before workload comes.
//
// +kubebuilder:validation:XValidation:rule="has(self.images) || has(self.workloads)",message="set images or workloads"
type Preparation struct {
	// Namespace in the target cluster where the pods that pull the images run, with its Secrets and
	// quota.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	Namespace string `json:"namespace"`

	// Images to pull.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	Images []string `json:"images,omitempty"`

	// ImagePullSecrets are names of Secrets for pulling images.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	ImagePullSecrets []string `json:"imagePullSecrets,omitempty"`

	// Workloads whose current images are pulled, with their Secrets, as Kind/name, for example
	// Deployment/web.
	// +optional
	// +listType=set
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=20
	// +kubebuilder:validation:items:MaxLength=275
	// +kubebuilder:validation:items:Pattern=`^(DaemonSet|Deployment|Job|PodTemplate|ReplicaSet|ReplicationController|StatefulSet)/[a-z0-9]([-a-z0-9.]*[a-z0-9])?$`
	Workloads []string `json:"workloads,omitempty"`
}

// PreparedKinds are the kinds of workloads whose images can be prepared.
var PreparedKinds = []string{"DaemonSet", "Deployment", "Job", "PodTemplate", "ReplicaSet", "ReplicationController", "StatefulSet"}

// Validate returns what is wrong with a preparation.
func (p Preparation) Validate() error {
	if problems := validation.IsDNS1123Label(p.Namespace); len(problems) > 0 {
		return fmt.Errorf("namespace %q: %s", p.Namespace, problems[0])
	}
	switch {
	case len(p.Images)+len(p.Workloads) == 0:
		return errors.New("set images or workloads")
	case len(p.Images)+len(p.Workloads) > MaxPreparedImages:
		return fmt.Errorf("name at most %d images and workloads", MaxPreparedImages)
	}
	for _, image := range p.Images {
		if image == "" || strings.TrimSpace(image) != image || strings.ContainsAny(image, " \t\n") {
			return fmt.Errorf("image %q is empty or contains spaces", image)
		}
	}
	for _, name := range p.ImagePullSecrets {
		if problems := validation.IsDNS1123Subdomain(name); len(problems) > 0 {
			return fmt.Errorf("image pull secret %q: %s", name, problems[0])
		}
	}
	for _, workload := range p.Workloads {
		kind, name, _ := strings.Cut(workload, "/")
		if !slices.Contains(PreparedKinds, kind) || len(validation.IsDNS1123Subdomain(name)) > 0 {
			return fmt.Errorf("workload %q: write one of %s, a slash and a name", workload, strings.Join(PreparedKinds, ", "))
		}
	}
	return nil
}
