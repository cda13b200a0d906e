"""Colours that a file states without an ICC profile: each is the same picture in sRGB again."""

import io
import struct
import zlib

import numpy as np
import pytest
import tifffile
from helpers import needs
from PIL import Image

from styletransfer.pictures.convert import as_picture
from styletransfer.pictures.images import read

imagecodecs = needs("tiff", "imagecodecs")
pillow_heif = needs("studio", "pillow_heif")
pillow_heif.register_heif_opener(thumbnails=False)

# Published matrices from linear sRGB, for columns of light: BT.2087, and those of Lindbloom.
MATRICES = {
    "sRGB": np.eye(3),
    "BT.2020": [
        [0.62740, 0.32928, 0.04331],
        [0.06910, 0.91954, 0.01136],
        [0.01639, 0.08801, 0.8956],
    ],
    "P3": [[0.82246, 0.17754, 0.0], [0.03319, 0.96681, 0.0], [0.01708, 0.07240, 0.91052]],
    "Adobe RGB": [[0.71512, 0.28488, 0.0], [0.0, 1.0, 0.0], [0.0, 0.04117, 0.95883]],
    "BT.601": np.linalg.inv(
        [[0.93954, 0.05018, 0.01028], [0.01777, 0.96579, 0.01643], [-0.00162, -0.00437, 1.006]]
    ),
}
SAMPLES = {
    "sRGB": lambda y: np.where(y <= 0.0031308, y * 12.92, 1.055 * y ** (1 / 2.4) - 0.055),
    "linear": lambda y: y,
    "2.2": lambda y: y ** (256 / 563),
    "1.8": lambda y: y ** (1 / 1.8),
    "PQ": lambda y: (
        ((0.8359375 + 18.8515625 * nits(y)) / (1 + 18.6875 * nits(y))) ** 78.84375  # ST 2084
    ),
    "HLG": lambda y: np.where(
        0.265 * y <= 1 / 12,
        np.sqrt(3 * 0.265 * y),
        0.17883277 * np.log(np.maximum(12 * 0.265 * y - 0.28466892, 1e-9)) + 0.55991073,
    ),
}
# XYZ of the primaries of Adobe RGB.
XYZ = (0.5767, 0.2974, 0.0270, 0.1856, 0.6273, 0.0707, 0.1882, 0.0753, 0.9911)
P3, BT2020 = (12, "P3"), (9, "BT.2020")
CICP = [
    (*P3, 13, "sRGB"),
    (*P3, 16, "PQ"),
    (*P3, 1, "sRGB"),
    *((*BT2020, number, "sRGB") for number in (1, 6, 14, 15)),
    (*BT2020, 16, "PQ"),
    (*BT2020, 18, "HLG"),
    (1, "sRGB", 8, "linear"),
    (2, "sRGB", 16, "PQ"),
    (6, "BT.601", 6, "sRGB"),
    (7, "BT.601", 2, "sRGB"),
]


def nits(light):
    """Return light, where the white of a page is 1 and 203 cd/m2, as ST 2084 takes it."""
    return (np.maximum(light, 0) * 203 / 10000) ** 0.1593017578125


def photo(height=32, width=48):
    """Return a smooth sRGB picture (H, W, 3) in 0.15 to 0.85, whose colours are not grey."""
    y, x = np.mgrid[0 : 1 : 1j * height, 0 : 1 : 1j * width]
    waves = (np.sin(3 * x + y), np.cos(4 * y - x + 1), np.sin(5 * x * y + 2))
    return 0.5 + 0.35 * np.stack(waves, axis=2)


def light_of(picture):
    return np.where(picture <= 0.04045, picture / 12.92, ((picture + 0.055) / 1.055) ** 2.4)


def stored(primaries, curve, bits=16, picture=None):
    """Return the samples (H, W, 3) that mean `photo()` in this colour space."""
    light = light_of(photo() if picture is None else picture) @ np.transpose(MATRICES[primaries])
    largest = 2**bits - 1
    samples = np.round(SAMPLES[curve](light.clip(0, 1)) * largest)
    return samples.astype(np.uint8 if bits == 8 else np.uint16)


