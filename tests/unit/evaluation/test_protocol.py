import io

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from llmkernel.devices.base import Diagnostic
from llmkernel.errors import CompileError, LaunchError, UnsupportedFeatureError, WorkerError
from llmkernel.evaluation.worker.errors import error_from_dict, error_to_dict
from llmkernel.evaluation.worker.protocol import FrameError, read_frame, write_frame

json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**60), 2**60) | st.text(max_size=20),
    lambda children: (
        st.lists(children, max_size=3) | st.dictionaries(st.text(max_size=5), children, max_size=3)
    ),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(max_size=8).filter(lambda k: k != "blobs"), json_values),
    st.lists(st.binary(max_size=300)),
)
def test_frames_come_back_as_they_were_sent(header, blobs):
    stream = io.BytesIO()
    write_frame(stream, header, [np.frombuffer(b, np.uint8) for b in blobs])
    stream.seek(0)
    back, arrays = read_frame(stream)
    assert back == header
    assert [a.tobytes() for a in arrays] == blobs
    with pytest.raises(EOFError):
        read_frame(stream)


@given(st.binary(max_size=400))
def test_nothing_but_a_frame_error_comes_out_of_noise(noise):
    try:
        read_frame(io.BytesIO(noise))
    except (FrameError, EOFError):
        pass


@given(st.integers(0, 200))
def test_a_frame_cut_anywhere_is_an_error(cut):
    stream = io.BytesIO()
    write_frame(stream, {"op": "draw", "text": "x" * 50}, [np.arange(100, dtype=np.uint8)])
    whole = stream.getvalue()
    with pytest.raises((FrameError, EOFError)):
        read_frame(io.BytesIO(whole[: min(cut, len(whole) - 1)]))


@pytest.mark.parametrize(
    "error",
    [
        CompileError("no", diagnostics=(Diagnostic("error", 3, 4, "bad"),), log="log", next_step="fix"),
        LaunchError("grid", line=7, rule="limit", received="9"),
        UnsupportedFeatureError("asm", feature="inline asm", line=2),
    ],
)
def test_errors_cross_the_pipe_with_all_they_carry(error):
    back = error_from_dict(error_to_dict(error))
    assert type(back) is type(error)
    assert vars(back) == vars(error)
    assert str(back) == str(error)


def test_an_unknown_error_becomes_a_worker_error():
    assert isinstance(error_from_dict({"type": "SystemExit", "what": "x"}), WorkerError)
