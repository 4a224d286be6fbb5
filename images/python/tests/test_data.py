"""What is read of files of images, whole and damaged."""

import contextlib
import gzip
import io
import struct
import tempfile
import unittest
from argparse import Namespace
from pathlib import Path

import numpy as np

import data


class Files(unittest.TestCase):
    def setUp(self) -> None:
        self.folder = Path(self.enterContext(tempfile.TemporaryDirectory()))

    def idx(self, name: str, array: np.ndarray) -> bytes:
        header = bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape)
        content = header + array.astype(np.uint8).tobytes()
        (self.folder / name).write_bytes(content)
        return content

    def images(self, which: str, count: int) -> None:
        """Each of one grey, and labelled by its last digit."""
        greys = np.arange(count) % 256
        self.idx(f"{which}-images-idx3-ubyte", np.tile(greys[:, None, None], (1, 28, 28)))
        self.idx(f"{which}-labels-idx1-ubyte", greys % 10)

    def refused(self, *words: str) -> None:
        with self.assertRaises(data.DataError) as error:
            data.colour(self.folder)
        for word in words:
            self.assertIn(word, str(error.exception))
        self.assertNotIn("\n", str(error.exception))

    def test_the_four_files_of_a_data_set(self) -> None:
        self.images("train", 40)
        self.images("t10k", 20)
        dataset = data.grey(self.folder)
        self.assertEqual((len(dataset.train), len(dataset.test)), (40, 20))
        self.assertEqual(dataset.train.images.shape, (40, 1, 28, 28))
        self.assertTrue((dataset.train.images[33] == 33).all())
        self.assertEqual(dataset.train.labels[33], 3)
        self.assertEqual(dataset.name, "custom IDX")

    def test_loaded_data_is_printed(self) -> None:
        self.images("t10k", 50)
        args = Namespace(data=self.folder, batch_size=8, threads=2)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            self.assertEqual(len(data.load(data.grey, args).train), 45)
        self.assertEqual(
            printed.getvalue(),
            "custom IDX t10k, split 9:1: 45 images to train on, 5 to test on; "
            "batches of 8, 2 threads\n",
        )

    def test_wrong_data_ends_the_program_with_one_line(self) -> None:
        args = Namespace(data=self.folder, batch_size=8, threads=2)
        with contextlib.redirect_stderr(io.StringIO()) as printed:
            with self.assertRaises(SystemExit) as end:
                data.load(data.grey, args)
        self.assertEqual(end.exception.code, 2)
        self.assertEqual(printed.getvalue().count("\n"), 1)
        self.assertIn("t10k-images-idx3-ubyte", printed.getvalue())

    def test_test_images_alone_are_split(self) -> None:
        self.images("t10k", 50)
        dataset = data.grey(self.folder)
        self.assertEqual((len(dataset.train), len(dataset.test)), (45, 5))
        self.assertTrue((dataset.test.images[0] == 45).all())

    def test_compressed_files(self) -> None:
        self.images("t10k", 50)
        for path in list(self.folder.iterdir()):
            Path(f"{path}.gz").write_bytes(gzip.compress(path.read_bytes()))
            path.unlink()
        self.assertEqual(len(data.grey(self.folder).train), 45)

    def test_grey_images_get_a_border_and_three_channels(self) -> None:
        self.images("t10k", 50)
        images = data.colour(self.folder).train.images
        self.assertEqual(images.shape, (45, 3, 32, 32))
        self.assertTrue((images[7, :, 2:30, 2:30] == 7).all())
        self.assertEqual(images[7].sum(), 7 * 3 * 28 * 28)

    def test_mean_and_deviation_are_those_of_the_pixels(self) -> None:
        random = np.random.default_rng(1)
        images = random.integers(256, size=(1500, 2, 4, 4), dtype=np.uint8)
        split = data.Split(images, np.zeros(1500))
        mean, deviation = split.mean_and_deviation()
        np.testing.assert_allclose(mean, (images / 255).mean((0, 2, 3)), rtol=1e-6)
        np.testing.assert_allclose(deviation, (images / 255).std((0, 2, 3)), rtol=1e-6)

    def test_cifar(self) -> None:
        folder = self.folder / "cifar-10-batches-bin"
        folder.mkdir()
        record = np.repeat(np.array([7, 1, 2, 3], np.uint8), [1, 1024, 1024, 1024])
        for name in ("data_batch_1.bin", "data_batch_2.bin", "test_batch.bin"):
            (folder / name).write_bytes(np.tile(record, 10).tobytes())
        dataset = data.colour(self.folder)
        self.assertEqual((len(dataset.train), len(dataset.test)), (20, 10))
        self.assertEqual(dataset.train.labels[0], 7)
        self.assertEqual(dataset.train.images[0, :, 5, 5].tolist(), [1, 2, 3])
        (folder / "test_batch.bin").write_bytes(b"123")
        self.refused("test_batch.bin", "CIFAR-10")

    def test_invalid_data_set_is_refused_in_one_line(self) -> None:
        self.refused("has no t10k-images-idx3-ubyte")
        self.images("t10k", 9)
        self.refused("9 images")
        self.images("t10k", 50)
        self.idx("t10k-labels-idx1-ubyte", np.full(50, 10))
        self.refused("label 10")
        self.idx("t10k-labels-idx1-ubyte", np.zeros(49))
        self.refused("(49,)")

    def test_damaged_files_are_refused_in_one_line(self) -> None:
        self.images("t10k", 50)
        path = self.folder / "t10k-images-idx3-ubyte"
        whole = path.read_bytes()
        packed = gzip.compress(whole)
        huge = bytes([0, 0, 8, 3]) + b"\xff" * 12
        damaged = [b"", whole[:3], whole[:10], whole[:-1], whole + b"1", b"\0\0\x0d" + whole[3:]]
        damaged += [packed[:-9], packed[:20] + b"12345" + packed[25:], packed[:5], huge]
        for content in damaged:
            path.write_bytes(content)
            with self.subTest(content[:16]):
                self.refused(path.name)


if __name__ == "__main__":
    unittest.main()
