// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"

	"github.com/bufbuild/protocompile"
	"github.com/bufbuild/protocompile/protoutil"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/types/descriptorpb"
	"google.golang.org/protobuf/types/pluginpb"
)

// protocols are the files that gRPC stubs are made of, from the root of the repository.
var protocols = []string{"pkg/provider/nodegroup/externalgrpc/cloudprovider.proto"}

// generateStubs compiles each protocol file and has the plugins of protoc make stubs of it. protoc
// itself is a compiler in C++ that cannot be pinned in go.mod; a compiler in Go takes its place.
func generateStubs(out string) error {
	for _, file := range protocols {
		files, err := compile(file)
		if err != nil {
			return fmt.Errorf("compile %s: %w", file, err)
		}
		request := &pluginpb.CodeGeneratorRequest{
			FileToGenerate: []string{file}, ProtoFile: files, Parameter: proto.String("paths=source_relative"),
		}
		for _, plugin := range []string{"protoc-gen-go", "protoc-gen-go-grpc"} {
			if err := runPlugin(out, plugin, request); err != nil {
				return fmt.Errorf("make stubs of %s with %s: %w", file, plugin, err)
			}
		}
	}
	return nil
}

// compile describes a file and all that it imports, what is imported first.
func compile(file string) ([]*descriptorpb.FileDescriptorProto, error) {
	compiler := protocompile.Compiler{
		Resolver:       protocompile.WithStandardImports(&protocompile.SourceResolver{}),
		SourceInfoMode: protocompile.SourceInfoStandard,
	}
	found, err := compiler.Compile(context.Background(), file)
	if err != nil {
		return nil, err
	}
	var all []*descriptorpb.FileDescriptorProto
	seen := map[string]bool{}
	var add func(protoreflect.FileDescriptor)
	add = func(f protoreflect.FileDescriptor) {
		if seen[f.Path()] {
			return
		}
		seen[f.Path()] = true
		for i := range f.Imports().Len() {
			add(f.Imports().Get(i).FileDescriptor)
		}
		all = append(all, protoutil.ProtoFromFileDescriptor(f))
	}
	for _, f := range found {
		add(f)
	}
	return all, nil
}

// runPlugin gives a plugin its request and writes the files it answers with.
func runPlugin(out, plugin string, request *pluginpb.CodeGeneratorRequest) error {
	body, err := proto.Marshal(request)
	if err != nil {
		return err
	}
	cmd := exec.Command("go", "tool", plugin)
	cmd.Stdin, cmd.Stderr = bytes.NewReader(body), os.Stderr
	answer, err := cmd.Output()
	if err != nil {
		return err
	}
	var response pluginpb.CodeGeneratorResponse
	if err := proto.Unmarshal(answer, &response); err != nil {
		return err
	}
	if response.Error != nil {
		return fmt.Errorf("%s", response.GetError())
	}
	for _, made := range response.File {
		if err := writeFile(filepath.Join(out, made.GetName()), []byte(made.GetContent())); err != nil {
			return err
		}
	}
	return nil
}
