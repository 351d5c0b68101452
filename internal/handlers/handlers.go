// SPDX-License-Identifier: Apache-2.0

// Package handlers makes event handlers of informers.
package handlers

import "k8s.io/client-go/tools/cache"

// OnChange passes on the old and the new version of each object. One of them is nil if the object
// was added or deleted.
func OnChange(changed func(was, is any)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(is any) { changed(nil, is) },
		UpdateFunc: changed,
		DeleteFunc: func(was any) { changed(LastState(was), nil) },
	}
}

// OnVersions passes on each version that an event contains: both of a changed object, and the last
// known state of a deleted one.
func OnVersions(changed func(items ...any)) cache.ResourceEventHandler {
	return cache.ResourceEventHandlerFuncs{
		AddFunc:    func(is any) { changed(is) },
		UpdateFunc: func(was, is any) { changed(was, is) },
		DeleteFunc: func(was any) { changed(LastState(was)) },
	}
}

// OnEvent calls a function for every event.
func OnEvent(changed func()) cache.ResourceEventHandler {
	return OnChange(func(_, _ any) { changed() })
}

// LastState returns the last known state of an object that an informer reports as deleted.
func LastState(item any) any {
	if gone, ok := item.(cache.DeletedFinalStateUnknown); ok {
		return gone.Obj
	}
	return item
}
