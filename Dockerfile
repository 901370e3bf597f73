# Site, studio and workers in one image:  docker build -t celosia .
# The root may be read-only: only the volume and the temporary folder are written.
FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY app app
COPY solver solver
COPY demo demo
COPY templates templates
COPY static static
RUN python -m venv /opt/celosia \
 && /opt/celosia/bin/pip install --no-cache-dir --constraint constraints.txt '.[postgres,telemetry]' \
 && /opt/celosia/bin/python -m compileall -q /opt/celosia/lib

FROM python:3.11-slim
RUN useradd --no-create-home --uid 10001 celosia && mkdir -m 700 /publication && chown 10001 /publication
COPY --from=build /opt/celosia /opt/celosia
ENV PATH=/opt/celosia/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1 CELOSIA_LOG=json HOME=/tmp
USER 10001
WORKDIR /publication
VOLUME ["/publication"]
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=5s --start-period=30s \
  CMD ["python", "-c", "import urllib.request as u; u.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
ENTRYPOINT ["celosia"]
CMD ["serve", "/publication", "--host", "0.0.0.0", "--port", "8000"]