def with_chunks(png, **chunks):
    """Return the bytes of a PNG with chunks after the header."""
    framed = b""
    for name, data in chunks.items():
        whole = name.encode() + data
        framed += struct.pack(">I", len(data)) + whole + struct.pack(">I", zlib.crc32(whole))
    return png[:33] + framed + png[33:]


def png(samples, **chunks):
    return with_chunks(imagecodecs.png_encode(samples), **chunks)


def chrm(*primaries):
    """Return PNG's chunk cHRM of x, y of red, green and blue under D65."""
    return struct.pack(">8I", *(round(100000 * x) for x in (0.3127, 0.329, *primaries)))


def gama(exponent):
    return struct.pack(">I", round(100000 / exponent))


def exif(color_space=None, interop=None, **tags):
    """Return EXIF with a colour space, an interoperability index and tags such as x13E=..."""
    found = Image.Exif()
    found[0x131] = "a program"
    if color_space is not None:
        found.get_ifd(0x8769)[0xA001] = color_space
    if interop is not None:
        found.get_ifd(0x8769)[0xA005] = {1: interop}
    for number, value in tags.items():
        found[int(number[1:], 16)] = value
    return found


def reloaded(tags):
    """Return EXIF as if it came from a file; only then does Pillow write all of it to TIFF."""
    found = Image.Exif()
    found.load(tags.tobytes())
    return found


def error(source, picture=None):
    """Return the largest difference from `photo()`, in levels of 255."""
    rgb = as_picture(source, "content").rgb[0].permute(1, 2, 0).numpy()
    return 255 * np.abs(rgb - (photo() if picture is None else picture)).max()


@pytest.mark.parametrize("stated", CICP, ids=str)
def test_png_states_cicp(tmp_path, stated):
    number, primaries, transfer, curve = stated
    for bits, most in ((16, 0.6), (8, 9 if curve in ("PQ", "linear", "HLG") else 3)):
        chunk = bytes((number, transfer, 0, 1))
        (tmp_path / "a.png").write_bytes(png(stored(primaries, curve, bits), cICP=chunk))
        assert error(tmp_path / "a.png") < most


@pytest.mark.parametrize("number", [1, 2, 4, 5, 6, 7, 8, 9, 10, 11, 12, 22])
def test_white_stays_white_and_grey_grey(tmp_path, number):
    grey = np.linspace(0, 65535, 48).astype(np.uint16)[None, :, None].repeat(3, 2).repeat(8, 0)
    (tmp_path / "a.png").write_bytes(png(grey, cICP=bytes((number, 13, 0, 1))))
    rgb = read(tmp_path / "a.png").rgb[0].permute(1, 2, 0).numpy()
    assert np.abs(rgb - grey / 65535).max() < 2e-3


@pytest.mark.parametrize("bits", [8, 10])
@pytest.mark.parametrize("stated", [x for x in CICP if x[2] != 8], ids=str)
def test_heif_and_avif_state_nclx(tmp_path, stated, bits):
    number, primaries, transfer, curve = stated
    samples = stored(primaries, curve, 8 if bits == 8 else 16)
    nclx = {"color_primaries": number, "transfer_characteristics": transfer}
    image = pillow_heif.from_bytes("RGB" if bits == 8 else "RGB;16", (48, 32), samples.tobytes())
    image.save(tmp_path / "a.hif", quality=100, chroma=444, **nclx, matrix_coefficients=1)
    ten = samples if bits == 8 else samples >> 6
    options = {"level": 100, "pixelformat": "444", "bitspersample": bits}
    avif = imagecodecs.avif_encode(ten, primaries=number, transfer=transfer, **options)
    (tmp_path / "a.avif").write_bytes(avif)
    for path in tmp_path.iterdir():
        assert error(path) < (16 if bits == 8 else 9), path.name


@pytest.mark.parametrize("bits", [10, 12])
def test_avif_and_heif_keep_more_than_eight_bits(tmp_path, bits):
    ramp = np.linspace(0.2, 0.6, 256)[None, :, None].repeat(3, 2).repeat(16, 0)
    samples = np.round(ramp * (2**bits - 1)).astype(np.uint16)
    options = {"level": 100, "pixelformat": "444", "bitspersample": bits}
    (tmp_path / "a.avif").write_bytes(imagecodecs.avif_encode(samples, **options))
    if bits == 10:  # pillow-heif writes 10 bits
        whole = (samples << 6).tobytes()
        image = pillow_heif.from_bytes("RGB;16", (256, 16), whole)
        image.save(tmp_path / "a.heic", quality=100, chroma=444)
    for path in tmp_path.iterdir():
        rgb = read(path).rgb[0].permute(1, 2, 0).numpy()
        assert np.abs(rgb - ramp).mean() < 0.3 / 255, path.name
        assert len(np.unique(np.round(rgb * 1023))) > 200, path.name


