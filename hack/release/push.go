// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
)

// push uploads the images as they are in the release's folder, with the credentials of the docker
// configuration. A version that the registry has with another digest is not replaced.
func (r *release) push(ctx context.Context, images map[string]v1.ImageIndex) error {
	options := []remote.Option{remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain)}
	for _, command := range slices.Sorted(maps.Keys(images)) {
		tag, err := name.NewTag(r.Push + "/" + command + ":" + r.Version)
		if err != nil {
			return err
		}
		digest, err := images[command].Digest()
		if err != nil {
			return err
		}
		switch there, err := remote.Head(tag, options...); {
		case err == nil && there.Digest != digest:
			return fmt.Errorf("push %s: the registry has this version with digest %s; release another version", tag, there.Digest)
		case err != nil && !missing(err):
			return fmt.Errorf("push %s: look up whether the registry has this version: %w", tag, err)
		}
		if err := remote.WriteIndex(tag, images[command], options...); err != nil {
			return fmt.Errorf("push %s: %w", tag, err)
		}
		fmt.Printf("pushed %s@%s\n", tag, digest)
	}
	return nil
}

// missing reports whether a registry answered that it does not have a version. Any other error
// does not show that.
func missing(err error) bool {
	var answer *transport.Error
	return errors.As(err, &answer) && answer.StatusCode == http.StatusNotFound
}
