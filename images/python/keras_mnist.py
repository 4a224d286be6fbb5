"""Trains a convolutional classifier on images, by Keras on TensorFlow.

Two convolutions, max pooling, dropout, two fully connected layers; cross entropy, Adam at 0.001,
batches of 64. The pixels are normalised by the data's own mean and deviation.
"""

from argparse import Namespace

import cli
import data


def train(args: Namespace, dataset: data.Dataset, stop: cli.Stop) -> None:
    # Not above: TensorFlow takes seconds to load, and says much on standard error.
    import keras
    from keras import layers

    import keras_job

    train, test = dataset.train, dataset.test
    mean, deviation = (value.item() for value in train.mean_and_deviation())
    end = keras_job.begin(args, stop)
    model = keras.Sequential(
        [
            layers.Input((28, 28, 1)),
            layers.Rescaling(1 / (255 * deviation), -mean / deviation),
            layers.Conv2D(32, 3, activation="relu"),
            layers.Conv2D(64, 3, activation="relu"),
            layers.MaxPooling2D(2),
            layers.Dropout(0.25),
            layers.Flatten(),
            layers.Dense(128, activation="relu"),
            layers.Dropout(0.5),
            layers.Dense(10),
        ]
    )
    model.compile(
        optimizer=keras.optimizers.Adam(1e-3),
        loss=keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    with end.early():
        model.fit(
            train.images[:, 0, :, :, None],
            train.labels,
            batch_size=args.batch_size,
            epochs=end.epochs(len(train)),
            validation_data=(test.images[:, 0, :, :, None], test.labels),
            validation_batch_size=500,
            callbacks=[end],
            verbose=1,
        )


def main() -> None:
    flags = cli.parser(__doc__, batch_size=64)
    cli.add_data(flags)
    args = flags.parse_args()
    stop = cli.Stop()
    dataset = data.load(data.grey, args)
    train(args, dataset, stop)


if __name__ == "__main__":
    main()