def test_png_states_gamma_and_chromaticities(tmp_path):
    adobe, p3 = (0.64, 0.33, 0.21, 0.71, 0.15, 0.06), (0.68, 0.32, 0.265, 0.69, 0.15, 0.06)
    for primaries, curve, chunks in (
        ("sRGB", "linear", {"gAMA": gama(1)}),
        ("sRGB", "1.8", {"gAMA": gama(1.8)}),
        ("Adobe RGB", "2.2", {"gAMA": gama(563 / 256), "cHRM": chrm(*adobe)}),
        ("P3", "linear", {"gAMA": gama(1), "cHRM": chrm(*p3)}),
        ("P3", "sRGB", {"cHRM": chrm(*p3)}),
    ):
        for bits, most in ((16, 0.6), (8, 9)):
            (tmp_path / "a.png").write_bytes(png(stored(primaries, curve, bits), **chunks))
            assert error(tmp_path / "a.png") < most, chunks


def test_grey_and_palettes_follow_the_gamma_too(tmp_path):
    grey = photo()[..., :1]
    samples = stored("sRGB", "linear", 16, grey.repeat(3, 2))
    (tmp_path / "a.png").write_bytes(png(samples[..., 0].copy(), gAMA=gama(1)))
    assert error(tmp_path / "a.png", grey) < 0.6
    colors = [(200, 40, 90), (30, 220, 60), (90, 90, 250)]
    image = Image.fromarray(np.array([[0, 1, 2]], np.uint8), "L").convert("P")
    image.putpalette(stored("sRGB", "linear", 8, np.array([colors]) / 255).tobytes())
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    (tmp_path / "a.png").write_bytes(with_chunks(buffer.getvalue(), gAMA=gama(1)))
    assert error(tmp_path / "a.png", np.array([colors]) / 255) < 6


def test_of_several_statements_png_takes_the_first_of_its_standard(tmp_path):
    samples, space = stored("P3", "sRGB"), bytes((12, 13, 0, 1))
    linear = imagecodecs.cms_profile("rgb", gamma=1.0)
    profile = b"linear\0\0" + zlib.compress(linear)
    (tmp_path / "a.png").write_bytes(png(samples, cICP=space, iCCP=profile, gAMA=gama(1)))
    assert error(tmp_path / "a.png") < 0.6
    samples = stored("sRGB", "sRGB")
    (tmp_path / "a.png").write_bytes(png(samples, sRGB=b"\0", gAMA=gama(1)))
    assert error(tmp_path / "a.png") < 0.6


@pytest.mark.parametrize("extension", ["jpg", "png", "webp", "tif"])
@pytest.mark.parametrize("way", ["R03", "2", "chromaticities"])
def test_exif_states_adobe_rgb(tmp_path, extension, way):
    curve = "sRGB" if way == "chromaticities" else "2.2"
    path, samples = tmp_path / f"a.{extension}", stored("Adobe RGB", curve, 8)
    points = {"x13F": (0.64, 0.33, 0.21, 0.71, 0.15, 0.06), "x13E": (0.3127, 0.329)}
    if (extension, way) == ("tif", "R03"):
        pytest.skip("Pillow writes no interoperability index to TIFF")
    tags = {"R03": exif(65535, "R03"), "2": exif(2), "chromaticities": exif(65535, **points)}[way]
    options = {"webp": {"lossless": True}, "jpg": {"quality": 100, "subsampling": 0}}
    Image.fromarray(samples).save(path, exif=reloaded(tags), **options.get(extension, {}))
    assert error(path) < 5
    with Image.open(path) as image:
        assert error(image) < 5
        assert extension == "tif" or error(image.copy()) < 5  # Pillow copies no tags of TIFF


