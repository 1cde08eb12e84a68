# The operator's image: static binaries and nothing else. The first is the operator. The others run in the Pods that it makes, or are started by it,
# for what they are linked with (docs/adr/0016). Members copy mysql-operator-supervisor, which starts mysqld.
#
# The binaries are built before, by make (`make image` without a container engine, `make docker-build` with one), instead of
# in a builder stage: the image then holds the very bytes that were tested, Go's caches are used, and neither way has to
# pull a compiler image first. `make build` is all that a plain `docker build .` needs.
FROM scratch

ARG VERSION=unknown
LABEL org.opencontainers.image.title="mysql-operator" \
      org.opencontainers.image.description="Runs MySQL clusters on Kubernetes; registers its own resource definitions" \
      org.opencontainers.image.source="https://github.com/mysql-operator/mysql-operator" \
      org.opencontainers.image.licenses="Apache-2.0" \
      org.opencontainers.image.version="${VERSION}"

COPY bin/mysql-operator bin/mysql-operator-backup bin/mysql-operator-member bin/mysql-operator-supervisor bin/mysql-operator-pulsar bin/mysql-operator-vsphere /

# Numeric, so that runAsNonRoot can be checked without a user database.
USER 65532:65532
ENTRYPOINT ["/mysql-operator"]
