// SPDX-License-Identifier: Apache-2.0

package federatedhpa

import (
	"bytes"
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
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"

	"github.com/evenkeel/evenkeel/internal/handlers"
	"github.com/evenkeel/evenkeel/pkg/controller/federatedhpa/plan"
	"github.com/evenkeel/evenkeel/pkg/written"
)

// The names of the registries, as flags use them.
const (
	SecretRegistry  = "secrets"
	ProfileRegistry = "clusterprofiles"
)

// Registry knows which clusters exist.
type Registry interface {
	// Members returns all clusters by name.
	Members() []Registration
	// Notify sets a function that is called after every change. Call it before Run.
	Notify(changed func())
	// Run watches until ctx ends, and returns after everything that it started has ended.
	Run(ctx context.Context)
	// Filled returns the checks that Members is complete.
	Filled() []cache.DoneChecker
}

// Registration describes how to reach one cluster.
type Registration struct {
	Name   string
	Labels map[string]string
	// Config connects to it; nil if there is a Fault.
	Config *rest.Config
	// Print changes whenever Config changes.
	Print string
	// Fault is why it cannot be reached.
	Fault plan.Hold
}

// source is what one registration is made from.
type source struct {
	// name is the name of the cluster, version identifies everything that is read for it.
	name, version string
	read          func() Registration
}

// readings caches registrations while their sources are unchanged, because parsing a kubeconfig
// takes time.
type readings struct {
	mu  sync.Mutex
	all map[string]reading
}

type reading struct {
	version string
	Registration
}

// registrations returns the registrations by name.
func (r *readings) registrations(sources []source) []Registration {
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.all
	r.all = make(map[string]reading, len(sources))
	registrations := make([]Registration, 0, len(sources))
	for _, s := range sources {
		known, ok := before[s.name]
		if !ok || known.version != s.version {
			known = reading{s.version, s.read()}
		}
		r.all[s.name] = known
		registrations = append(registrations, known.Registration)
	}
	slices.SortFunc(registrations, func(a, b Registration) int { return cmp.Compare(a.Name, b.Name) })
	return registrations
}

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
		r.Fault = plan.Hold{Reason: "NoAccess", Message: fmt.Sprintf("no Secret with the label %s=%s holds a kubeconfig for this profile, and the hub has none of the access providers in its status: %s", ProfileLabel, r.Name, is.Status)}
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
