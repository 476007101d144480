# SPDX-License-Identifier: Apache-2.0
"""Virtual GPUs for Python programs started by `headroom sim -- CMD`.

    import headroom_sim
    gpu = headroom_sim.Device(0)         # CUDA ordinal: CUDA_VISIBLE_DEVICES is honoured, once per process
    buffer = gpu.malloc(2 << 30)
    gpu.launch(ms=12, sm=0.8)            # returns at once; 12 ms alone on the device, 80 % of its SMs
    gpu.copy(64 << 20)                   # host to device, pageable memory: waits for it
    gpu.sync()                           # sleeps until the device is done

Any Python from 3.8 on, no packages. Host work is whatever your program does; only the device is virtual.
"""
import ctypes
import os

__all__ = ["Buffer", "Device", "DeviceLostError", "Event", "OutOfMemoryError", "SimError", "device_count"]

_INVALID_VALUE, _OUT_OF_MEMORY, _NOT_READY, _LOST, _INTERRUPTED = 1, 2, 600, 999, -2


class SimError(RuntimeError):
    """A call on a virtual GPU failed. `code` is CUDA's number for it, where CUDA has one."""

    def __init__(self, code, call):
        self.code = code
        what = "CUDA error: " if code > 0 else ""  # as frameworks word it: log readers look for that
        super().__init__("%s: %s%s (%d): %s" % (call, what, _text(_lib.headroom_sim_error_name(code)), code,
                                                _text(_lib.headroom_sim_error_string(code))))


class OutOfMemoryError(SimError, MemoryError):
    """The device has not enough free memory."""


class DeviceLostError(SimError):
    """The device fell off the bus."""


class _Stats(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("now_ns", "submitted_ns", "attained_ns", "kernel_ns", "created_ns",
                                                    "done_at_ns", "busy_ns")] + [("memory_bytes", ctypes.c_uint64)]


def _load():
    box = os.environ.get("HEADROOM_SIM")
    if not box:
        raise ImportError("no virtual GPUs here: start the program by `headroom sim -- CMD`")
    lib = ctypes.CDLL(os.path.join(box, "lib", "libheadroom_sim.so"))
    lib.headroom_sim_error_name.restype = lib.headroom_sim_error_string.restype = ctypes.c_char_p
    i, u32, i64, u64, p = ctypes.c_int, ctypes.c_uint32, ctypes.c_int64, ctypes.c_uint64, ctypes.c_void_p
    for name, arguments in {
            "device_count": [p], "device_uuid": [i, p, ctypes.c_size_t], "device_name": [i, p, ctypes.c_size_t],
            "device_pci_index": [i, p], "context_create": [i, i], "context_destroy": [i], "malloc": [i, u64, p],
            "free": [i, u64], "mem_get_info": [i, p, p], "launch": [i, i64, u32], "copy": [i, u64, i, i, i],
            "event_record": [i, p], "event_query": [i, i64], "event_wait": [i, i64, i64],
            "get_stats": [i, p]}.items():
        getattr(lib, "headroom_sim_" + name).argtypes = arguments
    return lib


def _text(raw):
    return raw.decode("utf-8", "replace")


_lib = _load()


def _check(code, call):
    if code == 0:
        return
    raise {_OUT_OF_MEMORY: OutOfMemoryError, _LOST: DeviceLostError}.get(code, SimError)(code, call)


def _wait(device, ticket):
    # In pieces, and ended by signals: Python runs its handlers (Ctrl-C) only between calls.
    while True:
        code = _lib.headroom_sim_event_wait(device.ordinal, ticket, 50_000_000)
        if code not in (_NOT_READY, _INTERRUPTED):
            return _check(code, "synchronize")


def device_count():
    """How many devices this process sees."""
    count = ctypes.c_int()
    code = _lib.headroom_sim_device_count(ctypes.byref(count))
    _check(code, "device_count")
    return count.value


