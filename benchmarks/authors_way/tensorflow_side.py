"""The authors' way of training, in TensorFlow's graph mode; compare.py runs it in an environment of its own.

Each line on standard input, {"case": "wine", "steps": 100}, is answered by a line with the seconds that so
many training steps took. A step of wine and crime: draw a mini-batch from a pandas data frame, compute its
embedding by a session call, then one session call that trains all K models, each with its own loss and Adam,
on the batch, the weights brought to mean one in it. A step of MNIST takes the next rows of the data, and the
one-hot labels are the embedding.
"""

from __future__ import annotations

import json
import os
import sys
import time
from functools import cache

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import pandas as pd
import tensorflow.compat.v1 as tf
from cases import CASES, Case, alphas_of, encoder_of, features_and_labels


class Training:
    """One graph with the encoder and K models, and the session they live in."""

    def __init__(self, case: Case) -> None:
        self.case = case
        self.position = 0
        X, y = features_and_labels(case)
        self.features = [f"x{j}" for j in range(X.shape[1])]
        if case.embedding_sizes:
            self.frame = pd.DataFrame(X, columns=self.features)
            self.frame["y"] = y
        else:
            self.X, self.Y = X, np.eye(case.sizes[-1], dtype=np.float32)[y]
        with tf.Graph().as_default() as graph:
            self._build()
            self.session = tf.Session(graph=graph)
            self.session.run(tf.global_variables_initializer())

    def _build(self) -> None:
        case = self.case
        self.x = tf.placeholder(tf.float32, [None, case.sizes[0]])
        self.y = tf.placeholder(tf.float32, [None, case.sizes[-1]])
        self.z = tf.placeholder(tf.float32, [None, case.n_dims])
        if case.embedding_sizes:
            layer = tf.concat([self.x, self.y], axis=1)
            for W, b in encoder_of(case):
                layer = tf.sigmoid(tf.matmul(layer, tf.Variable(W)) + tf.Variable(b))
            self.embedding = layer
        self.train = [self._model(alpha) for alpha in alphas_of(case).astype(np.float32)]

    def _model(self, alpha: np.ndarray) -> tf.Operation:
        """One of the K models with its weights, loss and optimiser: the operation that trains it."""
        case = self.case
        variables = []
        out = self.x
        for depth, (n_in, n_out) in enumerate(zip(case.sizes[:-1], case.sizes[1:], strict=True)):
            limit = np.sqrt(6.0 / (n_in + n_out))
            W = tf.Variable(tf.random_uniform([n_in, n_out], -limit, limit))
            b = tf.Variable(tf.zeros([n_out]))
            variables += [W, b]
            out = tf.matmul(tf.sigmoid(out) if depth else out, W) + b
        if case.loss == "squared":
            losses = tf.square(out - self.y)
        elif case.loss == "hinge":
            losses = tf.maximum(0.0, 1.0 - self.y * out)
        else:
            losses = tf.nn.sigmoid_cross_entropy_with_logits(labels=self.y, logits=out)
        weights = tf.sigmoid(tf.linalg.matvec(self.z, alpha))
        weights = weights / tf.reduce_mean(weights)
        loss = tf.reduce_mean(weights * tf.reduce_sum(losses, axis=1))
        return tf.train.AdamOptimizer(0.001).minimize(loss, var_list=variables)

    def step(self) -> None:
        """One mini-batch."""
        if self.case.embedding_sizes:
            batch = self.frame.sample(n=self.case.batch_size)
            feed = {self.x: batch[self.features], self.y: batch[["y"]]}
            feed[self.z] = self.session.run(self.embedding, feed_dict=feed)
        else:
            end = self.position + self.case.batch_size
            x, y = self.X[self.position : end], self.Y[self.position : end]
            self.position = end % len(self.X)  # the batch size divides the number of rows
            feed = {self.x: x, self.y: y, self.z: y}
        self.session.run(self.train, feed_dict=feed)


@cache
def training_of(name: str) -> Training:
    return Training(CASES[name])


def main() -> None:
    tf.disable_eager_execution()
    print(json.dumps({"tensorflow": tf.__version__, "numpy": np.__version__}), flush=True)
    for line in sys.stdin:
        order = json.loads(line)
        training = training_of(order["case"])
        start = time.perf_counter()
        for _ in range(order["steps"]):
            training.step()
        print(json.dumps({"seconds": time.perf_counter() - start}), flush=True)


if __name__ == "__main__":
    main()
