"""What a training process holds beside states and activations: placeholders, shards in flight, pools, context.

The allocator counts the first; the process as a whole (nvidia-smi) counts all.
"""

from __future__ import annotations

from planner.equations.registry import FloatOrArray, as_float, equation

CONTEXT_BYTES = 1.0e9  # CUDA context with the kernels of PyTorch, cuBLAS, cuDNN and NCCL: 0.5 to 1.5e9
COMMUNICATOR_BYTES = 0.25e9  # buffers of one NCCL communicator over several channels: 0.3 to 1.5e9 for all of a job


@equation("EQ-MEM-17")
def weight_gradient_placeholder_bytes(
    matrix_parameters: FloatOrArray, tensor_parallel: FloatOrArray = 1, bytes_per_value: FloatOrArray = 2
) -> FloatOrArray:
    """Placeholders of weight gradients that Transformer Engine keeps, one for each shape of weight.

    Parameters
    ----------
    matrix_parameters
        Weights of the distinct matrices of the rank, each shape once.  [count]
    tensor_parallel
        Degree t that splits them.  [count]
    bytes_per_value
        Bytes of one value, those of the weight.  [B]

    Returns
    -------
    Bytes held from the first backward pass on.  [B]

    Notes
    -----
    Eq. (1):  2 sum(d_in d_out) / t

    A product that adds its weight gradient to the fp32 sum itself must still hand a tensor of the weight's
    shape and type to autograd; the tensors are cached by shape.

    References
    ----------
    [1] NVIDIA/TransformerEngine, pytorch/module/base.py: get_dummy_wgrad.
    [2] MooreThreads/SimuMax, simumax/core/base_struct.py: te_dummy_wgrad_shapes.

    Examples
    --------
    >>> float(weight_gradient_placeholder_bytes(8192 * (10240 + 8192 + 3 * 28672), 8)) / 2**20
    204.0
    """
    return as_float(bytes_per_value) * matrix_parameters / as_float(tensor_parallel)


@equation("EQ-MEM-18")
def gathered_ends_bytes(
    end_parameters: FloatOrArray, head_parameters: FloatOrArray, bytes_per_weight: FloatOrArray = 2
) -> FloatOrArray:
    """Embedding and head that FSDP holds gathered through the backward pass, with the head's gradient.

    Parameters
    ----------
    end_parameters
        Parameters of embedding, head and final norm on the rank, over t.  [count]
    head_parameters
        Parameters of the head among them.  [count]
    bytes_per_weight
        Bytes of a gathered weight and of its unreduced gradient.  [B]

    Returns
    -------
    Bytes held while the layers go backward.  [B]

    Notes
    -----
    Eq. (1):  w_c (P_ends + P_head)

    References
    ----------
    [1] pytorch/torchtitan: embedding, final norm and head are the root unit of fully_shard.

    Examples
    --------
    >>> float(gathered_ends_bytes(2 * 128256 * 4096, 128256 * 4096)) / 1e9
    3.152019456
    """
    return as_float(bytes_per_weight) * (as_float(end_parameters) + head_parameters)


@equation("EQ-MEM-19")
def side_pool_bytes(unit_parameters: FloatOrArray, bytes_per_value: FloatOrArray = 4) -> FloatOrArray:
    """Memory that a communication stream of FSDP keeps for itself, out of reach of the compute stream.

    Parameters
    ----------
    unit_parameters
        Parameters of the largest unit that is reduced at once, over t.  [count]
    bytes_per_value
        Bytes of one value of the reduction.  [B]

    Returns
    -------
    Bytes of pool that no activation can use.  [B]

    Notes
    -----
    Eq. (1):  q P_unit

    PyTorch's caching allocator keeps one pool a stream; the reduce-scatter copies a whole unit's gradients into fp32.

    References
    ----------
    [1] PyTorch documentation, CUDA semantics, memory management; torch.distributed.fsdp.fully_shard, reduce_dtype.

    Examples
    --------
    >>> float(side_pool_bytes(2 * 128256 * 4096)) / 1e9
    4.202692608
    """
    return as_float(unit_parameters) * bytes_per_value


@equation("EQ-MEM-20")
def process_bytes(
    communicators: FloatOrArray,
    context_bytes: FloatOrArray = CONTEXT_BYTES,
    bytes_per_communicator: FloatOrArray = COMMUNICATOR_BYTES,
) -> FloatOrArray:
    """Memory of a training process that no tensor and no allocator counts.

    Parameters
    ----------
    communicators
        Groups of ranks that the process talks to: data, tensor, pipeline, context, expert.  [count]
    context_bytes
        CUDA context and loaded kernels.  [B]
    bytes_per_communicator
        Buffers of one group.  [B]

    Returns
    -------
    Bytes that nvidia-smi shows beyond the allocator's pool.  [B]

    Notes
    -----
    Eq. (1):  c_0 + n c_1

    References
    ----------
    [1] NVIDIA NCCL documentation, NCCL_BUFFSIZE: buffers of 4 MiB a channel and peer.
    [2] stas00/ml-engineering, debugging and memory: 0.5 to 1.5 GB of context.

    Examples
    --------
    >>> float(process_bytes(3)) / 1e9
    1.75
    """
    return as_float(context_bytes) + as_float(communicators) * bytes_per_communicator


@equation("EQ-MEM-21")
def stage_output_bytes(
    tokens: FloatOrArray, hidden_size: FloatOrArray, in_flight: FloatOrArray, bytes_per_value: FloatOrArray = 2
) -> FloatOrArray:
    """Outputs of a pipeline stage that are kept beside its activations until their backward pass.

    Parameters
    ----------
    tokens
        Tokens T of a micro-batch on the rank.  [tokens]
    hidden_size
        Width h.  [values]
    in_flight
        Micro-batches alive at once.  [count]
    bytes_per_value
        Bytes of one value.  [B]

    Returns
    -------
    Bytes held.  [B]

    Notes
    -----
    Eq. (1):  2 T h n

    References
    ----------
    [1] deepspeedai/DeepSpeed, deepspeed/runtime/pipe/engine.py: pipe_buffers["outputs"].

    Examples
    --------
    >>> float(stage_output_bytes(4096, 14336, 12)) / 1e9
    1.409286144
    """
    return as_float(bytes_per_value) * tokens * hidden_size * in_flight