class Buffer:
    """Device memory; freed by free(), by leaving a `with` block, or when nobody refers to it any more."""

    def __init__(self, device, nbytes, address):
        self.device, self.nbytes, self._address = device, nbytes, address

    def free(self):
        address, self._address = self._address, None
        if address is not None:
            _check(_lib.headroom_sim_free(self.device.ordinal, address), "free")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.free()

    def __del__(self):
        try:
            self.free()
        except Exception:  # the device may be lost, or the interpreter half gone
            pass


class Event:
    """The work queued on a device up to a moment."""

    def __init__(self, device, ticket):
        self.device, self._ticket = device, ticket

    def done(self):
        code = _lib.headroom_sim_event_query(self.device.ordinal, self._ticket)
        if code == _NOT_READY:
            return False
        _check(code, "event_query")
        return True

    def wait(self):
        _wait(self.device, self._ticket)


class Device:
    """One virtual GPU, by CUDA ordinal. The context appears with the first call that needs it."""

    def __init__(self, ordinal=0, graphics=False):
        self.ordinal = ordinal
        if graphics:
            _check(_lib.headroom_sim_context_create(ordinal, 1), "context_create")

    def _string(self, function, call):
        text = ctypes.create_string_buffer(128)
        _check(function(self.ordinal, text, len(text)), call)
        return _text(text.value)

    @property
    def uuid(self):
        return self._string(_lib.headroom_sim_device_uuid, "device_uuid")

    @property
    def name(self):
        return self._string(_lib.headroom_sim_device_name, "device_name")

    @property
    def pci_index(self):
        """The position in PCI order, which is NVML's and nvidia-smi's index."""
        index = ctypes.c_int()
        _check(_lib.headroom_sim_device_pci_index(self.ordinal, ctypes.byref(index)), "device_pci_index")
        return index.value

    def create_context(self):
        _check(_lib.headroom_sim_context_create(self.ordinal, 0), "context_create")

    def destroy_context(self):
        _check(_lib.headroom_sim_context_destroy(self.ordinal), "context_destroy")

    def malloc(self, nbytes):
        address = ctypes.c_uint64()
        _check(_lib.headroom_sim_malloc(self.ordinal, int(nbytes), ctypes.byref(address)), "malloc")
        return Buffer(self, int(nbytes), address.value)

    def memory(self):
        """(free, total) bytes."""
        free, total = ctypes.c_uint64(), ctypes.c_uint64()
        _check(_lib.headroom_sim_mem_get_info(self.ordinal, ctypes.byref(free), ctypes.byref(total)), "mem_get_info")
        return free.value, total.value

    def launch(self, ms, sm=1.0):
        """Queues a kernel of `ms` milliseconds (alone on the device) that uses the share `sm` of the SMs."""
        code = _lib.headroom_sim_launch(self.ordinal, int(ms * 1e6 + 0.5), max(1, int(sm * 1000 + 0.5)))
        _check(code, "launch")

    def copy(self, nbytes, to_host=False, pinned=False, wait=True):
        """Copies between host and device. From pageable memory, or with wait=True, it returns when it is done."""
        code = _lib.headroom_sim_copy(self.ordinal, int(nbytes), int(to_host), int(pinned), int(pinned))
        _check(code, "copy")
        if pinned and wait:
            self.sync()

    def sync(self):
        """Waits for all queued work, asleep."""
        self.record().wait()

    def record(self):
        ticket = ctypes.c_int64()
        _check(_lib.headroom_sim_event_record(self.ordinal, ctypes.byref(ticket)), "event_record")
        return Event(self, ticket.value)

    def stats(self):
        """What the device did for this process, by its own clock: a dict of the fields of headroom_sim_stats."""
        stats = _Stats()
        _check(_lib.headroom_sim_get_stats(self.ordinal, ctypes.byref(stats)), "get_stats")
        return {name: getattr(stats, name) for name, _ in _Stats._fields_}

    def __repr__(self):
        return "headroom_sim.Device(%d)" % self.ordinal
