# SPDX-License-Identifier: Apache-2.0
"""A small NVML client made from the ABI vectors alone, for tests: it shares no declaration with Headroom.

    nvml = Nvml()                         # libnvidia-ml.so.1 from LD_LIBRARY_PATH
    nvml.init()
    gpu = nvml.device(0)
    nvml.number("nvmlDeviceGetPowerUsage", gpu)
"""
import ctypes
import json
import pathlib

VECTORS = json.loads((pathlib.Path(__file__).parent / "nvml_vectors.json").read_text(encoding="utf-8"))
CONSTANTS = VECTORS["constants"]
VERSION_WORDS = VECTORS["version_words"]
SUCCESS, NOT_SUPPORTED, NOT_FOUND, INSUFFICIENT_SIZE = 0, 3, 6, 7
UNINITIALIZED, INVALID_ARGUMENT, DRIVER_NOT_LOADED, GPU_IS_LOST = 1, 2, 9, 15
_BY_SIZE = {1: ctypes.c_uint8, 2: ctypes.c_uint16, 4: ctypes.c_uint32, 8: ctypes.c_uint64}


class NvmlError(Exception):
    def __init__(self, function, code):
        super().__init__(f"{function} returned {code}")
        self.code = code


class Records:
    """`count` structs of one kind, side by side; fields are read and written where the vectors say."""

    def __init__(self, name, count=1):
        self.fields = VECTORS["structs"][name]["fields"]
        self.size = VECTORS["structs"][name]["size"]
        self.buffer = ctypes.create_string_buffer(self.size * max(1, count))

    def _slot(self, field, index):
        offset, size = self.fields[field]
        return _BY_SIZE[size].from_buffer(self.buffer, index * self.size + offset)

    def get(self, field, index=0):
        return self._slot(field, index).value

    def set(self, field, value, index=0):
        self._slot(field, index).value = value

    def get_double(self, field, index=0):
        return ctypes.c_double.from_buffer(self.buffer, index * self.size + self.fields[field][0]).value

    def text(self, field, index=0):
        offset, size = self.fields[field]
        start = index * self.size + offset
        return self.buffer.raw[start:start + size].split(b"\0")[0].decode()

    def row(self, index=0):
        return {name: self.get(name, index) for name, (_, size) in self.fields.items() if size in _BY_SIZE}


class Nvml:
    def __init__(self, path="libnvidia-ml.so.1"):
        self.library = ctypes.CDLL(path)

    def has(self, function):
        return hasattr(self.library, function)

    def code(self, function, *arguments):
        """Calls and returns the NVML return code."""
        call = getattr(self.library, function)
        call.restype = ctypes.c_int
        return call(*[ctypes.byref(a.buffer) if isinstance(a, Records) else a for a in arguments])

    def call(self, function, *arguments):
        code = self.code(function, *arguments)
        if code != SUCCESS:
            raise NvmlError(function, code)

    def init(self):
        self.call("nvmlInit_v2")

    def count(self):
        out = ctypes.c_uint()
        self.call("nvmlDeviceGetCount_v2", ctypes.byref(out))
        return out.value

    def device(self, index):
        out = ctypes.c_void_p()
        self.call("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(index), ctypes.byref(out))
        return out

    def number(self, function, *arguments, kind=ctypes.c_uint):
        out = kind()
        self.call(function, *arguments, ctypes.byref(out))
        return out.value

    def text(self, function, *arguments, size=96):
        out = ctypes.create_string_buffer(size)
        self.call(function, *arguments, out, ctypes.c_uint(size))
        return out.value.decode()

    def record(self, function, struct, *arguments, version=None):
        out = Records(struct)
        if version is not None:
            out.set("version", version)
        self.call(function, *arguments, out)
        return out.row()

    def processes(self, device, kind="Compute", suffix="_v3", struct="nvmlProcessInfo_t"):
        """The two-step size protocol, as clients do it."""
        function = f"nvmlDeviceGet{kind}RunningProcesses{suffix}"
        room = ctypes.c_uint(0)
        code = self.code(function, device, ctypes.byref(room), None)
        if code == SUCCESS:
            return []
        if code != INSUFFICIENT_SIZE:
            raise NvmlError(function, code)
        room.value += 5
        rows = Records(struct, room.value)
        self.call(function, device, ctypes.byref(room), rows)
        return [rows.row(i) for i in range(room.value)]

    def process_utilisation(self, device, last_seen=0):
        """None when nothing is new (NOT_FOUND)."""
        function = "nvmlDeviceGetProcessUtilization"
        room = ctypes.c_uint(0)
        code = self.code(function, device, None, ctypes.byref(room), ctypes.c_ulonglong(last_seen))
        if code != INSUFFICIENT_SIZE:
            raise NvmlError(function, code)
        rows = Records("nvmlProcessUtilizationSample_t", room.value)
        code = self.code(function, device, rows, ctypes.byref(room), ctypes.c_ulonglong(last_seen))
        if code == NOT_FOUND:
            return None
        if code != SUCCESS:
            raise NvmlError(function, code)
        return [rows.row(i) for i in range(room.value)]

    def samples(self, device, kind, last_seen=0):
        """[(timestamp, value)], or None when nothing is new."""
        function = "nvmlDeviceGetSamples"
        room, value_type = ctypes.c_uint(0), ctypes.c_int()
        arguments = (device, CONSTANTS[kind], ctypes.c_ulonglong(last_seen), ctypes.byref(value_type))
        self.call(function, *arguments, ctypes.byref(room), None)
        rows = Records("nvmlSample_t", room.value)
        code = self.code(function, *arguments, ctypes.byref(room), rows)
        if code == NOT_FOUND:
            return None
        if code != SUCCESS:
            raise NvmlError(function, code)
        assert value_type.value == CONSTANTS["NVML_VALUE_TYPE_UNSIGNED_INT"]
        return [(rows.get("timeStamp", i), rows.get("sampleValue", i) & 0xFFFFFFFF) for i in range(room.value)]

    def fields(self, device, ids):
        """{id: (code, value)}"""
        values = Records("nvmlFieldValue_t", len(ids))
        for i, field in enumerate(ids):
            values.set("fieldId", field, i)
        self.call("nvmlDeviceGetFieldValues", device, ctypes.c_int(len(ids)), values)
        answers = {}
        for i, field in enumerate(ids):
            value = values.get("value", i)
            if values.get("valueType", i) == CONSTANTS["NVML_VALUE_TYPE_UNSIGNED_INT"]:
                value &= 0xFFFFFFFF
            answers[field] = (values.get("nvmlReturn", i), value)
        return answers