def test_a_library_that_fails_on_metadata_is_told(tmp_path, monkeypatch, caplog):
    Image.fromarray(stored("Adobe RGB", "2.2", 8)).save(tmp_path / "a.jpg", exif=exif(2))
    monkeypatch.setattr(Image.Exif, "get_ifd", lambda exif, tag: {}[tag])
    assert read(tmp_path / "a.jpg").size == photo().shape[:2]
    assert "a.jpg states colours that cannot be read (KeyError(34665)); read as sRGB" in caplog.text


def with_tags(samples, *tags):
    """Return the bytes of a TIFF with chromaticities of Adobe RGB and further `tags`."""
    points = [0.64, 0.33, 0.21, 0.71, 0.15, 0.06]
    ratios = [part for x in points for part in (round(x * 10000), 10000)]
    white = (318, "2I", 2, [3127, 10000, 3290, 10000], True)
    tags = [(319, "2I", 6, ratios, True), white, *tags]
    buffer = io.BytesIO()
    tifffile.imwrite(buffer, samples, photometric="rgb", metadata=None, extratags=tags)
    return buffer.getvalue()


def bmp(samples, profile=b""):
    """Return a BMP with `profile`, or with the calibration of a header of version 5."""
    pixels = samples[::-1, :, ::-1].tobytes()
    header = struct.pack("<IiiHHIIiiII16x", 124, 48, 32, 1, 24, 0, len(pixels), 0, 0, 0, 0)
    header += b"DEBM" if profile else b"\0\0\0\0"
    header += struct.pack("<9i", *(round(x * 2**30) for x in XYZ))
    header += struct.pack("<3I", *[round(563 / 256 * 2**16)] * 3)
    header += struct.pack("<4I", 4, 124 + len(pixels), len(profile), 0)
    size = 14 + len(header) + len(pixels) + len(profile)
    start = b"BM" + struct.pack("<IHHI", size, 0, 0, 14 + len(header))
    return start + header + pixels + profile


def test_tiff_states_chromaticities(tmp_path):
    for bits, most in ((8, 4), (16, 1)):
        (tmp_path / "a.tif").write_bytes(with_tags(stored("Adobe RGB", "sRGB", bits)))
        assert error(tmp_path / "a.tif") < most


def test_bmp_has_a_profile(tmp_path):
    profile = imagecodecs.cms_profile(
        "rgb", gamma=563 / 256, whitepoint=[0.3127, 0.329],
        primaries=[0.64, 0.33, 0.21, 0.71, 0.15, 0.06],
    )  # fmt: skip
    (tmp_path / "a.bmp").write_bytes(bmp(stored("Adobe RGB", "2.2", 8), profile))
    assert error(tmp_path / "a.bmp") < 4


def test_pillow_images_in_memory_keep_what_their_file_states(tmp_path):
    samples, path = stored("P3", "sRGB", 8), tmp_path / "a.png"
    path.write_bytes(png(samples, cICP=bytes((12, 13, 0, 1))))
    with Image.open(path) as image:
        assert error(image) < 3
        assert error(image) < 3  # its samples are read by now
    with path.open("rb") as file, Image.open(file) as image:
        assert error(image) < 3
    buffer = io.BytesIO(
        imagecodecs.avif_encode(samples, level=100, pixelformat="444", primaries=12)
    )
    with Image.open(buffer) as image:
        assert error(image) < 9
    path.write_bytes(png(stored("sRGB", "linear", 8), gAMA=gama(1)))
    with Image.open(path) as image:
        assert error(image.convert("RGBA").crop((0, 0, 48, 32))) < 9


def test_statements_of_srgb_change_no_sample_and_are_silent(tmp_path, caplog):
    samples = stored("sRGB", "sRGB", 8)
    srgb = chrm(0.64, 0.33, 0.30, 0.60, 0.15, 0.06)
    for chunks in (
        {"cICP": b"\1\15\0\1"},
        {"cICP": b"\1\1\0\1"},
        {"cICP": b"\2\2\0\1"},
        {"gAMA": gama(2.2)},
        {"gAMA": gama(2.2), "cHRM": srgb},
        {"cHRM": srgb},
    ):
        (tmp_path / "a.png").write_bytes(png(samples, **chunks))
        rgb = (read(tmp_path / "a.png").rgb[0] * 255).permute(1, 2, 0).numpy()
        assert np.array_equal(rgb.round(), samples), chunks
    for tags in (exif(1), exif(65535), exif(1, "R98")):
        Image.fromarray(samples).save(tmp_path / "a.png", exif=tags)
        assert np.array_equal(
            np.asarray(read(tmp_path / "a.png").rgb[0, 0] * 255).round(), samples[..., 0]
        )
    assert not caplog.records


