// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"cmp"
	"context"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/dynamicinformer"
	coreinformers "k8s.io/client-go/informers/core/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/cache"
)

const (
	// ProfileLabel on a Secret names the ClusterProfile whose kubeconfig it holds under the key Config.
	ProfileLabel = "x-k8s.io/cluster-profile"
	profileKey   = "Config"
)

var profileResource = schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Resource: "clusterprofiles"}

// Profiles is a registry: each ClusterProfile is a cluster, with the profile's name and labels. Its access is in a Secret
// with ProfileLabel. Access by programs on the hub's machine (credential plugins) is not taken.
type Profiles struct {
	profiles, secrets cache.SharedIndexInformer
}

// NewProfiles returns the registry of the ClusterProfiles of one namespace.
func NewProfiles(client dynamic.Interface, core kubernetes.Interface, namespace string) *Profiles {
	return &Profiles{
		profiles: dynamicinformer.NewFilteredDynamicInformer(client, profileResource, namespace, 0, cache.Indexers{}, nil).Informer(),
		secrets: coreinformers.NewFilteredSecretInformer(core, namespace, 0, cache.Indexers{ProfileLabel: byProfile}, func(o *metav1.ListOptions) {
			o.LabelSelector = ProfileLabel
		}),
	}
}

func byProfile(item any) ([]string, error) {
	if secret, ok := item.(*corev1.Secret); ok {
		return []string{secret.Labels[ProfileLabel]}, nil
	}
	return nil, nil
}

// Notify has a function called after every change.
func (p *Profiles) Notify(changed func()) {
	_, _ = p.profiles.AddEventHandler(notifier(changed))
	_, _ = p.secrets.AddEventHandler(notifier(changed))
}

// Run watches until ctx ends.
func (p *Profiles) Run(ctx context.Context) {
	var both sync.WaitGroup
	both.Go(func() { p.profiles.RunWithContext(ctx) })
	both.Go(func() { p.secrets.RunWithContext(ctx) })
	both.Wait()
}

// Filled are done when all profiles and Secrets have been seen.
func (p *Profiles) Filled() []cache.DoneChecker {
	return []cache.DoneChecker{p.profiles.HasSyncedChecker(), p.secrets.HasSyncedChecker()}
}

// Members are the clusters, by name.
func (p *Profiles) Members() []Registration {
	var all []Registration
	for _, item := range p.profiles.GetStore().List() {
		if u, ok := item.(*unstructured.Unstructured); ok {
			all = append(all, p.registration(u))
		}
	}
	slices.SortFunc(all, func(a, b Registration) int { return cmp.Compare(a.Name, b.Name) })
	return all
}

func (p *Profiles) registration(u *unstructured.Unstructured) Registration {
	items, _ := p.secrets.GetIndexer().ByIndex(ProfileLabel, u.GetName())
	var secrets []*corev1.Secret
	for _, item := range items {
		if secret, ok := item.(*corev1.Secret); ok {
			secrets = append(secrets, secret)
		}
	}
	if len(secrets) == 0 {
		return Registration{Name: u.GetName(), Labels: u.GetLabels(), Fault: Hold{"NoAccess", "no Secret with the label " + ProfileLabel + "=" + u.GetName() + " holds a kubeconfig for this profile"}}
	}
	first := slices.MinFunc(secrets, func(a, b *corev1.Secret) int { return cmp.Compare(a.Name, b.Name) })
	text := first.Data[profileKey]
	if text == nil {
		text = first.Data[secretKey]
	}
	return registrationOf(u.GetName(), u.GetLabels(), text)
}
