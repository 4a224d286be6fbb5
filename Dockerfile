# The images of both programs, compiled inside: only Docker is needed.
#   docker build --tag paceline/allocator .
#   docker build --tag paceline/sidecar --target sidecar .
#
# `allocator/image.sh` and `sidecar/image.sh` take the last stage of each from here, and compile outside: what other
# builds have compiled is not compiled again.

# An image with Rust and a C compiler.
ARG BUILDER=rust:1-slim-bookworm
ARG VERSION=0.1.0

FROM ${BUILDER} AS source
WORKDIR /source
# Optimized across crates, for small images.
ENV CARGO_PROFILE_RELEASE_LTO=fat
COPY . .
RUN cc -O2 -Wall -c sidecar/lookup.c -o /lookup.o

FROM source AS compiled-sidecar
# PROFILE=dev compiles in less time, and makes large and slow programs.
ARG PROFILE=release
RUN cargo rustc --profile "$PROFILE" --locked --package paceline-sidecar --bin paceline-sidecar \
      --no-default-features --features forward,otlp -- \
      -C target-feature=+crt-static -C strip=symbols -C link-arg=/lookup.o \
  && install -D target/*/paceline-sidecar /rootfs/paceline-sidecar \
  && mkdir /rootfs/state \
  && rm -rf target

# The sidecar's image: one static program, run as an unprivileged user.
#
# It contains only the program and the folder /state, for --state and --status-file. The program
# writes nowhere else:
#   docker run --read-only --cap-drop ALL --security-opt no-new-privileges \
#     --network container:job -v logs:/logs:ro -v state:/state \
#     paceline/sidecar --log /logs/train.log --state /state/job.json
#
# The program also runs in any other Linux image:
#   COPY --from=paceline/sidecar /paceline-sidecar /usr/local/bin/
FROM scratch AS sidecar
ARG VERSION
LABEL org.opencontainers.image.title="Paceline sidecar" \
      org.opencontainers.image.description="Publishes the loss and batch latency of a training job, read from what it prints or writes" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0"
COPY --from=compiled-sidecar /rootfs/paceline-sidecar /
# A new volume mounted there belongs to the same user.
COPY --from=compiled-sidecar --chown=65532:65532 /rootfs/state /state/
USER 65532:65532
HEALTHCHECK --interval=10s --timeout=3s --start-period=5s CMD ["/paceline-sidecar", "healthcheck"]
ENTRYPOINT ["/paceline-sidecar"]

FROM source AS compiled-allocator
ARG PROFILE=release
# Without the commands that compare policies (feature `bench`).
RUN cargo rustc --profile "$PROFILE" --locked --package paceline --bin paceline \
      --no-default-features --features cri -- \
      -C target-feature=+crt-static -C strip=symbols -C link-arg=/lookup.o \
  && install -D target/*/paceline /rootfs/paceline \
  && rm -rf target

# The allocator's image: the program and the libraries that it is linked with, nothing else.
#
# It needs the host's processes and network namespaces
# (examples/deploy/allocator-compose.yaml has the same settings for compose):
#   docker run --rm --pid host --network host --cgroupns host \
#     --cap-add SYS_ADMIN --cap-add SYS_PTRACE --cap-add SYS_NICE \
#     --security-opt apparmor=unconfined \
#     -v /var/run/docker.sock:/var/run/docker.sock -v /sys/fs/cgroup:/sys/fs/cgroup \
#     -v /var/lib/paceline:/var/lib/paceline paceline/allocator run
FROM scratch AS allocator
ARG VERSION
LABEL org.opencontainers.image.title="Paceline allocator" \
      org.opencontainers.image.description="Moves CPU between the training jobs that share a machine" \
      org.opencontainers.image.version="${VERSION}" \
      org.opencontainers.image.licenses="MIT OR Apache-2.0"
COPY --from=compiled-allocator /rootfs/ /
ENTRYPOINT ["/paceline"]
CMD ["run"]