def test_what_cannot_be_converted_is_told_in_one_line(tmp_path, caplog):
    samples, path = stored("sRGB", "sRGB", 8), tmp_path / "a.png"
    flat = chrm(0.5, 0.5, 0.5, 0.5, 0.5, 0.5)
    table = (301, "H", 256, list(range(0, 65536, 257)), True)
    codes = ((3, 13), (9, 10), (1, 4), (1, 5), (1, 7), (1, 17))
    for content, said in (
        *(
            (png(samples, cICP=bytes((*code, 0, 1))), "primaries {} and transfer {}".format(*code))
            for code in codes
        ),
        (with_tags(samples, table), "a TransferFunction (TIFF)"),
        (bmp(samples), "chromaticities and a gamma (BMP)"),
        (png(samples, gAMA=struct.pack(">I", 1)), "the gamma 1e-05 (gAMA)"),
        (png(samples, cHRM=flat), "chromaticities"),
    ):
        path.write_bytes(content)
        caplog.clear()
        assert error(path) < 0.6
        (record,) = caplog.records
        assert f"{path} states {said}" in record.getMessage()
        assert record.getMessage().endswith("not converted; read as sRGB")
    gamma = exif(65535)
    gamma.get_ifd(0x8769)[0xA500] = 1.0
    for tags, said in ((exif(4), "the colour space 4 (EXIF)"), (gamma, "the gamma 1 (EXIF)")):
        caplog.clear()
        Image.fromarray(samples).save(path, exif=tags)
        assert error(path) < 0.6
        assert said in caplog.text


def test_damaged_statements_cost_no_picture(tmp_path):
    samples = stored("sRGB", "sRGB", 8)
    for chunks in ({"cICP": b""}, {"cICP": b"\1"}, {"eXIf": b"MM\0*\0\0\0\10\0\1\x87\x69"}):
        (tmp_path / "a.png").write_bytes(png(samples, **chunks))
        assert error(tmp_path / "a.png") < 0.6
    whole = imagecodecs.avif_encode(samples, level=100, pixelformat="444")
    at = whole.index(b"ipma")
    (tmp_path / "a.avif").write_bytes(whole[: at + 8] + b"\xff" * 4 + whole[at + 12 :])
    with pytest.raises(Exception, match="damaged"):
        read(tmp_path / "a.avif")


@pytest.mark.parametrize(("number", "curve", "most"), [(16, "PQ", 10000 / 203), (18, "HLG", 3.77)])
def test_hdr_above_white_is_compressed_smoothly(tmp_path, number, curve, most):
    light = np.linspace(0, most, 4000)[None, :, None].repeat(3, 2)
    samples = np.round(SAMPLES[curve](light).clip(0, 1) * 65535).astype(np.uint16)
    (tmp_path / "a.png").write_bytes(png(samples, cICP=bytes((1, number, 0, 1))))
    shown = light_of(read(tmp_path / "a.png").rgb[0, 0, 0].double().numpy())
    light = light[0, :, 0]
    assert np.abs(shown - light)[light <= 0.8].max() < 2e-3
    assert (np.diff(shown) >= -1e-6).all()
    assert shown[np.abs(light - 1).argmin()] == pytest.approx(0.9, abs=2e-3)
    assert 0.98 < shown[-1] <= 1.0


def test_bright_colours_of_hdr_keep_their_hue(tmp_path):
    light = np.array([[[4.0, 1.0, 0.5], [0.4, 2.0, 1.0]]])
    samples = np.round(SAMPLES["PQ"](light) * 65535).astype(np.uint16)
    (tmp_path / "a.png").write_bytes(png(samples, cICP=bytes((1, 16, 0, 1))))
    shown = light_of(read(tmp_path / "a.png").rgb[0, :, 0].T.double().numpy())
    assert shown / shown.max(1, keepdims=True) == pytest.approx(
        light[0] / light[0].max(1, keepdims=True), abs=2e-3
    )
