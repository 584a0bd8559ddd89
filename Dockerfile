FROM python:3.12-slim
COPY . /src
RUN python -m pip install --no-cache-dir -c /src/constraints.txt /src && rm -r /src
RUN useradd --create-home planner
USER planner
WORKDIR /home/planner
# an image whose planner does not prove the example is not made
RUN plan solve llama
ENTRYPOINT ["plan"]
