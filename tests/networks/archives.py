"""Makes tar archives, also ones that no program would write, and reads them."""

import tarfile
from io import BytesIO


def packed(path, **members):
    """Write a tar archive of members, name -> bytes, with _ for the dot of a name."""
    path.parent.mkdir(exist_ok=True)
    with tarfile.open(path, "w") as shard:
        for name, data in members.items():
            info = tarfile.TarInfo(name.replace("_", "."))
            info.size, info.mtime = len(data), 7
            shard.addfile(info, BytesIO(data))


def unpacked(path):
    """Return name -> bytes of a tar archive's members, in their order."""
    with tarfile.open(path) as shard:
        return {member.name: shard.extractfile(member).read() for member in shard}


def header(name, size, kind=tarfile.REGTYPE, **fields):
    """Return the header of a member, 512 bytes and more for a long name, as GNU tar writes it."""
    info = tarfile.TarInfo(name)
    info.size, info.type = size, kind
    for key, value in fields.items():
        setattr(info, key, value)
    return info.tobuf(tarfile.GNU_FORMAT)


def member(name, data=b"", kind=tarfile.REGTYPE, stated=None, **fields):
    """Return a member: its header, which states a size, the data, and zeros up to 512 bytes."""
    size = len(data) if stated is None else stated
    return header(name, size, kind, **fields) + data + bytes(-len(data) % 512)


def pax(*records):
    """Return an extended header that holds (key, value) records, both bytes, for the next one."""
    lines = b""
    for key, value in records:
        rest = b" " + key + b"=" + value + b"\n"
        length = len(rest) + len(str(len(rest)))
        length = len(rest) + len(str(length))
        lines += str(length).encode() + rest
    return member("pax", lines, tarfile.XHDTYPE)


END = bytes(1024)
