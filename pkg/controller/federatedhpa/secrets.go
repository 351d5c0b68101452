// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"bytes"
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/handlers"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	"github.com/evenkeel/evenkeel/pkg/written"
)

const (
	// SecretLabel marks Secrets that contain the kubeconfig of a cluster. The multicluster
	// runtime's provider uses the same label.
	SecretLabel = "sigs.k8s.io/multicluster-runtime-kubeconfig"
	secretKey   = "kubeconfig"
)

// Secrets is a registry: each Secret with SecretLabel=true is a cluster, with the Secret's name and
// labels.
type Secrets struct {
	informer cache.SharedIndexInformer
	allowed  Allowed
	readings readings
}

// NewSecrets returns the registry of the Secrets of one namespace.
func NewSecrets(client kubernetes.Interface, namespace string, allowed Allowed) *Secrets {
	s := &Secrets{allowed: allowed, informer: coreinformers.NewFilteredSecretInformer(client, namespace, 0, cache.Indexers{}, func(o *metav1.ListOptions) {
		o.LabelSelector = SecretLabel + "=true"
		written.ListStored(o)
	})}
	_ = s.informer.SetTransform(stripSecret(secretKey)) // fails only for a running informer
	return s
}

// stripSecret returns a transformation that keeps the metadata, and the kubeconfig unless it is too large:
// that of the first key which a Secret has.
func stripSecret(keys ...string) cache.TransformFunc {
	return func(item any) (any, error) {
		secret, ok := item.(*corev1.Secret)
		if !ok {
			return item, nil
		}
		kept := &corev1.Secret{ObjectMeta: metav1.ObjectMeta{
			Name: secret.Name, Namespace: secret.Namespace, UID: secret.UID, ResourceVersion: secret.ResourceVersion, Labels: secret.Labels,
		}}
		for _, key := range keys {
			if text, ok := secret.Data[key]; ok {
				kept.Data = map[string][]byte{key: bytes.Clone(text[:min(len(text), maxKubeconfig+1)])}
				break
			}
		}
		return kept, nil
	}
}

// Notify sets a function that is called after every change.
func (s *Secrets) Notify(changed func()) {
	_, _ = s.informer.AddEventHandler(handlers.OnEvent(changed))
}

// Run watches until ctx ends.
func (s *Secrets) Run(ctx context.Context) { s.informer.RunWithContext(ctx) }

// Filled returns the check that all Secrets have been read.
func (s *Secrets) Filled() []cache.DoneChecker {
	return []cache.DoneChecker{s.informer.HasSyncedChecker()}
}

// Members returns the clusters by name.
func (s *Secrets) Members() []Registration {
	var all []source
	for _, item := range s.informer.GetStore().List() {
		if secret, ok := item.(*corev1.Secret); ok {
			all = append(all, source{secret.Name, versionOf(secret), func() Registration {
				return registrationOf(secret.Name, secret.Labels, secret.Data[secretKey], s.allowed)
			}})
		}
	}
	return s.readings.registrations(all)
}

// versionOf distinguishes all states of an object.
func versionOf(o metav1.Object) string { return string(o.GetUID()) + "/" + o.GetResourceVersion() }

// registrationOf returns the registration for a kubeconfig, valid or not.
func registrationOf(name string, labels map[string]string, text []byte, allowed Allowed) Registration {
	r := Registration{Name: name, Labels: labels, Print: hashOf(text)}
	config, err := kubeconfig(text, false, allowed)
	if err != nil {
		r.Fault = plan.Hold{Reason: "KubeconfigInvalid", Message: err.Error()}
		return r
	}
	r.Config = config
	return r
}
