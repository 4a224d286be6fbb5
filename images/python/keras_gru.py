"""Trains a GRU on the adding problem, by Keras on TensorFlow.

Each step of a sequence has a random number and a mark; two marks are 1, one in each half. What the
two marked numbers add up to is the answer (Hochreiter and Schmidhuber, 1997). The loss is the mean
squared error: always answering 1 costs 0.167. Adam at 0.01; every batch is generated, from the seed.
"""

from argparse import Namespace

import cli

LENGTH = 100
UNITS = 128
BATCHES = 100


def train(args: Namespace, stop: cli.Stop) -> None:
    # Not above: TensorFlow takes seconds to load, and says much on standard error.
    import keras
    import tensorflow as tf
    from keras import layers

    import keras_job

    def batches(size: int, stream: int) -> tf.data.Dataset:
        def batch(number: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
            seed = tf.stack([args.seed * 2 + stream, number])
            numbers = tf.random.stateless_uniform((size, LENGTH), seed)
            half = LENGTH // 2
            places = tf.random.stateless_uniform((size, 2), seed + 1, 0, half, tf.int64)
            marks = tf.reshape(tf.one_hot(places, half), (size, LENGTH))
            return tf.stack([numbers, marks], 2), tf.reduce_sum(numbers * marks, 1, keepdims=True)

        return tf.data.Dataset.counter(step=2).map(batch).prefetch(1)

    end = keras_job.begin(args, stop)
    model = keras.Sequential([layers.Input((LENGTH, 2)), layers.GRU(UNITS), layers.Dense(1)])
    model.compile(keras.optimizers.Adam(args.learning_rate, clipnorm=1.0), loss="mse")
    with end.early():
        model.fit(
            batches(args.batch_size, 0),
            steps_per_epoch=BATCHES,
            epochs=end.epochs(BATCHES * args.batch_size),
            validation_data=batches(500, 1).take(2),
            callbacks=[end],
            verbose=1,
        )


def main() -> None:
    flags = cli.parser(__doc__, batch_size=64)
    flags.add_argument(
        "--learning-rate", type=float, default=1e-2, metavar="X", help="of Adam [0.01]"
    )
    args = flags.parse_args()
    stop = cli.Stop()
    print(
        f"Adding problem, sequences of {LENGTH}; {BATCHES} batches of {args.batch_size} in an "
        f"epoch, {args.threads} threads"
    )
    train(args, stop)


if __name__ == "__main__":
    main()
