// SPDX-License-Identifier: Apache-2.0

package handlers

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/client-go/tools/cache"
)

// AwaitFirst waits until informers have an object that matters, or ctx ends.
func AwaitFirst(ctx context.Context, kind string, matters func(item any) bool, informers ...cache.SharedIndexInformer) error {
	found, cancel := context.WithCancel(ctx)
	defer cancel()
	look := func(item any) {
		if matters(item) {
			cancel()
		}
	}
	var errs []error
	for _, informer := range informers {
		handle, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{AddFunc: look, UpdateFunc: func(_, item any) { look(item) }})
		errs = append(errs, err)
		defer func() { _ = informer.RemoveEventHandler(handle) }() // fails only where there is none
	}
	if err := errors.Join(errs...); err != nil && ctx.Err() == nil {
		return fmt.Errorf("wait for the first %s: %w", kind, err)
	}
	<-found.Done()
	return nil
}

// Anything lets every object matter.
func Anything(any) bool { return true }
