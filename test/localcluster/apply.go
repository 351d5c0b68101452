// SPDX-License-Identifier: Apache-2.0

package localcluster

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/discovery/cached/memory"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/restmapper"
)

// fieldManager owns what Apply writes.
const fieldManager = "evenkeel-localcluster"

// Apply applies the objects in YAML files by server-side apply; for a folder, all its *.yaml files,
// sorted by name. Relative paths start at the root of the repository. When it returns, applied
// custom resources are served.
func (c *Cluster) Apply(ctx context.Context, manifests ...string) error {
	objects, err := c.readManifests(manifests)
	if err != nil {
		return err
	}
	a, err := c.newApplier()
	if err != nil {
		return err
	}
	for _, object := range objects {
		if err := a.applyObject(ctx, object); err != nil {
			return fmt.Errorf("apply %s %s: %w", object.GetKind(), object.GetName(), err)
		}
	}
	return nil
}

type applier struct {
	client dynamic.Interface
	mapper *restmapper.DeferredDiscoveryRESTMapper
}

func (c *Cluster) newApplier() (*applier, error) {
	client, err := dynamic.NewForConfig(c.Config())
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	discoverer, err := discovery.NewDiscoveryClientForConfig(c.Config())
	if err != nil {
		return nil, fmt.Errorf("make client: %w", err)
	}
	return &applier{client, restmapper.NewDeferredDiscoveryRESTMapper(memory.NewMemCacheClient(discoverer))}, nil
}

func (a *applier) applyObject(ctx context.Context, object *unstructured.Unstructured) error {
	resource, err := a.resource(object)
	if err != nil {
		return err
	}
	_, err = resource.Apply(ctx, object.GetName(), object, metav1.ApplyOptions{FieldManager: fieldManager, Force: true})
	if err != nil || object.GetKind() != "CustomResourceDefinition" {
		return err
	}
	a.mapper.Reset() // so that objects of the new kind are found
	return waitEstablished(ctx, resource, object.GetName())
}

func (a *applier) resource(object *unstructured.Unstructured) (dynamic.ResourceInterface, error) {
	kind := object.GroupVersionKind()
	mapping, err := a.mapper.RESTMapping(kind.GroupKind(), kind.Version)
	if err != nil {
		return nil, err
	}
	resource := a.client.Resource(mapping.Resource)
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		return resource, nil
	}
	namespace := object.GetNamespace()
	if namespace == "" {
		namespace = metav1.NamespaceDefault
	}
	return resource.Namespace(namespace), nil
}

func waitEstablished(ctx context.Context, crds dynamic.ResourceInterface, name string) error {
	for {
		crd, err := crds.Get(ctx, name, metav1.GetOptions{})
		if err != nil {
			return err
		}
		if isEstablished(crd) {
			return nil
		}
		if err := sleepContext(ctx, pollInterval); err != nil {
			return fmt.Errorf("wait until established: %w", err)
		}
	}
}

func isEstablished(crd *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(crd.Object, "status", "conditions")
	return slices.ContainsFunc(conditions, func(condition any) bool {
		fields, ok := condition.(map[string]any)
		return ok && fields["type"] == "Established" && fields["status"] == "True"
	})
}

func (c *Cluster) readManifests(manifests []string) ([]*unstructured.Unstructured, error) {
	var objects []*unstructured.Unstructured
	for _, path := range manifests {
		if !filepath.IsAbs(path) {
			path = filepath.Join(c.options.Root, path)
		}
		files := []string{path}
		if info, err := os.Stat(path); err != nil {
			return nil, fmt.Errorf("read manifests: %w", err)
		} else if info.IsDir() {
			files, _ = filepath.Glob(filepath.Join(path, "*.yaml"))
		}
		for _, file := range files {
			found, err := readManifest(file)
			if err != nil {
				return nil, fmt.Errorf("read manifest %s: %w", file, err)
			}
			objects = append(objects, found...)
		}
	}
	return objects, nil
}

func readManifest(path string) ([]*unstructured.Unstructured, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	var objects []*unstructured.Unstructured
	for decoder := yaml.NewYAMLOrJSONDecoder(file, 4096); ; {
		object := &unstructured.Unstructured{}
		err := decoder.Decode(&object.Object)
		switch {
		case errors.Is(err, io.EOF):
			return objects, nil
		case err != nil:
			return nil, err
		case len(object.Object) > 0: // otherwise, it was empty between two separators
			objects = append(objects, object)
		}
	}
}
