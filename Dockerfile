# The worker alone: no devkit, no Spark, no build tools. Runs as uid 10001 with `docker run --read-only`, and writes nothing.
#
#   docker build -t reckon .
#   docker run --read-only -v "$PWD/config/pipelines:/config:ro" -e RECKON_KAFKA_BOOTSTRAP_SERVERS=broker:9092 reckon run /config/orders.yaml
#
# Builds with BuildKit and with the legacy builder: no heredocs, no mounts.
ARG BASE_IMAGE=python:3.11-slim-bookworm

FROM ${BASE_IMAGE} AS build
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_ROOT_USER_ACTION=ignore
# Two environments: the one that builds stays here with pip and setuptools, the one that ships holds only what runs.
RUN python -m venv /build/venv && python -m venv --without-pip /opt/reckon
COPY requirements/build.lock requirements/worker.lock /build/requirements/
RUN /build/venv/bin/pip install --quiet --require-hashes -r /build/requirements/build.lock \
 && /build/venv/bin/pip --python /opt/reckon/bin/python install --quiet --no-compile --require-hashes -r /build/requirements/worker.lock
WORKDIR /build/source
COPY pyproject.toml README.md LICENSE ./
COPY transforms transforms
COPY worker worker
# pyproject.toml lists these packages; left empty they add nothing to the wheel.
RUN mkdir -p devkit spark_batch/report \
 && /build/venv/bin/pip wheel --quiet --no-deps --no-build-isolation --wheel-dir /build/wheels . \
 && /build/venv/bin/pip --python /opt/reckon/bin/python install --quiet --no-compile --no-deps /build/wheels/*.whl \
 && /opt/reckon/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/reckon/lib

FROM ${BASE_IMAGE} AS runtime
LABEL org.opencontainers.image.title="reckon" \
      org.opencontainers.image.description="A Kafka worker that consumes, transforms and produces exactly once, and leaves the proof" \
      org.opencontainers.image.licenses="Apache-2.0"
RUN groupadd --gid 10001 reckon && useradd --uid 10001 --gid 10001 --no-create-home --home-dir / --shell /usr/sbin/nologin reckon
COPY --from=build /opt/reckon /opt/reckon
ENV PATH=/opt/reckon/bin:$PATH PYTHONUNBUFFERED=1
# Proves that the image starts, and leaves the bytecode of the standard library's modules that a start imports: slim images come
# without, and a container with a read-only file system would compile them anew at every start.
RUN reckon run --help >/dev/null
ENV PYTHONDONTWRITEBYTECODE=1
WORKDIR /app
COPY config config
USER 10001:10001
# The exec form makes Python process 1, so that it gets the SIGTERM of `docker stop` itself.
ENTRYPOINT ["reckon"]
CMD ["--help"]
