# The site and the pipeline in one image:  docker build -t celosia .
FROM python:3.11-slim AS build
WORKDIR /src
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY app app
COPY solver solver
COPY demo demo
COPY templates templates
COPY static static
RUN python -m venv /opt/celosia \
 && /opt/celosia/bin/pip install --no-cache-dir --constraint constraints.txt '.[postgres]'

FROM python:3.11-slim
RUN useradd --create-home --uid 10001 celosia && mkdir /publication && chown celosia /publication
COPY --from=build /opt/celosia /opt/celosia
ENV PATH=/opt/celosia/bin:$PATH PYTHONUNBUFFERED=1
USER 10001
VOLUME /publication
EXPOSE 8000
ENTRYPOINT ["celosia"]
CMD ["serve", "/publication", "--host", "0.0.0.0"]
