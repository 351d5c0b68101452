// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/handlers"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	"github.com/evenkeel/evenkeel/pkg/written"
)

const (
	// ProfileLabel on a Secret names the ClusterProfile whose kubeconfig it holds under the key
	// Config.
	ProfileLabel = "x-k8s.io/cluster-profile"
	profileKey   = "Config"
)

// ProfileResource identifies ClusterProfiles.
var ProfileResource = schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Resource: "clusterprofiles"}

// Profiles is a registry: each ClusterProfile is a cluster, with the profile's name and labels.
// Access comes from a Secret with ProfileLabel, otherwise from a program that both the profile's
// status and the operator's file list.
type Profiles struct {
	profiles, secrets cache.SharedIndexInformer
	access            Access
	allowed           Allowed
	readings          readings
}

// NewProfiles returns the registry of the ClusterProfiles of one namespace.
func NewProfiles(client dynamic.Interface, core kubernetes.Interface, namespace string, access Access, allowed Allowed) *Profiles {
	p := &Profiles{
		access: access, allowed: allowed,
		profiles: dynamicinformer.NewFilteredDynamicInformer(client, ProfileResource, namespace, 0, cache.Indexers{}, written.ListStored).Informer(),
		secrets: coreinformers.NewFilteredSecretInformer(core, namespace, 0, cache.Indexers{ProfileLabel: byProfile}, func(o *metav1.ListOptions) {
			o.LabelSelector = ProfileLabel
			written.ListStored(o)
		}),
	}
	_ = p.secrets.SetTransform(stripSecret(profileKey, secretKey)) // fails only for a running informer
	return p
}

func byProfile(item any) ([]string, error) {
	if secret, ok := item.(*corev1.Secret); ok {
		return []string{secret.Labels[ProfileLabel]}, nil
	}
	return nil, nil
}

// Notify sets a function that is called after every change.
func (p *Profiles) Notify(changed func()) {
	_, _ = p.profiles.AddEventHandler(handlers.OnEvent(changed))
	_, _ = p.secrets.AddEventHandler(handlers.OnEvent(changed))
}

// Run watches until ctx ends.
func (p *Profiles) Run(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() { p.profiles.RunWithContext(ctx) })
	both.Go(func() { p.secrets.RunWithContext(ctx) })
	both.Wait()
}

// Filled returns the checks that all profiles and Secrets have been read.
func (p *Profiles) Filled() []cache.DoneChecker {
	return []cache.DoneChecker{p.profiles.HasSyncedChecker(), p.secrets.HasSyncedChecker()}
}

// Members returns the clusters by name.
func (p *Profiles) Members() []Registration {
	var all []source
	for _, item := range p.profiles.GetStore().List() {
		if u, ok := item.(*unstructured.Unstructured); ok {
			all = append(all, p.source(u))
		}
	}
	return p.readings.registrations(all)
}

func (p *Profiles) source(u *unstructured.Unstructured) source {
	items, _ := p.secrets.GetIndexer().ByIndex(ProfileLabel, u.GetName())
	var secrets []*corev1.Secret
	for _, item := range items {
		if secret, ok := item.(*corev1.Secret); ok {
			secrets = append(secrets, secret)
		}
	}
	if len(secrets) == 0 {
		return source{u.GetName(), versionOf(u), func() Registration { return p.access.registration(u, p.allowed) }}
	}
	first := slices.MinFunc(secrets, func(a, b *corev1.Secret) int { return cmp.Compare(a.Name, b.Name) })
	text := first.Data[profileKey]
	if text == nil {
		text = first.Data[secretKey]
	}
	return source{u.GetName(), versionOf(u) + " " + versionOf(first), func() Registration {
		return registrationOf(u.GetName(), u.GetLabels(), text, p.allowed)
	}}
}

// registration chooses the access for a profile from what its status lists. Of what kubeconfigs may
// contain, only a proxy counts: the credentials of a program go to verified servers alone.
func (a Access) registration(u *unstructured.Unstructured, allowed Allowed) Registration {
	r := Registration{Name: u.GetName(), Labels: u.GetLabels()}
	var is struct {
		Status profileStatus `json:"status"`
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(u.Object, &is); err != nil {
		r.Fault = plan.Hold{Reason: "AccessInvalid", Message: "read the status of the profile: " + err.Error()}
		return r
	}
	provider, offer, found := a.choose(is.Status)
	if !found {
		r.Fault = plan.Hold{Reason: "NoAccess", Message: fmt.Sprintf("no Secret with the label %s=%s holds a kubeconfig for this profile, and no configured provider is among the access providers of its status: %s", ProfileLabel, r.Name, is.Status)}
		return r
	}
	text, err := provider.kubeconfig(offer)
	if err == nil {
		r.Config, err = kubeconfig(text, true, slices.DeleteFunc(slices.Clone(allowed), func(word string) bool { return word != AllowProxy }))
	}
	if err != nil {
		r.Config, r.Fault = nil, plan.Hold{Reason: "AccessInvalid", Message: fmt.Sprintf("access provider %s: %v", provider.Name, err)}
	}
	r.Print = hashOf(text)
	return r
}
