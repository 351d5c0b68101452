# SPDX-License-Identifier: Apache-2.0
#
# The image of machine-controller-manager, for several platforms, with an SBOM, each built on the builder's own platform:
#
#   docker buildx build --platform=linux/amd64,linux/arm64 --build-arg=VERSION=v0.1.0 \
#     --build-arg=BUILDER=golang:1.26@sha256:... --build-arg=BASE=gcr.io/distroless/static:nonroot@sha256:... \
#     --sbom=true --provenance=mode=max -t NAME --push .
#
# BUILDER and BASE have no default and need a digest: a tag may be moved. `make image` checks both before it builds.
#
# The others: --target=evenkeel-workloads, and --target=machine-controller for that with virtual machines.
ARG BUILDER
ARG BASE
FROM --platform=$BUILDPLATFORM ${BUILDER} AS build
ARG BUILDER
ARG BASE
COPY hack/pinned.sh /
RUN /pinned.sh "$BUILDER" "$BASE"
WORKDIR /src
COPY go.mod go.sum ./
RUN --mount=type=cache,target=/go/pkg/mod go mod download
COPY cmd cmd
COPY internal internal
COPY pkg pkg
ARG TARGETOS TARGETARCH
ARG VERSION=
# Static, and the same bytes from the same sources.
RUN --mount=type=cache,target=/go/pkg/mod --mount=type=cache,target=/root/.cache/go-build \
    CGO_ENABLED=0 GOOS=$TARGETOS GOARCH=$TARGETARCH go build -trimpath -buildvcs=false -tags=grpcnotrace \
    -ldflags="-s -w -X github.com/evenkeel/evenkeel/internal/version.stamp=$VERSION" \
    -o /out/ ./cmd/machine-controller-manager ./cmd/evenkeel-workloads ./cmd/machine-controller

FROM ${BASE} AS base
# Who deploys the stock image may start ./machine-controller-manager.
WORKDIR /
USER 65532:65532

FROM base AS machine-controller
COPY --from=build /out/machine-controller /
ENTRYPOINT ["/machine-controller"]

FROM base AS evenkeel-workloads
COPY --from=build /out/evenkeel-workloads /
ENTRYPOINT ["/evenkeel-workloads"]

FROM base AS machine-controller-manager
COPY --from=build /out/machine-controller-manager /
ENTRYPOINT ["/machine-controller-manager"]
